#include "runtime/kiln_runtime.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

#include "runtime/c_api.h"
#include "runtime/dl_tensor.h"
#include "runtime/executor.h"

namespace kiln::runtime {
namespace {

std::string& LastError() {
  thread_local std::string error = "no call has failed";
  return error;
}

int Fail(std::string_view message) {
  LastError() = message;
  return -1;
}
int Result(const Status& status) { return status.ok() ? 0 : Fail(Message(status)); }

// Callers of C know no exceptions. The only exception that can occur here is a lack of memory.
template <typename F>
auto Guarded(const F& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& error) {
    return Fail(error.what());
  }
}

// Copies the options from the caller's struct, which may be an older, shorter one.
template <typename Options>
StatusOr<Options> CopyOptions(const Options* given) {
  Options options{};
  if (given == nullptr) return options;
  if (given->size < sizeof(size_t) || given->size > sizeof(Options)) {
    return InvalidArgument("the size of options is {}, expected at most {}: set it to their sizeof",
                           given->size, sizeof(Options));
  }
  std::memcpy(&options, given, given->size);
  return options;
}

ExecutorOptions OptionsOf(const KilnLoadOptions& options) {
  ExecutorOptions result;
  result.check_constants = options.skip_checksum == 0;
  result.threads = options.threads;
  result.pin = options.no_pinning == 0;
  result.gpu = options.gpu;
  if (options.streams > 0) result.streams = options.streams;
  return result;
}

using Executors = StatusOr<std::unique_ptr<Executor>>;

Executors LoadPath(const char* path, const ExecutorOptions& options) {
  if (path == nullptr) return InvalidArgument("the path is NULL");
  return Executor::Load(path, options);
}

Executors LoadMemory(const void* bytes, size_t size, const ExecutorOptions& options) {
  if (bytes == nullptr) return InvalidArgument("the bytes are NULL");
  const std::span memory(static_cast<const std::byte*>(bytes), size);
  KILN_ASSIGN_OR_RETURN(
      auto file, NetworkFile::InMemory(memory, {.check_constants = options.check_constants}));
  return Executor::Load(std::move(file), options);
}

StatusOr<KilnNetwork*> NewNetwork(const std::function<Executors(const ExecutorOptions&)>& load,
                                  const KilnLoadOptions* given, NetworkDeviceKinds kinds) {
  KILN_ASSIGN_OR_RETURN(const KilnLoadOptions options, CopyOptions(given));
  ExecutorOptions executor_options = OptionsOf(options);
  executor_options.kinds = kinds;
  KILN_ASSIGN_OR_RETURN(auto executor, load(executor_options));
  const Network& net = executor->network();
  auto inputs = WantedTensors(net.inputs), outputs = WantedTensors(net.outputs);
  const TensorPlace place{executor->device(), kinds};
  return new KilnNetwork{std::move(executor), place, std::move(inputs), std::move(outputs)};
}

KilnNetwork* NetworkOrNull(const std::function<Executors(const ExecutorOptions&)>& load,
                           const KilnLoadOptions* options) {
  KilnNetwork* network = nullptr;
  Guarded([&]() -> int {
    const auto loaded = NewNetwork(load, options, AllNetworkDeviceKinds());
    if (!loaded.ok()) return Result(loaded.status());
    network = *loaded;
    return 0;
  });
  return network;
}

int TensorInfo(std::span<const NetworkTensor> tensors, const Network& network, int32_t index,
               KilnTensorInfo* info) {
  if (index < 0 || index >= static_cast<int32_t>(tensors.size())) {
    return Fail(fmt::format("there is no tensor {}, the network has {}", index, tensors.size()));
  }
  const NetworkTensor& tensor = tensors[static_cast<size_t>(index)];
  *info = {.name = tensor.name.c_str(),
           .dtype = tensor.dtype.c_str(),
           .ndim = static_cast<int32_t>(tensor.shape.size()),
           .shape = tensor.shape.data(),
           .bytes = network.buffers[static_cast<size_t>(tensor.buffer)].bytes};
  return 0;
}

template <typename T>
StatusOr<std::span<T const>> Pointers(T const* pointers, int32_t count, std::string_view what) {
  if (count < 0 || (pointers == nullptr && count > 0)) {
    return InvalidArgument("{} {} at {}", count, what, fmt::ptr(pointers));
  }
  return std::span<T const>(pointers, static_cast<size_t>(count));
}

Status RunPointers(Executor& executor, const void* const* inputs, int32_t num_inputs,
                   void* const* outputs, int32_t num_outputs) {
  KILN_ASSIGN_OR_RETURN(const auto in, Pointers<const void*>(inputs, num_inputs, "inputs"));
  KILN_ASSIGN_OR_RETURN(const auto out, Pointers<void*>(outputs, num_outputs, "outputs"));
  return executor.Run(in, out);
}

// The addresses of a call's tensors. Few of them take no memory of the heap.
template <typename Pointer>
class Addresses {
 public:
  explicit Addresses(size_t count) : count_(count) {
    if (count > std::size(few_)) many_.resize(count);
  }
  std::span<Pointer> get() {
    return count_ > std::size(few_) ? std::span<Pointer>(many_) : std::span<Pointer>(few_, count_);
  }

