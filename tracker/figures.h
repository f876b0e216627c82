// The tracker shows this to a monitoring system: its figures, and the addresses of the daemons.
//
// Pure functions.
#pragma once

#include <string>

#include "base/metrics/metrics.h"
#include "tracker/registry.h"

namespace kiln::tracker {

void CollectRegistry(const v1::ListReply& list, const Registry::Totals& totals, MetricSheet& sheet);

// Returns the targets of a farm for Prometheus' http_sd_config: a JSON list with an entry for each
// address of pages, of this tracker ("" = it has none) and of its workers. Each has the labels
// `service` and `worker`, the id of the first worker that the process serves.
std::string DiscoveryText(const v1::ListReply& list, const std::string& own_address);

}  // namespace kiln::tracker
