// The events of one job for a browser: the trials since the last event, and the job's figures.
//
// An event's id is the id of the last record that it tells of. A browser whose connection broke off
// tells it, and the next stream goes on behind that record: no trial is told twice, none is left
// out. The stream reads the store whenever the hub says that something changed, so a slow browser
// costs no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "rpc/http/http_message.h"
#include "scheduler/jobs/event_hub.h"
#include "scheduler/pages/pages.h"

namespace kiln::scheduler {

// One stream. Used by one thread.
class JobEvents {
 public:
  // Trials of one event.
  static constexpr uint32_t kMostTrials = 500;

  // Begins behind the record. Pages and hub outlive this object.
  JobEvents(Pages& pages, const EventHub& hub, std::string job_id, int64_t after_record)
      : pages_(pages), hub_(hub), job_id_(std::move(job_id)), last_id_(after_record) {}

  // Returns the next events, as EventStream says. The last one has the name "end".
  std::optional<std::vector<ServerEvent>> Next(absl::Duration most);

 private:
  // Returns the event of what has changed; nullopt: nothing has.
  StatusOr<std::optional<ServerEvent>> Read();

  Pages& pages_;
  const EventHub& hub_;
  const std::string job_id_;
  int64_t last_id_;
  // The state that the last event told.
  std::string last_state_;
  bool is_final_ = false;
  bool has_ended_ = false;
};

// Opens the stream of the job that the request's first star names, behind the record of
// Last-Event-ID, or of the parameter `after`. NotFound: there is no such job.
StatusOr<EventStream> OpenJobEvents(Pages& pages, const EventHub& hub, const HttpRequest& request);

}  // namespace kiln::scheduler
