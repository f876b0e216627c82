#include "base/process/freed_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace kiln {
namespace {

// Returns the memory of this process that does not belong to files.
int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0, of_files = 0;
  statm >> size >> resident >> of_files;
  return (resident - of_files) * sysconf(_SC_PAGE_SIZE);
}

}  // namespace

void KeepFreedMemory() {
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(kFreedBytesToKeep));
  // Larger pieces go back to the system each time. Setting one limit alone would freeze the other
  // at its small default.
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  mallopt(M_ARENA_MAX, kHeapsPerCore * static_cast<int>(cores));
}

void GiveBackFreedMemory(int64_t keep_bytes) {
  // The difference is computed here, because the library's count of free memory includes what it
  // has given back already.
  const struct mallinfo2 all = mallinfo2();
  const int64_t freed_bytes = ResidentBytes() - static_cast<int64_t>(all.uordblks + all.hblkhd);
  if (freed_bytes > keep_bytes) malloc_trim(0);
}

}  // namespace kiln
