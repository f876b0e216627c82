// A compiled CPU program, loaded into this process and called, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/cpu_abi.h"

namespace kiln::codegen {

// Owns the mapped object. Movable. Call from one thread at a time.
class LoadedProgram {
 public:
  // Loads through a memory file and dlopen(RTLD_NOW), so that an open symbol is an error here.
  static StatusOr<LoadedProgram> Load(const std::string& binary);
  LoadedProgram(LoadedProgram&& other) noexcept;
  LoadedProgram& operator=(LoadedProgram&&) = delete;
  ~LoadedProgram();

  // Runs parallel loops in this thread, in `slices` slices, the last one first.
  void Run(const std::vector<void*>& args, int slices = 3) const;
  // Runs once in this thread, and returns the seconds as if each of `cores` had run its slices
  // beside the others: of every parallel loop only the longest slice counts.
  double SecondsOn(const std::vector<void*>& args, int cores) const;

 private:
  explicit LoadedProgram(void* library, KilnEntry entry) : library_(library), entry_(entry) {}
  void* library_;
  KilnEntry entry_;
};

// 64-byte aligned zeros between two pages that must not be touched, right behind the first or right
// before the second page, so that a read outside faults. The unused part of the pages holds a
// pattern.
class GuardedBytes {
 public:
  enum class Place : uint8_t { kFront, kBack };
  explicit GuardedBytes(size_t size, Place place = Place::kFront);
  GuardedBytes(GuardedBytes&& other) noexcept;
  GuardedBytes& operator=(GuardedBytes&&) = delete;
  ~GuardedBytes();

  void* data() { return data_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  size_t size() const { return size_; }
  bool PatternIntact() const;

 private:
  size_t size_;
  // A multiple of the page size.
  size_t inner_size_;
  // The memory between the two guard pages.
  unsigned char* inner_;
  unsigned char* data_;
};

}  // namespace kiln::codegen
