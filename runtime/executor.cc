#include "runtime/executor.h"

#include <algorithm>
#include <cmath>
#include <string>

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
  KILN_ASSIGN_OR_RETURN(const NetworkDeviceKind* kind,
                        FindNetworkDeviceKind(file->network().target.kind, options.kinds));
  KILN_ASSIGN_OR_RETURN(auto device, kind->open(file->network(), options));
  std::unique_ptr<Executor> executor(
      new Executor(std::move(file), options.kinds, *kind, std::move(device)));
  KILN_RETURN_IF_ERROR(executor->Start());
  return executor;
}

Executor::~Executor() {
  const DeviceScope scope(*device_);
  device_->WaitForQueuedRuns();
  staged_.clear();
  arena_.Free();
  constants_.Free();
}

Status Executor::LoadKernels() {
  for (std::string_view binary : network().binaries) {
    KILN_RETURN_IF_ERROR(device_->LoadBinary(binary));
  }
  for (const NetworkKernel& kernel : network().kernels) {
    KILN_RETURN_IF_ERROR(device_->LoadKernel(kernel));
  }
  return OkStatus();
}

// Copies the constants also on a CPU, because a run reads large constants once, from memory. In a
// mapped file, whose pages have 4 KiB, the core would look up a page and begin to prefetch anew
// every 4 KiB.
Status Executor::LoadConstants() {
  const std::span<const std::byte> constants = file().constants();
  const auto bytes = static_cast<int64_t>(constants.size());
  if (bytes == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(constants_, DeviceMemory::Allocate(*device_, bytes, "constants"));
  KILN_RETURN_IF_ERROR(
      device_->Copy(constants_.data(), constants.data(), bytes, CopyPath::kToDevice));
  return device_->Synchronize("upload the constants");
}

// Returns null for a buffer that belongs to the caller, until it has an address.
std::byte* Executor::BaseOf(int32_t root) const {
  const NetworkBuffer& from = buffer(root);
  if (from.place == Place::kArena) return arena_.data() + from.offset;
  if (from.place == Place::kConstant) return constants_.data() + from.offset;
  return static_cast<std::byte*>(calls_.callers[static_cast<size_t>(root)]);
}

void Executor::BindKernels() {
  calls_.callers.resize(network().buffers.size());
  patches_.resize(network().buffers.size());
  for (const NetworkKernel& kernel : network().kernels) {
    std::vector<void*> args;
    for (const KernelArgument& arg : kernel.args) {
      const Region region = RegionOf(network(), arg.buffer);
      std::byte* base = BaseOf(region.root);
      const Place place = buffer(region.root).place;
      if (place == Place::kInput || place == Place::kOutput) {
        patches_[static_cast<size_t>(region.root)].push_back(
            {calls_.args.size(), args.size(), region.offset});
      }
      args.push_back(base == nullptr ? nullptr : base + region.offset);
    }
    calls_.args.push_back(std::move(args));
  }
}

// Inputs of zeros are valid indices.
Status Executor::LetDeviceChoose() {
  std::vector<std::vector<std::byte>> zeros;
  std::vector<const void*> pointers;
  for (const NetworkTensor& input : inputs()) {
    zeros.emplace_back(static_cast<size_t>(buffer(input.buffer).bytes));
    pointers.push_back(zeros.back().data());
  }
  KILN_RETURN_IF_ERROR(SetTimedInputs(pointers));
  KILN_RETURN_IF_ERROR(device_->Choose(calls_));
  // Every run sets the addresses again.
  staged_.clear();
  return OkStatus();
}

Status Executor::Start() {
  const DeviceScope scope(*device_);
  for (const NetworkBuffer& buffer : network().buffers) {
    if (buffer.alignment_bytes <= device_->alignment_bytes()) continue;
    return InvalidArgument(
        "a buffer is aligned to {} bytes, at most {} are possible for the {} target",
        buffer.alignment_bytes, device_->alignment_bytes(), kind_.target);
  }
  for (size_t i = 0; i < outputs().size(); ++i) in_place_.push_back(IsWrittenInPlace(network(), i));
  KILN_RETURN_IF_ERROR(LoadKernels());
  KILN_ASSIGN_OR_RETURN(arena_, DeviceMemory::Allocate(*device_, network().arena_bytes, "buffers"));
  KILN_RETURN_IF_ERROR(LoadConstants());
  BindKernels();
  KILN_RETURN_IF_ERROR(device_->Prepare(calls_));
  return device_->wants_trial() ? LetDeviceChoose() : OkStatus();
}

MemoryUse Executor::memory_use() const {
  std::lock_guard lock(mutex_);
  MemoryUse use{.constants = network().constants_bytes, .arena = arena_.bytes()};
  for (const auto& [root, memory] : staged_) use.staging += memory.bytes();
  return use;
}

void Executor::SetPointer(int32_t root, void* pointer) {
  calls_.callers[static_cast<size_t>(root)] = pointer;
  for (const Patch& patch : patches_[static_cast<size_t>(root)]) {
    calls_.args[patch.kernel][patch.arg] = static_cast<std::byte*>(pointer) + patch.offset;
  }
}

StatusOr<void*> Executor::Staged(int32_t root) {
  DeviceMemory& memory = staged_[root];
  if (memory.bytes() == 0) {
    KILN_ASSIGN_OR_RETURN(
        memory, DeviceMemory::Allocate(*device_, buffer(root).bytes, "inputs and outputs"));
  }
  return static_cast<void*>(memory.data());
}

bool Executor::IsAligned(int32_t root, const void* pointer) const {
  const auto alignment = static_cast<uintptr_t>(buffer(root).alignment_bytes);
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

Status Executor::SetInputs(std::span<const void* const> pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const NetworkTensor& input = inputs()[i];
    const int64_t bytes = buffer(input.buffer).bytes;
    // No kernel reads the input.
    if (bytes == 0) continue;
    void* pointer = const_cast<void*>(pointers[i]);
    KILN_ASSIGN_OR_RETURN(const bool reaches, device_->Reaches(pointer, input.name));
    if (!reaches || !IsAligned(input.buffer, pointer)) {
      KILN_ASSIGN_OR_RETURN(pointer, Staged(input.buffer));
      const Status copied = device_->Copy(pointer, pointers[i], bytes,
                                          reaches ? CopyPath::kOnDevice : CopyPath::kToDevice);
      if (!copied.ok()) return Annotate(copied, fmt::format("input '{}'", input.name));
    }
    SetPointer(input.buffer, pointer);
  }
  return OkStatus();
}

// If `pointers` is empty, the executor's own memory gets all outputs.
Status Executor::SetOutputs(std::span<void* const> pointers) {
  for (size_t i = 0; i < outputs().size(); ++i) {
    if (!in_place_[i]) continue;
    const NetworkTensor& output = outputs()[i];
    bool reaches = false;
    if (!pointers.empty()) {
      KILN_ASSIGN_OR_RETURN(reaches, device_->Reaches(pointers[i], output.name));
    }
    if (reaches && IsAligned(output.buffer, pointers[i])) {
      SetPointer(output.buffer, pointers[i]);
    } else {
      KILN_ASSIGN_OR_RETURN(void* staged, Staged(output.buffer));
      SetPointer(output.buffer, staged);
    }
  }
  return OkStatus();
}

// Copies the outputs that kernels have not written in place.
Status Executor::CopyOutputs(std::span<void* const> pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const NetworkTensor& output = outputs()[i];
    const Region region = RegionOf(network(), output.buffer);
    const std::byte* from = BaseOf(region.root) + region.offset;
    if (region.bytes == 0 || from == pointers[i]) continue;
    KILN_ASSIGN_OR_RETURN(const bool reaches, device_->Reaches(pointers[i], output.name));
    const Status copied = device_->Copy(pointers[i], from, region.bytes,
                                        reaches ? CopyPath::kOnDevice : CopyPath::kFromDevice);
    if (!copied.ok()) return Annotate(copied, fmt::format("output '{}'", output.name));
  }
  return OkStatus();
}

