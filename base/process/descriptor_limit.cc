#include "base/process/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace kiln {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int64_t DescriptorLimit() {
  constexpr rlim_t kMax = 1'000'000;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMax));
}

}  // namespace kiln