 private:
  const size_t count_;
  Pointer few_[16];
  std::vector<Pointer> many_;
};

// Writes the address of each tensor's elements.
template <typename Pointer>
Status ReadTensors(const TensorPlace& place, bool on_device, std::string_view what,
                   std::span<const WantedTensor> wanted, const KilnDLTensor* const* given,
                   int32_t count, std::span<Pointer> addresses) {
  KILN_ASSIGN_OR_RETURN(const auto tensors, Pointers<const KilnDLTensor*>(given, count, what));
  if (tensors.size() != wanted.size()) {
    return InvalidArgument("{} {} given, the network has {}", count, what, wanted.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    KILN_RETURN_IF_ERROR(CheckTensor(tensors[i], wanted[i], place));
    if (on_device) KILN_RETURN_IF_ERROR(CheckOnDevice(*tensors[i], wanted[i], place));
    addresses[i] = ElementsOf(*tensors[i]);
  }
  return OkStatus();
}

// Runs the network, or queues a run if there is a stream.
Status RunTensors(const KilnNetwork& network, const KilnDLTensor* const* inputs, int32_t num_inputs,
                  const KilnDLTensor* const* outputs, int32_t num_outputs,
                  std::optional<void*> stream) {
  Executor& executor = *network.executor;
  if (stream) KILN_RETURN_IF_ERROR(executor.CheckStreams());
  Addresses<const void*> in(network.inputs.size());
  Addresses<void*> out(network.outputs.size());
  KILN_RETURN_IF_ERROR(ReadTensors(network.place, stream.has_value(), "inputs", network.inputs,
                                   inputs, num_inputs, in.get()));
  KILN_RETURN_IF_ERROR(ReadTensors(network.place, stream.has_value(), "outputs", network.outputs,
                                   outputs, num_outputs, out.get()));
  return stream ? executor.Queue(in.get(), out.get(), *stream) : executor.Run(in.get(), out.get());
}

StatusOr<std::vector<double>> Bench(Executor& executor, const KilnBenchOptions* given,
                                    const void* const* inputs, int32_t num_inputs) {
  KILN_ASSIGN_OR_RETURN(const KilnBenchOptions options, CopyOptions(given));
  KILN_ASSIGN_OR_RETURN(const auto in, Pointers<const void*>(inputs, num_inputs, "inputs"));
  BenchOptions bench{.min_repeat_s = options.min_repeat_s};
  if (options.warmup != 0) bench.warmup = options.warmup;
  if (options.repeat != 0) bench.repeat = options.repeat;
  if (options.number != 0) bench.number = options.number;
  return executor.Bench(bench, in);
}

int32_t Store(const StatusOr<std::vector<double>>& values, double* into, int32_t capacity) {
  if (!values.ok()) return Fail(Message(values.status()));
  if (into == nullptr || static_cast<int64_t>(values->size()) > capacity) {
    return Fail(fmt::format("there are {} values, and room for {}", values->size(), capacity));
  }
  std::copy(values->begin(), values->end(), into);
  return static_cast<int32_t>(values->size());
}

}  // namespace

StatusOr<KilnNetwork*> LoadNetwork(const char* path, const KilnLoadOptions* options,
                                   NetworkDeviceKinds kinds) {
  return NewNetwork([&](const ExecutorOptions& given) { return LoadPath(path, given); }, options,
                    kinds);
}

}  // namespace kiln::runtime

// The functions that follow are C's.
using namespace kiln::runtime;