// Queues what belongs to a run that has begun. After an error, a part of it is queued.
Status Executor::QueueLocked(std::span<const void* const> in, std::span<void* const> out) {
  KILN_RETURN_IF_ERROR(SetInputs(in));
  KILN_RETURN_IF_ERROR(SetOutputs(out));
  KILN_RETURN_IF_ERROR(device_->LaunchAll(calls_));
  return CopyOutputs(out);
}

Status Executor::CheckMemory(std::span<const void* const> inputs,
                             std::span<void* const> outputs) const {
  KILN_RETURN_IF_ERROR(CheckPointers(network(), "inputs", this->inputs(), inputs));
  KILN_RETURN_IF_ERROR(CheckPointers(network(), "outputs", this->outputs(), outputs));
  return CheckApart(network(), inputs, outputs);
}

Status Executor::CheckStreams() const {
  if (kind_.has_streams) return OkStatus();
  return FailedPrecondition("the network runs on {}, which has no streams",
                            DeviceText(device(), kinds_));
}

Status Executor::Run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  KILN_RETURN_IF_ERROR(CheckMemory(inputs, outputs));
  std::lock_guard lock(mutex_);
  const DeviceScope scope(*device_);
  KILN_RETURN_IF_ERROR(device_->BeginRun(std::nullopt));
  const Status queued = QueueLocked(inputs, outputs);
  // The wait happens also after an error, because nothing may still read or write the caller's
  // memory.
  const Status done = device_->Synchronize("run the network");
  return queued.ok() ? done : queued;
}

