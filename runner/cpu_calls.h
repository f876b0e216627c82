// Calls of a compiled CPU program in this process, on this machine's cores.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "proto/cpu_abi.h"
#include "proto/trial.pb.h"
#include "runtime/parallel_runtime.h"
#include "runtime/shared_object.h"

namespace kiln::runner {

struct CpuDeviceOptions {
  // 0 = every core that this process may run on.
  int threads = 0;
  bool pin = true;
};
int DefaultCpuThreads();

// The entry point is valid as long as the object.
struct CpuEntry {
  std::unique_ptr<runtime::SharedObject> object;
  KilnEntry entry = nullptr;
};
// Loads a program. InvalidArgument or NotFound if the artifact is not for a CPU or does not load.
// Runs the constructors of the program.
StatusOr<CpuEntry> LoadCpuEntry(const v1::Artifact& artifact);

// Returns the bytes to write so that no cache holds anything else.
size_t FlushBytes();

// The cores of this machine: a pool of threads, which exist from the start. Used by one thread.
class CpuCalls {
 public:
  // `flush` is memory for FlushCaches, FlushBytes() of it, which outlives this object. If it is
  // empty, the object gets its own memory when it is needed.
  explicit CpuCalls(const CpuDeviceOptions& options, std::span<std::byte> flush = {});
  // Returns when each thread has its stack and its core, and has run something.
  void WaitForThreads();

  // Returns the seconds that `number` calls back to back took together. An error if the program
  // returned an error.
  StatusOr<double> Time(KilnEntry entry, std::span<void* const> arguments, int64_t number);
  // Fills the caches of all cores with other data.
  void FlushCaches();

 private:
  // Called inside of runtime_.Call only.
  void WakeThreads();

  runtime::ParallelRuntime runtime_;
  std::vector<std::byte> own_flush_;
  std::span<std::byte> flush_;
};

}  // namespace kiln::runner
