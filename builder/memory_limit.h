// A bound on the memory of this process for a while.
#pragma once

#include <cstdint>

namespace kiln::builder {

// While it lives the process may not get more writable private memory than this, what it has
// already included; afterwards as much as before. Asking for more fails as if there were none.
// One at a time. Does nothing in a sanitizer build, whose shadow memory is larger than any limit.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  static bool Works();

 private:
  uint64_t before_;
};

// Memory of that kind that the process has now. Up to 256 MiB of it may be free: to get that back
// from the system page by page would take the next build a tenth of its time. More is given back.
int64_t OwnMemoryBytes();

// Gives what is free back to the system.
void GiveBackFreeMemory();

// From now on a failed `new` says on stderr that the memory limit was reached, and aborts.
void ReportOutOfMemory();

}  // namespace kiln::builder
