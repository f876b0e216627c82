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

template <typename Pointer>
Status CheckPointers(std::string_view what, std::span<const NetworkTensor> tensors,
                     std::span<Pointer const> pointers) {
  if (tensors.size() != pointers.size()) {
    return InvalidArgument("{} {} given, the network has {}", pointers.size(), what,
                           tensors.size());
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_empty = std::ranges::find(tensors[i].shape, 0) != tensors[i].shape.end();
    if (pointers[i] != nullptr || is_empty) continue;
    return InvalidArgument("the pointer to '{}' ({} {}) is null", tensors[i].name, what, i);
  }
  return OkStatus();
}

// Refuses outputs that overlap inputs or each other, because kernels write outputs while they still
// read inputs.
Status CheckApart(const Network& network, std::span<const void* const> inputs,
                  std::span<void* const> outputs) {
  struct Given {
    std::string_view what;
    const NetworkTensor* tensor;
    uintptr_t begin;
    uintptr_t end;
  };
  std::vector<Given> all;
  const auto add = [&](std::string_view what, const NetworkTensor& tensor, const void* pointer) {
    const auto begin = reinterpret_cast<uintptr_t>(pointer);
    const int64_t bytes = network.buffers[static_cast<size_t>(tensor.buffer)].bytes;
    if (bytes == 0) return false;
    all.push_back({what, &tensor, begin, begin + static_cast<uintptr_t>(bytes)});
    return true;
  };
  for (size_t i = 0; i < inputs.size(); ++i) add("input", network.inputs[i], inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!add("output", network.outputs[i], outputs[i])) continue;
    const Given output = all.back();
    for (const Given& other : std::span(all).first(all.size() - 1)) {
      if (output.begin >= other.end || other.begin >= output.end) continue;
      return InvalidArgument("output '{}' overlaps {} '{}' in memory; give it memory of its own",
                             output.tensor->name, other.what, other.tensor->name);
    }
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

Status Executor::Run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  KILN_RETURN_IF_ERROR(CheckPointers("inputs", this->inputs(), inputs));
  KILN_RETURN_IF_ERROR(CheckPointers("outputs", this->outputs(), outputs));
  KILN_RETURN_IF_ERROR(CheckApart(network(), inputs, outputs));
  std::lock_guard lock(mutex_);
  return DoRun(inputs, outputs);
}

Status Executor::StartTimingLocked(std::span<const void* const> given) {
  if (!given.empty() || inputs().empty()) {
    KILN_RETURN_IF_ERROR(CheckPointers("inputs", inputs(), given));
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