extern "C" {

int kiln_abi_version(void) { return KILN_RUNTIME_ABI; }

const char* kiln_version(void) {
  static const std::string version = fmt::format("Kiln runtime, ABI {}, files of version {}",
                                                 KILN_RUNTIME_ABI, kNetworkFileVersion);
  return version.c_str();
}

const char* kiln_last_error(void) { return LastError().c_str(); }

KilnNetwork* kiln_load(const char* path, const KilnLoadOptions* options) {
  return NetworkOrNull([&](const ExecutorOptions& given) { return LoadPath(path, given); },
                       options);
}

KilnNetwork* kiln_load_memory(const void* bytes, size_t size, const KilnLoadOptions* options) {
  return NetworkOrNull([&](const ExecutorOptions& given) { return LoadMemory(bytes, size, given); },
                       options);
}

void kiln_free(KilnNetwork* network) { delete network; }

int32_t kiln_num_inputs(const KilnNetwork* network) {
  return static_cast<int32_t>(network->executor->inputs().size());
}
int32_t kiln_num_outputs(const KilnNetwork* network) {
  return static_cast<int32_t>(network->executor->outputs().size());
}
int kiln_input_info(const KilnNetwork* network, int32_t index, KilnTensorInfo* info) {
  const Executor& executor = *network->executor;
  return TensorInfo(executor.inputs(), executor.network(), index, info);
}
int kiln_output_info(const KilnNetwork* network, int32_t index, KilnTensorInfo* info) {
  const Executor& executor = *network->executor;
  return TensorInfo(executor.outputs(), executor.network(), index, info);
}

int kiln_run(KilnNetwork* network, const void* const* inputs, int32_t num_inputs,
             void* const* outputs, int32_t num_outputs) {
  return Guarded([&] {
    return Result(RunPointers(*network->executor, inputs, num_inputs, outputs, num_outputs));
  });
}

int kiln_run_tensors(KilnNetwork* network, const KilnDLTensor* const* inputs, int32_t num_inputs,
                     const KilnDLTensor* const* outputs, int32_t num_outputs) {
  return Guarded([&] {
    return Result(RunTensors(*network, inputs, num_inputs, outputs, num_outputs, std::nullopt));
  });
}

int kiln_run_on_stream(KilnNetwork* network, const KilnDLTensor* const* inputs, int32_t num_inputs,
                       const KilnDLTensor* const* outputs, int32_t num_outputs, void* stream) {
  return Guarded([&] {
    return Result(RunTensors(*network, inputs, num_inputs, outputs, num_outputs,
                             std::optional<void*>(stream)));
  });
}

KilnDLDevice kiln_device(const KilnNetwork* network) {
  return {network->place.device.type, network->place.device.number};
}

int32_t kiln_bench(KilnNetwork* network, const KilnBenchOptions* options, const void* const* inputs,
                   int32_t num_inputs, double* seconds, int32_t capacity) {
  return Guarded([&] {
    return Store(Bench(*network->executor, options, inputs, num_inputs), seconds, capacity);
  });
}

int32_t kiln_num_kernels(const KilnNetwork* network) {
  return static_cast<int32_t>(network->executor->network().kernels.size());
}

int kiln_kernel_info(const KilnNetwork* network, int32_t index, KilnKernelInfo* info) {
  const auto& kernels = network->executor->network().kernels;
  if (index < 0 || index >= kiln_num_kernels(network)) {
    return Fail(fmt::format("there is no kernel {}, the network has {}", index, kernels.size()));
  }
  const NetworkKernel& kernel = kernels[static_cast<size_t>(index)];
  *info = {.name = kernel.name.c_str(),
           .workload = kernel.workload_key.c_str(),
           .source = SourceName(kernel.source).data(),
           .record = kernel.record.c_str(),
           .expected_s = kernel.expected_s,
           .flops = kernel.flops,
           .bytes = kernel.bytes};
  return 0;
}

int32_t kiln_profile(KilnNetwork* network, int64_t number, const void* const* inputs,
                     int32_t num_inputs, double* seconds, int32_t capacity) {
  return Guarded([&]() -> int32_t {
    const auto in = Pointers<const void*>(inputs, num_inputs, "inputs");
    if (!in.ok()) return Result(in.status());
    return Store(network->executor->Profile(number, *in), seconds, capacity);
  });
}

void kiln_memory_use(const KilnNetwork* network, KilnMemoryUse* use) {
  const MemoryUse from = network->executor->memory_use();
  *use = {from.constants, from.arena, from.staging};
}

}  // extern "C"
