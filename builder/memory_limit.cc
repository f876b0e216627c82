#include "builder/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/process/freed_memory.h"
#include "base/status.h"

namespace kiln::builder {
namespace {

// Free memory that the next build takes again.
constexpr int64_t kKeptBytes = int64_t{256} << 20;

void SetSoftLimit(uint64_t bytes) {
  rlimit limit;
  KILN_CHECK(getrlimit(RLIMIT_DATA, &limit) == 0);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  KILN_CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
}

void OnOutOfMemory() {
  // Nothing here may allocate.
  constexpr char kText[] = "out of memory: the build's memory limit is reached\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  std::abort();
}

}  // namespace

bool MemoryLimit::Works() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

MemoryLimit::MemoryLimit(int64_t bytes) : before_(0) {
  if (!Works()) return;
  rlimit limit;
  KILN_CHECK(getrlimit(RLIMIT_DATA, &limit) == 0);
  before_ = limit.rlim_cur;
  SetSoftLimit(static_cast<uint64_t>(bytes));
}

MemoryLimit::~MemoryLimit() {
  if (Works()) SetSoftLimit(before_);
}

int64_t OwnMemoryBytes() {
  GiveBackFreedMemory(kKeptBytes);
  // The columns of statm, in pages: size, resident, shared, text, 0, data and stack.
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%*d %*d %*d %*d %*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<int64_t>(pages) * sysconf(_SC_PAGESIZE) - RetainedBytes();
}

void ReportOutOfMemory() { std::set_new_handler(OnOutOfMemory); }

}  // namespace kiln::builder
