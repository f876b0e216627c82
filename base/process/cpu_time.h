// CPU time of the calling thread, which does not depend on how many others run.
#pragma once

#include <ctime>

namespace kiln {

inline double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace kiln
