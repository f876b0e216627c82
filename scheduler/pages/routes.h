// The addresses of the scheduler's pages. All of them need the role `read`.
//
//   /, /web/FILE                      the pages themselves
//   /api/about, /api/jobs, ...        their answers (pages.h)
//   /api/jobs/*/events                what happens to a job (job_events.h)
#pragma once

#include <string>
#include <vector>

#include "rpc/http/http_message.h"
#include "rpc/http/http_port.h"
#include "scheduler/jobs/event_hub.h"
#include "scheduler/pages/pages.h"

namespace kiln::scheduler {

struct PageRoute {
  // HttpPort::Handle takes the pattern.
  std::string pattern;
  HttpHandler handler;
};

// Returns the pages that are no streams. `pages` outlives the handlers.
std::vector<PageRoute> PageRoutes(Pages& pages);

// Adds all pages to a port before it starts. Pages and hub outlive the port.
void AddPages(Pages& pages, const EventHub& hub, HttpPort& port);

}  // namespace kiln::scheduler
