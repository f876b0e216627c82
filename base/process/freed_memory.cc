#include "base/process/freed_memory.h"

#include <fmt/format.h>
#include <jemalloc/jemalloc.h>

#include <cstddef>
#include <string>

#include "base/status.h"

namespace kiln {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void GiveBackFreedMemory(int64_t) {}
int64_t RetainedBytes() { return 0; }
void FlushThreadCache() {}

#else

namespace {

// The statistics are those of the last epoch. Writing any value begins a new one.
void BeginEpoch() {
  uint64_t epoch = 1;
  KILN_CHECK(mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch) == 0);
}

int64_t Statistic(const char* name) {
  size_t value = 0, size = sizeof value;
  KILN_CHECK(mallctl(name, &value, &size, nullptr, 0) == 0, "the allocator has no {}", name);
  return static_cast<int64_t>(value);
}

}  // namespace

void GiveBackFreedMemory(int64_t keep_bytes) {
  BeginEpoch();
  const int64_t freed_bytes = Statistic("stats.resident") - Statistic("stats.active");
  if (freed_bytes <= keep_bytes) return;
  const std::string purge = fmt::format("arena.{}.purge", MALLCTL_ARENAS_ALL);
  KILN_CHECK(mallctl(purge.c_str(), nullptr, nullptr, nullptr, 0) == 0);
}

// A thread without a cache has nothing to flush, which the allocator calls an error.
void FlushThreadCache() { mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0); }

int64_t RetainedBytes() {
  BeginEpoch();
  return Statistic("stats.retained");
}

#endif

}  // namespace kiln
