// Bytes that a forked process does not inherit: answers that programs are compared with, and
// outputs of programs that may be right. On the heap a later program would find remains of them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace kiln::runner {

// Allocates whole pages, which MADV_DONTFORK keeps from children. Costs some microseconds, so it is
// for few and large pieces.
template <typename T>
struct PrivateAllocator {
  using value_type = T;

  PrivateAllocator() = default;
  template <typename Other>
  PrivateAllocator(const PrivateAllocator<Other>&) {}

  T* allocate(size_t count) {
    void* const pages = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || madvise(pages, count * sizeof(T), MADV_DONTFORK) != 0) {
      // The allocator replaces `new`, and fails like it.
      throw std::bad_alloc();
    }
    return static_cast<T*>(pages);
  }
  // Writes nothing, because the system's pages are zeros already.
  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename First, typename... Rest>
  void construct(U* place, First&& first, Rest&&... rest) {
    ::new (static_cast<void*>(place)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
  void deallocate(T* pages, size_t count) { munmap(pages, count * sizeof(T)); }

  bool operator==(const PrivateAllocator&) const = default;
};

using PrivateBytes = std::vector<std::byte, PrivateAllocator<std::byte>>;

}  // namespace kiln::runner
