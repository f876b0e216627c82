#include "base/process/freed_memory.h"

#include <jemalloc/jemalloc.h>

#include <cstddef>

#include "base/status.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The allocator reads this when the process starts. Memory that is given back leaves the address
// space, too, because the limit of a build counts all private pages (builder/memory_limit.h).
extern "C" {
const char* malloc_conf = "retain:false";
}
#endif

namespace kiln {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void GiveBackFreedMemory(int64_t) {}

#else

namespace {

#define KILN_STRING(x) #x
#define KILN_STRING_OF(x) KILN_STRING(x)
constexpr char kPurgeAll[] = "arena." KILN_STRING_OF(MALLCTL_ARENAS_ALL) ".purge";
#undef KILN_STRING_OF
#undef KILN_STRING

int64_t Statistic(const char* name) {
  size_t value = 0, size = sizeof value;
  KILN_CHECK(mallctl(name, &value, &size, nullptr, 0) == 0, "the allocator has no {}", name);
  return static_cast<int64_t>(value);
}

}  // namespace

void GiveBackFreedMemory(int64_t keep_bytes) {
  // The statistics are those of the last epoch. Writing any value begins a new one.
  uint64_t epoch = 1;
  KILN_CHECK(mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch) == 0);
  const int64_t freed_bytes = Statistic("stats.resident") - Statistic("stats.active");
  if (freed_bytes <= keep_bytes) return;
  KILN_CHECK(mallctl(kPurgeAll, nullptr, nullptr, nullptr, 0) == 0);
}

#endif

}  // namespace kiln
