// The canary program of a CPU, compiled into the runner: on each core that programs run on, a chain
// of dependent multiplications, which shows the clock and how much of the core others take, and a
// pass over memory that is larger than the core's own caches.
#pragma once

#include "base/status.h"
#include "runner/cpu_calls.h"

namespace kiln::runner {

// Returns the seconds of one call, run as programs are: on the same cores, by the same threads.
// Cost: about 20 ms and 4 MiB a core; nothing is kept. The threads end before it returns.
StatusOr<double> TimeCpuCanary(const CpuDeviceOptions& options);

}  // namespace kiln::runner
