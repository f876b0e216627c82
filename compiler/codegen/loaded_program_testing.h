// A compiled CPU program, loaded into this process and called, for tests and benchmarks.
#pragma once

#include <memory>
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

 private:
  explicit LoadedProgram(void* library, KilnEntry entry) : library_(library), entry_(entry) {}
  void* library_;
  KilnEntry entry_;
};

// 64-byte aligned bytes with a guard zone of a known pattern on both sides.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t size);
  void* data() { return storage_.get() + kGuard; }
  template <typename T>
  T* as() {
    return static_cast<T*>(data());
  }
  size_t size() const { return size_; }
  bool GuardsIntact() const;

 private:
  static constexpr size_t kGuard = 256;
  struct Free {
    void operator()(unsigned char* p) const;
  };
  size_t size_;
  std::unique_ptr<unsigned char, Free> storage_;
};

}  // namespace kiln::codegen
