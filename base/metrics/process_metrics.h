// Figures of this process itself, under the names that Prometheus' own clients use.
#pragma once

#include "base/metrics/metrics.h"

namespace kiln {

// Adds process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_start_time_seconds, process_open_fds and process_threads. A figure that the kernel does
// not tell is left out.
void CollectProcess(MetricSheet& sheet);

}  // namespace kiln
