// Lets several threads work over gigabytes of memory. One thread makes only some hundred million
// random elements per second, and the system gives it fresh pages about as slowly.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace kiln::runner {

// Allocator for elements that have no values until they are written.
template <typename T>
struct UnsetAllocator : std::allocator<T> {
  template <typename Other>
  struct rebind {
    using other = UnsetAllocator<Other>;
  };
  UnsetAllocator() = default;
  template <typename Other>
  UnsetAllocator(const UnsetAllocator<Other>&) {}

  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename First, typename... Rest>
  void construct(U* place, First&& first, Rest&&... rest) {
    ::new (static_cast<void*>(place)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
};
using UnsetBytes = std::vector<std::byte, UnsetAllocator<std::byte>>;

// Calls body(at, count) once for each of the pieces that make up `bytes`, in no order; `at` is a
// multiple of 16 MiB. Uses at most `threads` threads, the calling thread included; <= 0 means as
// many as this process has CPUs. Fewer than 64 MiB are one piece. Returns when all calls are done.
void ForPieces(size_t bytes, int threads, absl::FunctionRef<void(size_t at, size_t count)> body);

// Writes a zero into one byte of each page, so that the system provides the pages.
void TouchPages(std::span<std::byte> bytes);

}  // namespace kiln::runner
