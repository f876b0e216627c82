#include "runner/yield_flag.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/errno_status.h"

namespace kiln::runner {
namespace {

constexpr size_t kBytes = sizeof(uint32_t);

}  // namespace

StatusOr<std::unique_ptr<YieldFlag>> YieldFlag::Map(UniqueFd fd, int protection) {
  void* const page = mmap(nullptr, kBytes, protection, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return ErrnoStatus(errno, "cannot map the flag of waiting trials");
  return std::unique_ptr<YieldFlag>(new YieldFlag(std::move(fd), page));
}

StatusOr<std::unique_ptr<YieldFlag>> YieldFlag::Make() {
  UniqueFd fd(memfd_create("kiln-wanted", MFD_CLOEXEC));
  if (!fd.valid() || ftruncate(fd.get(), kBytes) != 0) {
    return ErrnoStatus(errno, "cannot make the flag of waiting trials");
  }
  return Map(std::move(fd), PROT_READ | PROT_WRITE);
}

StatusOr<std::unique_ptr<YieldFlag>> YieldFlag::Open(UniqueFd fd) {
  return Map(std::move(fd), PROT_READ);
}

YieldFlag::~YieldFlag() { munmap(page_, kBytes); }

void YieldFlag::Set(bool wanted) {
  std::atomic_ref(*static_cast<uint32_t*>(page_)).store(wanted ? 1 : 0);
}

bool YieldFlag::wanted() const {
  return std::atomic_ref(*static_cast<uint32_t*>(page_)).load(std::memory_order_relaxed) != 0;
}

}  // namespace kiln::runner
