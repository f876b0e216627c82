#include "runtime/executor.h"

#include <algorithm>
#include <cmath>

#include "runtime/cpu_executor.h"
#include "runtime/cuda_executor.h"
#include "runtime/dtype.h"
#include "runtime/random_fill.h"

namespace kiln::runtime {
namespace {

// The runs of a reading that was too short grow by this factor.
constexpr double kGrowth = 1.618;

uintptr_t BytesOf(const Network& network, const NetworkTensor& tensor) {
  return static_cast<uintptr_t>(network.buffers[static_cast<size_t>(tensor.buffer)].bytes);
}

template <typename Pointer>
Status CheckPointers(const Network& network, std::string_view what,
                     std::span<const NetworkTensor> tensors, std::span<Pointer const> pointers) {
  if (tensors.size() != pointers.size()) {
    return InvalidArgument("{} {} given, the network has {}", pointers.size(), what,
                           tensors.size());
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (pointers[i] != nullptr || BytesOf(network, tensors[i]) == 0) continue;
    return InvalidArgument("the pointer to '{}' ({} {}) is null", tensors[i].name, what, i);
  }
  return OkStatus();
}

template <typename Pointer>
Status CheckApartFrom(const Network& network, const NetworkTensor& output, uintptr_t begin,
                      std::string_view what, std::span<const NetworkTensor> tensors,
                      std::span<Pointer const> pointers) {
  const uintptr_t end = begin + BytesOf(network, output);
  for (size_t i = 0; i < pointers.size(); ++i) {
    const auto other = reinterpret_cast<uintptr_t>(pointers[i]);
    const uintptr_t bytes = BytesOf(network, tensors[i]);
    if (bytes == 0 || begin >= other + bytes || other >= end) continue;
    return InvalidArgument("output '{}' overlaps {} '{}' in memory; give it memory of its own",
                           output.name, what, tensors[i].name);
  }
  return OkStatus();
}

// Refuses outputs that overlap inputs or each other, because kernels write outputs while they still
// read inputs.
Status CheckApart(const Network& network, std::span<const void* const> inputs,
                  std::span<void* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NetworkTensor& output = network.outputs[i];
    if (BytesOf(network, output) == 0) continue;
    const auto begin = reinterpret_cast<uintptr_t>(outputs[i]);
    const std::span<const NetworkTensor> in(network.inputs), out(network.outputs);
    KILN_RETURN_IF_ERROR(CheckApartFrom(network, output, begin, "input", in, inputs));
    KILN_RETURN_IF_ERROR(
        CheckApartFrom(network, output, begin, "output", out.first(i), outputs.first(i)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Executor>> Executor::Load(const std::string& path,
                                                   const ExecutorOptions& options) {
  KILN_ASSIGN_OR_RETURN(auto file,
                        NetworkFile::Open(path, {.check_constants = options.check_constants}));
  auto executor = Load(std::move(file), options);
  if (!executor.ok()) return Annotate(executor.status(), path);
  return executor;
}

StatusOr<std::unique_ptr<Executor>> Executor::Load(std::shared_ptr<const NetworkFile> file,
                                                   const ExecutorOptions& options) {
  const std::string& kind = file->network().target.kind;
  if (kind == "cpu") return LoadOnCpu(std::move(file), options);
  if (kind == "cuda") return LoadOnCuda(std::move(file), options);
  return FailedPrecondition("the file was compiled for the {} target, which runs nothing", kind);
}

Status Executor::CheckMemory(std::span<const void* const> inputs,
                             std::span<void* const> outputs) const {
  KILN_RETURN_IF_ERROR(CheckPointers(network(), "inputs", this->inputs(), inputs));
  KILN_RETURN_IF_ERROR(CheckPointers(network(), "outputs", this->outputs(), outputs));
  return CheckApart(network(), inputs, outputs);
}

Status Executor::Run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  KILN_RETURN_IF_ERROR(CheckMemory(inputs, outputs));
  std::lock_guard lock(mutex_);
  return DoRun(inputs, outputs);
}

Status Executor::Queue(std::span<const void* const> inputs, std::span<void* const> outputs,
                       CuStream stream) {
  KILN_RETURN_IF_ERROR(CheckMemory(inputs, outputs));
  std::lock_guard lock(mutex_);
  return DoQueue(inputs, outputs, stream);
}

Status Executor::StartTimingLocked(std::span<const void* const> given) {
  if (!given.empty() || inputs().empty()) {
    KILN_RETURN_IF_ERROR(CheckPointers(network(), "inputs", inputs(), given));
    return StartTiming(given);
  }
  std::vector<const void*> pointers;
  for (size_t i = 0; i < inputs().size(); ++i) {
    if (random_inputs_.size() <= i) {
      const NetworkTensor& input = inputs()[i];
      const int64_t bytes = network().buffers[static_cast<size_t>(input.buffer)].bytes;
      random_inputs_.emplace_back(static_cast<size_t>(bytes));
      FillRandomly(random_inputs_.back(), *ParseDType(input.dtype), i);
    }
    pointers.push_back(random_inputs_[i].data());
  }
  return StartTiming(pointers);
}

StatusOr<std::vector<double>> Executor::Bench(const BenchOptions& options,
                                              std::span<const void* const> inputs) {
  if (options.repeat < 1 || options.number < 1) {
    return InvalidArgument("repeat is {} and number {}, expected at least 1", options.repeat,
                           options.number);
  }
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  if (options.warmup > 0) KILN_RETURN_IF_ERROR(TimeRuns(options.warmup).status());
  std::vector<double> seconds;
  int64_t number = options.number;
  while (static_cast<int>(seconds.size()) < options.repeat) {
    KILN_ASSIGN_OR_RETURN(const double all_s, TimeRuns(number));
    const double one_s = all_s / static_cast<double>(number);
    if (all_s < options.min_repeat_s) {
      const double enough = one_s > 0 ? options.min_repeat_s / one_s + 1 : 0;
      number =
          static_cast<int64_t>(std::clamp(enough, static_cast<double>(number) * kGrowth + 1, 1e9));
      // Such a reading takes the needed time, so the loop ends soon.
      if (number < 1'000'000'000) continue;
    }
    seconds.push_back(one_s);
  }
  return seconds;
}

StatusOr<std::vector<double>> Executor::Profile(int64_t number,
                                                std::span<const void* const> inputs) {
  if (number < 1) return InvalidArgument("number is {}, expected at least 1", number);
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  return TimeKernels(number);
}

StatusOr<std::vector<double>> Executor::ProfileInNetwork(int64_t number,
                                                         std::span<const void* const> inputs) {
  if (number < 1) return InvalidArgument("number is {}, expected at least 1", number);
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  return TimeKernelsInRuns(number);
}

}  // namespace kiln::runtime
