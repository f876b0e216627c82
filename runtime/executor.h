// Runs a compiled network on the device that it was compiled for.
//
//   ASSIGN_OR_RETURN(auto executor, Executor::Load("net.kiln"));
//   const void* inputs[] = {x.data()};
//   void* outputs[] = {y.data()};
//   executor->Run(inputs, outputs);
//
// On a CPU, kernels are called one after another, and inputs, outputs and constants are used in
// place. A network of much work runs on a fixed pool of pinned threads, which the executor owns. A
// network of little work (kLittleWork) runs on the thread that calls it, because handing it over
// takes some 10 microseconds; its parallel loops use the pool, but a network of hardly any work
// (kHardlyAnyWork) has no use for one. With CUDA, all kernels are one CUDA graph, with
// branches beside each other if that is faster, and constants are uploaded when the network is
// loaded. The executor includes no compiler, and needs only the driver of CUDA.
//
// Any thread may call an executor; calls wait for each other. Several executors run beside each
// other, also for the same file.
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

// Operations of a network's kernels plus bytes of their arguments: about 0.1 to 0.5 ms of one core,
// and about 10 us.
inline constexpr double kLittleWork = 1 << 20;
inline constexpr double kHardlyAnyWork = 1 << 15;

struct ExecutorOptions {
  // Checks the constants' checksum when the file is opened.
  bool check_constants = true;
  // Number of threads on a CPU, the caller not included; 0: one per core that this process may run
  // on. A network of hardly any work has one.
  int threads = 0;
  // Ties each thread to a core of the CPU.
  bool pin = true;
  // Number of the GPU, as CUDA counts.
  int gpu = 0;
  // Streams that branches may use. 0: 4 or 1, by a few runs of both while the network is loaded
  // (some ten milliseconds, only for networks with branches). Branches that run beside each other
  // take room from each other, and the kernel after a join cannot be launched early.
  int streams = 0;
  // Null: the driver of this machine.
  const CudaDriver* driver = nullptr;
};

struct BenchOptions {
  // Runs that are not timed.
  int warmup = 3;
  // Number of readings, at least 1.
  int repeat = 10;
  // Runs of one reading, back to back.
  int64_t number = 1;
  // More runs are added until a reading takes this long.
  double min_repeat_s = 0;
};

// Memory use of this process in bytes.
struct MemoryUse {
  int64_t constants = 0;
  int64_t arena = 0;
  // Copies of inputs and outputs that could not be used in place.
  int64_t staging = 0;
};

class Executor {
 public:
  // FailedPrecondition if the file was compiled for another device. The message says what the file
  // needs and what is here.
  static StatusOr<std::unique_ptr<Executor>> Load(const std::string& path,
                                                  const ExecutorOptions& options = {});
  static StatusOr<std::unique_ptr<Executor>> Load(std::shared_ptr<const NetworkFile> file,
                                                  const ExecutorOptions& options = {});
  virtual ~Executor() = default;

  const NetworkFile& file() const { return *file_; }
  const Network& network() const { return file_->network(); }
  std::span<const NetworkTensor> inputs() const { return network().inputs; }
  std::span<const NetworkTensor> outputs() const { return network().outputs; }

  // Runs the network. There is one pointer per input and output, to as many bytes as the tensor
  // has. Outputs overlap neither each other nor inputs. Pointers are to host memory, and for CUDA
  // also to memory of its GPU, which is used in place. Memory with less alignment than the
  // kernels want (mostly 64 bytes) is copied. Waits for the legacy default stream of CUDA, and
  // returns when the outputs are there. After an error the outputs may hold anything.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Queues a run on a stream of the network's GPU (null: the legacy default stream), and returns
  // without waiting. The memory is the GPU's, and stays as it is until the stream is done. Runs of
  // one network on several streams wait for each other on the GPU as far as they share memory.
  // A stream that is recorded into a graph (cuStreamBeginCapture) gets the kernels one after
  // another; the graph must be destroyed before this object, and its launches must not overlap
  // other runs of the network. The first run with new memory may allocate host memory; nothing
  // allocates memory of the GPU but the first run with memory that is not aligned, which is copied.
  // FailedPrecondition on a CPU.
  Status Queue(std::span<const void* const> inputs, std::span<void* const> outputs,
               CuStream stream);

  // Returns the seconds of one run, for each reading. On CUDA the GPU's clock measures the graph,
  // with inputs and outputs in the GPU's memory. `inputs` is as for Run; if empty, floats are
  // random and integers zero.
  StatusOr<std::vector<double>> Bench(const BenchOptions& options = {},
                                      std::span<const void* const> inputs = {});

  // Returns the seconds of each kernel by itself, in order: the mean of `number` calls back to
  // back, which find the data of the calls before them in the caches.
  StatusOr<std::vector<double>> Profile(int64_t number = 20,
                                        std::span<const void* const> inputs = {});

  // Returns the mean seconds of each kernel within `number` runs of the network, in order.
  // Constants are then wherever the other kernels left them, which is memory for a large network's
  // constants. Unimplemented on CUDA, where kernels overlap and a clock between them would prevent
  // that.
  StatusOr<std::vector<double>> ProfileInNetwork(int64_t number = 20,
                                                 std::span<const void* const> inputs = {});

  virtual MemoryUse memory_use() const = 0;

 protected:
  explicit Executor(std::shared_ptr<const NetworkFile> file) : file_(std::move(file)) {}

 private:
  // Only one of the functions below is called at a time. There is one pointer per tensor, and none
  // is null.
  virtual Status DoRun(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
  virtual Status DoQueue(std::span<const void* const> inputs, std::span<void* const> outputs,
                         CuStream stream) = 0;
  // Sets the inputs for the timing that follows. The outputs go to the executor's own memory.
  virtual Status StartTiming(std::span<const void* const> inputs) = 0;
  // Returns the seconds of all runs together.
  virtual StatusOr<double> TimeRuns(int64_t number) = 0;
  virtual StatusOr<std::vector<double>> TimeKernels(int64_t number) = 0;
  virtual StatusOr<std::vector<double>> TimeKernelsInRuns(int64_t number) = 0;

  Status CheckMemory(std::span<const void* const> inputs, std::span<void* const> outputs) const;
  Status StartTimingLocked(std::span<const void* const> inputs);

  const std::shared_ptr<const NetworkFile> file_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> random_inputs_;
};

}  // namespace kiln::runtime
