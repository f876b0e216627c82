#include "runtime/cpu_executor.h"

#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "base/errno_status.h"
#include "proto/cpu_abi.h"
#include "runtime/call_stack.h"
#include "runtime/cpu_features.h"
#include "runtime/float_environment.h"
#include "runtime/parallel_runtime.h"
#include "runtime/shared_object.h"

namespace kiln::runtime {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Anonymous memory, aligned to a page. Pages that are never touched cost nothing.
class HostBlock {
 public:
  static StatusOr<HostBlock> Allocate(int64_t bytes) {
    HostBlock block;
    if (bytes == 0) return block;
    void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return ResourceExhausted("no memory for {} bytes: {}", bytes, ErrnoText(errno));
    }
    // Huge pages mean fewer pages to look up. The system may refuse them.
    (void)madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    block.bytes_ = {static_cast<std::byte*>(memory), static_cast<size_t>(bytes)};
    return block;
  }
  HostBlock() = default;
  HostBlock(HostBlock&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  HostBlock& operator=(HostBlock&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostBlock() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }

  std::byte* data() const { return bytes_.data(); }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  std::span<std::byte> bytes_;
};

Status CheckThisCpu(const NetworkTarget& target) {
  if (target.arch != HostArch()) {
    return FailedPrecondition(
        "the file was compiled for a CPU of {} ({}), and this one is {}: compile it again for this "
        "machine",
        target.arch, target.text, HostArch());
  }
  const std::vector<std::string> missing = MissingCpuFeatures(target.features);
  if (missing.empty()) return OkStatus();
  return FailedPrecondition(
      "the file was compiled for {}, and this CPU ({}) has no {}: compile it again for this "
      "machine",
      target.text, HostCpuName(), fmt::join(missing, ", "));
}

// Returns the operations of all kernels plus the bytes of their arguments.
double WorkOf(const Network& network) {
  double work = 0;
  for (const NetworkKernel& kernel : network.kernels) {
    work += kernel.flops;
    for (const KernelArgument& arg : kernel.args)
      work += static_cast<double>(network.buffers[static_cast<size_t>(arg.buffer)].bytes);
  }
  return work;
}

int AllThreads() { return std::max<int>(1, static_cast<int>(AllowedCores().size())); }

int ThreadsFor(double work, int wanted) {
  if (work <= kHardlyAnyWork) return 1;
  return wanted > 0 ? wanted : AllThreads();
}

class CpuExecutor : public Executor {
 public:
  CpuExecutor(std::shared_ptr<const NetworkFile> file, const ExecutorOptions& options)
      : Executor(std::move(file)),
        work_(WorkOf(network())),
        runtime_({.threads = ThreadsFor(work_, options.threads), .pin = options.pin}) {}

  Status Start();
  MemoryUse memory_use() const override;

 private:
  struct Step {
    KilnEntry entry = nullptr;
    std::vector<void*> args;
  };
  // An argument that is in the caller's memory.
  struct Patch {
    size_t step;
    size_t arg;
    int64_t offset;
  };

  Status LoadBinaries();
  Status LoadConstants();
  std::byte* BaseOf(int32_t root) const;
  void AddStep(const NetworkKernel& kernel);
  void SetPointer(int32_t root, void* pointer);
  StatusOr<void*> Staged(int32_t root);
  bool IsAligned(int32_t root, const void* pointer) const;
  Status SetInputs(std::span<const void* const> inputs);
  Status CheckCode(int32_t code) const;
  void CopyOutputs(std::span<void* const> outputs);

  Status DoRun(std::span<const void* const> inputs, std::span<void* const> outputs) override;
  Status DoQueue(std::span<const void* const>, std::span<void* const>, CuStream) override {
    return FailedPrecondition("the network runs on the CPU, which has no streams");
  }
  Status StartTiming(std::span<const void* const> inputs) override;
  StatusOr<double> TimeRuns(int64_t number) override;
  StatusOr<std::vector<double>> TimeKernels(int64_t number) override;
  StatusOr<std::vector<double>> TimeKernelsInRuns(int64_t number) override;

  // Runs the kernels on the thread of this call if they are little work, else on the pool's main
  // thread.
  int32_t RunSomewhere();
  // Runs on a thread with the stack and the floating-point environment of programs.
  int32_t RunSteps() {
    int32_t code = 0;
    for (const Step& step : steps_) code |= step.entry(runtime_.context(), step.args.data());
    return code;
  }
  void WakeThreads() {
    runtime_.ParallelFor([](void*, int64_t, int64_t) {}, nullptr, runtime_.threads());
  }

