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
  int threads = 0;  // 0 = every core this process may run on
  bool pin = true;
};
int DefaultCpuThreads();

// The entry point is valid as long as the object.
struct CpuEntry {
  std::unique_ptr<runtime::SharedObject> object;
  KilnEntry entry = nullptr;
};
// InvalidArgument or NotFound when the artifact is not for a CPU or does not load. Runs its
// constructors.
StatusOr<CpuEntry> LoadCpuEntry(const v1::Artifact& artifact);

// So much must be written that no cache holds anything else.
size_t FlushBytes();

// The cores: a pool of threads from the start. Used by one thread.
class CpuCalls {
 public:
  // `flush`: memory for FlushCaches, FlushBytes() of it, which outlives this; empty: its own, got
  // when it is needed.
  explicit CpuCalls(const CpuDeviceOptions& options, std::span<std::byte> flush = {});
  // Returns when each thread has its stack and its core, and has run something.
  void WaitForThreads();

  // Seconds that `number` calls back to back took together. An error when the program returned one.
  StatusOr<double> Time(KilnEntry entry, std::span<void* const> arguments, int64_t number);
  // Fills the caches of all cores with something else.
  void FlushCaches();

 private:
  void WakeThreads();  // inside of runtime_.Call only

  runtime::ParallelRuntime runtime_;
  std::vector<std::byte> own_flush_;
  std::span<std::byte> flush_;
};

}  // namespace kiln::runner