Status Executor::Queue(std::span<const void* const> inputs, std::span<void* const> outputs,
                       void* stream) {
  KILN_RETURN_IF_ERROR(CheckStreams());
  KILN_RETURN_IF_ERROR(CheckMemory(inputs, outputs));
  std::lock_guard lock(mutex_);
  const DeviceScope scope(*device_);
  KILN_RETURN_IF_ERROR(device_->BeginRun(stream));
  const Status queued = QueueLocked(inputs, outputs);
  // The run ends also after an error, because the next run must wait for the kernels that were
  // launched.
  const Status ended = device_->EndQueuedRun(arena_.bytes() > 0 || !staged_.empty());
  return queued.ok() ? ended : queued;
}

// The outputs go to the executor's own memory.
Status Executor::SetTimedInputs(std::span<const void* const> given) {
  KILN_RETURN_IF_ERROR(device_->BeginRun(std::nullopt));
  Status queued = SetInputs(given);
  if (queued.ok()) queued = SetOutputs({});
  // The wait happens also after an error, as in Run.
  const Status done = device_->Synchronize("copy the inputs");
  return queued.ok() ? done : queued;
}

Status Executor::StartTimingLocked(std::span<const void* const> given) {
  if (!given.empty() || inputs().empty()) {
    KILN_RETURN_IF_ERROR(CheckPointers(network(), "inputs", inputs(), given));
    return SetTimedInputs(given);
  }
  std::vector<const void*> pointers;
  for (size_t i = 0; i < inputs().size(); ++i) {
    if (random_inputs_.size() <= i) {
      const NetworkTensor& input = inputs()[i];
      random_inputs_.emplace_back(static_cast<size_t>(buffer(input.buffer).bytes));
      FillRandomly(random_inputs_.back(), *ParseDType(input.dtype), i);
    }
    pointers.push_back(random_inputs_[i].data());
  }
  return SetTimedInputs(pointers);
}

StatusOr<std::vector<double>> Executor::Bench(const BenchOptions& options,
                                              std::span<const void* const> inputs) {
  if (options.repeat < 1 || options.number < 1) {
    return InvalidArgument("repeat is {} and number {}, expected at least 1", options.repeat,
                           options.number);
  }
  std::lock_guard lock(mutex_);
  const DeviceScope scope(*device_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  if (options.warmup > 0) KILN_RETURN_IF_ERROR(device_->TimeRuns(calls_, options.warmup).status());
  std::vector<double> seconds;
  int64_t number = options.number;
  while (static_cast<int>(seconds.size()) < options.repeat) {
    KILN_ASSIGN_OR_RETURN(const double all_s, device_->TimeRuns(calls_, number));
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
  const DeviceScope scope(*device_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  return device_->TimeKernels(calls_, number);
}

StatusOr<std::vector<double>> Executor::ProfileInNetwork(int64_t number,
                                                         std::span<const void* const> inputs) {
  if (number < 1) return InvalidArgument("number is {}, expected at least 1", number);
  std::lock_guard lock(mutex_);
  const DeviceScope scope(*device_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  return device_->TimeKernelsInRuns(calls_, number);
}

StatusOr<std::vector<KernelSpan>> Executor::TraceRun(std::span<const void* const> inputs) {
  std::lock_guard lock(mutex_);
  const DeviceScope scope(*device_);
  KILN_RETURN_IF_ERROR(StartTimingLocked(inputs));
  return device_->TraceRun(calls_);
}

}  // namespace kiln::runtime
