// Work over memory of gigabytes, by several threads. One thread makes some hundred million random
// elements a second, and is given as few fresh pages.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace kiln::runner {

// Bytes without values until they are written.
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

// body(at, count) for pieces that make up `bytes` together, each once, in no order; `at` is a
// multiple of 16 MiB. By at most `threads` threads, the calling one among them; <= 0: as many as
// this process has CPUs. Fewer than 64 MiB are one piece. Returns when all are done.
void ForPieces(size_t bytes, int threads, absl::FunctionRef<void(size_t at, size_t count)> body);

// Writes zeros into one byte of each page, so that the pages are there.
void TouchPages(std::span<std::byte> bytes);

}  // namespace kiln::runner
