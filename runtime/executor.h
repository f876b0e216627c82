// Runs a compiled network on the device that it was compiled for.
//
//   ASSIGN_OR_RETURN(auto executor, Executor::Load("net.kiln"));
//   const void* inputs[] = {x.data()};
//   void* outputs[] = {y.data()};
//   executor->Run(inputs, outputs);
//
// CPU: kernels are called one after another on a fixed pool of pinned threads; inputs, outputs and
// constants are used where they are. CUDA: all kernels are one CUDA graph, branches beside each
// other where that is faster; constants are uploaded when it is loaded. It includes no compiler, and
// of CUDA needs the driver alone.
//
// An executor may be called from any thread; calls wait for each other. Several executors run beside
// each other, also of one file.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/cuda_driver.h"
#include "runtime/network.h"
#include "runtime/network_file.h"

namespace kiln::runtime {

struct ExecutorOptions {
  bool check_constants = true;  // their checksum, when the file is opened
  // CPU.
  int threads = 0;  // the caller not included; 0: one per core that this process may run on
  bool pin = true;  // each to a core
  // CUDA.
  int gpu = 0;  // as CUDA counts them
  // That branches may use. 0: 4 or 1, whichever a few runs say is faster while the network is loaded
  // (for networks with branches, some ten milliseconds): branches that run beside each other take
  // room from each other, and where they meet the next kernel can't be launched early.
  int streams = 0;
  const CudaDriver* driver = nullptr;  // null: that of this machine
};

struct BenchOptions {
  int warmup = 3;           // runs that are not timed
  int repeat = 10;          // readings, at least 1
  int64_t number = 1;       // runs of one reading, back to back
  double min_repeat_s = 0;  // as many more that a reading takes at least so long
};

// Of this process, in bytes.
struct MemoryUse {
  int64_t constants = 0;
  int64_t arena = 0;
  int64_t staging = 0;  // copies of inputs and outputs that could not be used where they are
};

class Executor {
 public:
  // FailedPrecondition: the file was compiled for another device; what it needs, what is here.
  static StatusOr<std::unique_ptr<Executor>> Load(const std::string& path,
                                                  const ExecutorOptions& options = {});
  static StatusOr<std::unique_ptr<Executor>> Load(std::shared_ptr<const NetworkFile> file,
                                                  const ExecutorOptions& options = {});
  virtual ~Executor() = default;

  const NetworkFile& file() const { return *file_; }
  const Network& network() const { return file_->network(); }
  std::span<const NetworkTensor> inputs() const { return network().inputs; }
  std::span<const NetworkTensor> outputs() const { return network().outputs; }

  // One pointer per input and output, to as many bytes as the tensor has; outputs do not overlap
  // each other or inputs. Host memory; for CUDA also memory of its GPU, which is used where it is.
  // Memory that is not aligned as the kernels want it (64 bytes, mostly) is copied. Waits for the
  // legacy default stream of CUDA and returns when the outputs are there. After an error they hold
  // anything.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Seconds of one run, for each reading. CUDA: of the graph, by the GPU's clock, with inputs and
  // outputs in its memory. `inputs`: as for Run; none: random floats, zeros of integers.
  StatusOr<std::vector<double>> Bench(const BenchOptions& options = {},
                                      std::span<const void* const> inputs = {});

  // Seconds of each kernel by itself, in order: the mean of `number` calls back to back with what
  // came before in the caches.
  StatusOr<std::vector<double>> Profile(int64_t number = 20,
                                        std::span<const void* const> inputs = {});

  // Seconds of each kernel within `number` runs of the network, in order: their means. Constants come
  // from where the other kernels left them then, which is memory for those of a large network.
  // Unimplemented on CUDA, where kernels overlap and a clock between them would keep them from it.
  StatusOr<std::vector<double>> ProfileInNetwork(int64_t number = 20,
                                                 std::span<const void* const> inputs = {});

  virtual MemoryUse memory_use() const = 0;

 protected:
  explicit Executor(std::shared_ptr<const NetworkFile> file) : file_(std::move(file)) {}

 private:
  // Of these, one is called at a time. Pointers are as many as there are tensors, and not null.
  virtual Status DoRun(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
  // Sets the inputs of what follows, whose outputs are the executor's own.
  virtual Status StartTiming(std::span<const void* const> inputs) = 0;
  virtual StatusOr<double> TimeRuns(int64_t number) = 0;  // seconds together
  virtual StatusOr<std::vector<double>> TimeKernels(int64_t number) = 0;
  virtual StatusOr<std::vector<double>> TimeKernelsInRuns(int64_t number) = 0;

  Status StartTimingLocked(std::span<const void* const> inputs);

  const std::shared_ptr<const NetworkFile> file_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> random_inputs_;
};

}  // namespace kiln::runtime