  const double work_;
  // The stack of runs on the caller's thread; none if there are no such runs.
  std::optional<CallStack> call_stack_;
  std::map<std::pair<int32_t, std::string>, KilnEntry> entries_;
  std::vector<std::unique_ptr<SharedObject>> objects_;
  HostBlock constants_;
  HostBlock arena_;
  std::vector<Step> steps_;
  // Patches of each buffer that belongs to the caller.
  std::vector<std::vector<Patch>> patches_;
  // Address of each such buffer in the current run.
  std::vector<void*> pointers_;
  std::map<int32_t, HostBlock> staged_;
  // Whether each output is written in place.
  std::vector<bool> in_place_;
  // The last member, so that its threads end first.
  ParallelRuntime runtime_;
};

Status CpuExecutor::LoadBinaries() {
  const Network& net = network();
  for (std::string_view binary : net.binaries) {
    KILN_ASSIGN_OR_RETURN(auto object, SharedObject::Load(binary));
    objects_.push_back(std::move(object));
  }
  for (const NetworkKernel& kernel : net.kernels) {
    const std::string& symbol = kernel.launches[0].symbol;
    KilnEntry& entry = entries_[{kernel.binary, symbol}];
    if (entry != nullptr) continue;
    auto found = objects_[static_cast<size_t>(kernel.binary)]->Find(symbol.c_str());
    if (!found.ok()) return Annotate(found.status(), fmt::format("kernel '{}'", kernel.name));
    entry = reinterpret_cast<KilnEntry>(*found);
  }
  return OkStatus();
}

// Returns null for a buffer that belongs to the caller.
std::byte* CpuExecutor::BaseOf(int32_t root) const {
  const NetworkBuffer& buffer = network().buffers[static_cast<size_t>(root)];
  if (buffer.place == Place::kArena) return arena_.data() + buffer.offset;
  if (buffer.place == Place::kConstant) return constants_.data() + buffer.offset;
  return static_cast<std::byte*>(pointers_[static_cast<size_t>(root)]);
}

// Copies the constants, because a run reads large constants once, from memory. In a mapped file,
// whose pages have 4 KiB, the core would look up a page and begin to prefetch anew every 4 KiB.
Status CpuExecutor::LoadConstants() {
  const std::span<const std::byte> constants = file().constants();
  KILN_ASSIGN_OR_RETURN(constants_, HostBlock::Allocate(static_cast<int64_t>(constants.size())));
  if (!constants.empty()) std::memcpy(constants_.data(), constants.data(), constants.size());
  return OkStatus();
}

void CpuExecutor::AddStep(const NetworkKernel& kernel) {
  Step step{.entry = entries_.at({kernel.binary, kernel.launches[0].symbol}), .args = {}};
  for (const KernelArgument& arg : kernel.args) {
    const Region region = RegionOf(network(), arg.buffer);
    std::byte* base = BaseOf(region.root);
    if (base == nullptr) {
      patches_[static_cast<size_t>(region.root)].push_back(
          {steps_.size(), step.args.size(), region.offset});
    }
    step.args.push_back(base == nullptr ? nullptr : base + region.offset);
  }
  steps_.push_back(std::move(step));
}

Status CpuExecutor::Start() {
  KILN_RETURN_IF_ERROR(LoadBinaries());
  KILN_RETURN_IF_ERROR(LoadConstants());
  KILN_ASSIGN_OR_RETURN(arena_, HostBlock::Allocate(network().arena_bytes));
  patches_.resize(network().buffers.size());
  pointers_.resize(network().buffers.size());
  for (const NetworkKernel& kernel : network().kernels) AddStep(kernel);
  for (size_t i = 0; i < outputs().size(); ++i) in_place_.push_back(IsWrittenInPlace(network(), i));
  if (work_ <= kLittleWork && CallStack::IsSupported()) {
    KILN_ASSIGN_OR_RETURN(call_stack_, CallStack::Allocate(KILN_CPU_STACK_BYTES));
  }
  return OkStatus();
}

MemoryUse CpuExecutor::memory_use() const {
  MemoryUse use{.constants = network().constants_bytes, .arena = arena_.size()};
  for (const auto& [root, block] : staged_) use.staging += block.size();
  return use;
}

void CpuExecutor::SetPointer(int32_t root, void* pointer) {
  pointers_[static_cast<size_t>(root)] = pointer;
  for (const Patch& patch : patches_[static_cast<size_t>(root)]) {
    steps_[patch.step].args[patch.arg] = static_cast<std::byte*>(pointer) + patch.offset;
  }
}

StatusOr<void*> CpuExecutor::Staged(int32_t root) {
  HostBlock& block = staged_[root];
  if (block.size() == 0) {
    KILN_ASSIGN_OR_RETURN(block,
                          HostBlock::Allocate(network().buffers[static_cast<size_t>(root)].bytes));
  }
  return static_cast<void*>(block.data());
}

bool CpuExecutor::IsAligned(int32_t root, const void* pointer) const {
  const int64_t alignment = network().buffers[static_cast<size_t>(root)].alignment_bytes;
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(alignment) == 0;
}

Status CpuExecutor::SetInputs(std::span<const void* const> pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const int32_t buffer = inputs()[i].buffer;
    void* pointer = const_cast<void*>(pointers[i]);
    const int64_t bytes = network().buffers[static_cast<size_t>(buffer)].bytes;
    if (bytes > 0 && !IsAligned(buffer, pointer)) {
      KILN_ASSIGN_OR_RETURN(void* staged, Staged(buffer));
      std::memcpy(staged, pointer, static_cast<size_t>(bytes));
      pointer = staged;
    }
    SetPointer(buffer, pointer);
  }
  return OkStatus();
}

