// A temporary bound on the memory of this process.
#pragma once

#include <cstdint>

namespace kiln::builder {

// Limits the writable private memory of the process while this object lives, memory that it has
// already included. Afterwards the limit is as before. Allocations beyond the limit fail as if
// there were no memory. One object at a time. Does nothing in a sanitizer build, whose shadow
// memory is larger than any limit.
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

// Returns the writable private memory that the process has now, without address space that has no
// memory behind it. A build takes such space again before it asks the system for more, so a limit
// of this and N more bytes leaves it N bytes. Up to 256 MiB of the memory may be free: getting that
// much back from the system page by page would take a tenth of the next build's time. More free
// memory is given back.
int64_t OwnMemoryBytes();

// Makes a failed `new` say on stderr that the memory limit was reached, and abort, from now on.
void ReportOutOfMemory();

}  // namespace kiln::builder
