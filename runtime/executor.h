// Runs a compiled network on the device that it was compiled for.
//
//   ASSIGN_OR_RETURN(auto executor, Executor::Load("net.kiln"));
//   const void* inputs[] = {x.data()};
//   void* outputs[] = {y.data()};
//   executor->Run(inputs, outputs);
//
// An executor places the network's buffers in the memory of a device (network_device.h), copies
// what the device cannot use in place, and gives kernels their arguments. On a CPU, kernels are
// called one after another. A network of much work runs on a fixed pool of pinned threads, which
// the executor owns. A network of little work (kLittleWork) runs on the thread that calls it,
// because handing it over takes some 10 microseconds; its parallel loops use the pool, but a
// network of hardly any work (kHardlyAnyWork) has no use for one. With CUDA, all kernels are one
// CUDA graph, with branches beside each other if that is faster. The executor includes no compiler,
// and needs only the driver of CUDA.
//
// Any thread may call an executor; calls wait for each other. Several executors run beside each
// other, also for the same file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/executor_options.h"
#include "runtime/network.h"
#include "runtime/network_device.h"
#include "runtime/network_device_kinds.h"
#include "runtime/network_file.h"

namespace kiln::runtime {

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
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const NetworkFile& file() const { return *file_; }
  const Network& network() const { return file_->network(); }
  std::span<const NetworkTensor> inputs() const { return network().inputs; }
  std::span<const NetworkTensor> outputs() const { return network().outputs; }
  // The device on which the network runs.
  DlDevice device() const { return {kind_.dl_type, device_->number()}; }

  // Runs the network. There is one pointer per input and output, to as many bytes as the tensor
  // has. Outputs overlap neither each other nor inputs. Pointers are to host memory, and for CUDA
  // also to memory of its GPU, which is used in place. Memory with less alignment than the
  // kernels want (mostly 64 bytes) is copied. Waits for the legacy default stream of CUDA, and
  // returns when the outputs are there. After an error the outputs may hold anything.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Queues a run on a stream of the network's GPU (a CuStream; null: the legacy default stream),
  // and returns without waiting. The memory is the GPU's, and stays as it is until the stream is
  // done. Runs of one network on several streams wait for each other on the GPU as far as they
  // share memory. A stream that is recorded into a graph (cuStreamBeginCapture) gets the kernels
  // one after another; the graph must be destroyed before this object, and its launches must not
  // overlap other runs of the network. The first run with new memory may allocate host memory;
  // nothing allocates memory of the GPU but the first run with memory that is not aligned, which is
  // copied.
  Status Queue(std::span<const void* const> inputs, std::span<void* const> outputs, void* stream);
  // FailedPrecondition on a device without streams, such as a CPU.
  Status CheckStreams() const;

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

  // Returns when each kernel ran in one run of the network, in order. The kernels run one after
  // another, also where they overlap in other runs: on CUDA the GPU's clock is read between them.
  StatusOr<std::vector<KernelSpan>> TraceRun(std::span<const void* const> inputs = {});

  // Waits for calls that are running, which may allocate.
  MemoryUse memory_use() const;

 private:
  // An argument of a kernel, at an offset in a buffer that belongs to the caller.
  struct Patch {
    size_t kernel;
    size_t arg;
    int64_t offset;
  };

  Executor(std::shared_ptr<const NetworkFile> file, NetworkDeviceKinds kinds,
           const NetworkDeviceKind& kind, std::unique_ptr<NetworkDevice> device)
      : file_(std::move(file)), kinds_(kinds), kind_(kind), device_(std::move(device)) {}

  const NetworkBuffer& buffer(int32_t number) const {
    return network().buffers[static_cast<size_t>(number)];
  }
  Status Start();
  Status LoadKernels();
  Status LoadConstants();
  void BindKernels();
  Status LetDeviceChoose();

  std::byte* BaseOf(int32_t root) const;
  void SetPointer(int32_t root, void* pointer);
  StatusOr<void*> Staged(int32_t root);
  bool IsAligned(int32_t root, const void* pointer) const;
  Status SetInputs(std::span<const void* const> inputs);
  Status SetOutputs(std::span<void* const> outputs);
  Status CopyOutputs(std::span<void* const> outputs);
  Status CheckMemory(std::span<const void* const> inputs, std::span<void* const> outputs) const;
  Status QueueLocked(std::span<const void* const> inputs, std::span<void* const> outputs);
  Status SetTimedInputs(std::span<const void* const> inputs);
  Status StartTimingLocked(std::span<const void* const> inputs);

  const std::shared_ptr<const NetworkFile> file_;
  const NetworkDeviceKinds kinds_;
  const NetworkDeviceKind& kind_;
  const std::unique_ptr<NetworkDevice> device_;
  // Guards all members below.
  mutable std::mutex mutex_;
  DeviceMemory constants_;
  DeviceMemory arena_;
  // Memory in place of the caller's, by buffer.
  std::map<int32_t, DeviceMemory> staged_;
  KernelCalls calls_;
  // Whether each output is written in place.
  std::vector<bool> in_place_;
  // Arguments in each buffer that belongs to the caller.
  std::vector<std::vector<Patch>> patches_;
  std::vector<std::vector<std::byte>> random_inputs_;
};

}  // namespace kiln::runtime