// Copies the outputs that kernels have not written in place.
void CpuExecutor::CopyOutputs(std::span<void* const> pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const Region region = RegionOf(network(), outputs()[i].buffer);
    const std::byte* from = BaseOf(region.root) + region.offset;
    if (region.bytes > 0 && from != pointers[i]) {
      std::memcpy(pointers[i], from, static_cast<size_t>(region.bytes));
    }
  }
}

Status CpuExecutor::CheckCode(int32_t code) const {
  if (code == 0) return OkStatus();
  return Internal("a kernel returned {}, expected 0", code);
}

int32_t CpuExecutor::RunSomewhere() {
  struct Run {
    CpuExecutor* executor;
    int32_t code;
  } run{this, 0};
  const auto body = [](void* closure) {
    Run& run = *static_cast<Run*>(closure);
    run.code = run.executor->RunSteps();
  };
  if (call_stack_) {
    const FloatEnvironment floats;
    call_stack_->Call(body, &run);
  } else {
    runtime_.Call([&] { body(&run); });
  }
  return run.code;
}

Status CpuExecutor::DoRun(std::span<const void* const> in, std::span<void* const> out) {
  KILN_RETURN_IF_ERROR(SetInputs(in));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!in_place_[i]) continue;
    const int32_t buffer = outputs()[i].buffer;
    void* pointer = out[i];
    if (!IsAligned(buffer, pointer)) {
      KILN_ASSIGN_OR_RETURN(pointer, Staged(buffer));
    }
    SetPointer(buffer, pointer);
  }
  KILN_RETURN_IF_ERROR(CheckCode(RunSomewhere()));
  CopyOutputs(out);
  return OkStatus();
}

Status CpuExecutor::StartTiming(std::span<const void* const> in) {
  KILN_RETURN_IF_ERROR(SetInputs(in));
  for (size_t i = 0; i < outputs().size(); ++i) {
    if (!in_place_[i]) continue;
    KILN_ASSIGN_OR_RETURN(void* staged, Staged(outputs()[i].buffer));
    SetPointer(outputs()[i].buffer, staged);
  }
  return OkStatus();
}

StatusOr<double> CpuExecutor::TimeRuns(int64_t number) {
  int32_t code = 0;
  double seconds = 0;
  runtime_.Call([&] {
    WakeThreads();
    const double start_s = Now();
    for (int64_t i = 0; i < number; ++i) code |= RunSteps();
    seconds = Now() - start_s;
  });
  KILN_RETURN_IF_ERROR(CheckCode(code));
  return seconds;
}

StatusOr<std::vector<double>> CpuExecutor::TimeKernels(int64_t number) {
  int32_t code = 0;
  std::vector<double> seconds;
  runtime_.Call([&] {
    WakeThreads();
    for (const Step& step : steps_) {
      code |= step.entry(runtime_.context(), step.args.data());
      const double start_s = Now();
      for (int64_t i = 0; i < number; ++i) {
        code |= step.entry(runtime_.context(), step.args.data());
      }
      seconds.push_back((Now() - start_s) / static_cast<double>(number));
    }
  });
  KILN_RETURN_IF_ERROR(CheckCode(code));
  return seconds;
}

StatusOr<std::vector<double>> CpuExecutor::TimeKernelsInRuns(int64_t number) {
  int32_t code = 0;
  std::vector<double> seconds(steps_.size());
  runtime_.Call([&] {
    code = RunSteps();
    for (int64_t run = 0; run < number; ++run) {
      double start_s = Now();
      for (size_t i = 0; i < steps_.size(); ++i) {
        code |= steps_[i].entry(runtime_.context(), steps_[i].args.data());
        const double end_s = Now();
        seconds[i] += (end_s - start_s) / static_cast<double>(number);
        start_s = end_s;
      }
    }
  });
  KILN_RETURN_IF_ERROR(CheckCode(code));
  return seconds;
}

}  // namespace

StatusOr<std::unique_ptr<Executor>> LoadOnCpu(std::shared_ptr<const NetworkFile> file,
                                              const ExecutorOptions& options) {
  KILN_RETURN_IF_ERROR(CheckThisCpu(file->network().target));
  auto executor = std::make_unique<CpuExecutor>(std::move(file), options);
  KILN_RETURN_IF_ERROR(executor->Start());
  return executor;
}

}  // namespace kiln::runtime
