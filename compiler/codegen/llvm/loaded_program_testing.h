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
  // Through a memory file and dlopen(RTLD_NOW), so that an open symbol is an error here.
  static StatusOr<LoadedProgram> Load(const std::string& binary);
  LoadedProgram(LoadedProgram&& other) noexcept;
  LoadedProgram& operator=(LoadedProgram&&) = delete;
  ~LoadedProgram();

  // Parallel loops run in this thread, in `slices` slices, the last one first.
  void Run(const std::vector<void*>& args, int slices = 3) const;
  // One run in this thread, as if each of `cores` had run its slices beside the others: of every
  // parallel loop the slice that took longest counts.
  double SecondsOn(const std::vector<void*>& args, int cores) const;

 private:
  explicit LoadedProgram(void* library, KilnEntry entry) : library_(library), entry_(entry) {}
  void* library_;
  KilnEntry entry_;
};

// 64-byte aligned zeros between two pages that must not be touched, right behind the first or right
// before the second, so that a read outside faults. What is left of the pages holds a pattern.
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
  size_t inner_size_;     // whole pages
  unsigned char* inner_;  // between the two pages
  unsigned char* data_;
};

}  // namespace kiln::codegen
