// Networks of shared objects, which run on the cores of this machine.
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "base/errno_status.h"
#include "proto/cpu_abi.h"
#include "runtime/call_stack.h"
#include "runtime/cpu_features.h"
#include "runtime/executor_options.h"
#include "runtime/float_environment.h"
#include "runtime/kernel_by_kernel_device.h"
#include "runtime/network_device_kinds.h"
#include "runtime/parallel_runtime.h"
#include "runtime/shared_object.h"

namespace kiln::runtime {
namespace {

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

// A kernel is called once, with all of its arguments.
Status CheckLaunches(const NetworkKernel& kernel) {
  if (kernel.launches.size() != 1) {
    return InvalidArgument("it has {} launches, expected the one of a CPU kernel",
                           kernel.launches.size());
  }
  std::vector<uint32_t> all(kernel.args.size());
  std::iota(all.begin(), all.end(), 0u);
  if (kernel.launches[0].args == all) return OkStatus();
  return InvalidArgument("its launch takes other arguments than all of the kernel's, in order");
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

class CpuDevice : public KernelByKernelDevice {
 public:
  CpuDevice(double work, const ExecutorOptions& options)
      : runtime_({.threads = ThreadsFor(work, options.threads), .pin = options.pin}) {}

  // Runs will be on the thread of their caller.
  Status UseCallersThread() {
    KILN_ASSIGN_OR_RETURN(call_stack_, CallStack::Allocate(KILN_CPU_STACK_BYTES));
    return OkStatus();
  }

  // Memory is whole pages.
  int64_t alignment_bytes() const override { return kMaxAlignmentBytes; }
  StatusOr<void*> Allocate(int64_t bytes, std::string_view purpose) override;
  void Free(void* memory, int64_t bytes) override { munmap(memory, static_cast<size_t>(bytes)); }
  StatusOr<bool> Reaches(const void*, std::string_view) const override { return true; }
  Status Copy(void* to, const void* from, int64_t bytes, CopyPath) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return OkStatus();
  }
  Status LoadBinary(std::string_view binary) override;
  Status LoadKernel(const NetworkKernel& kernel) override;
  Status LaunchAll(const KernelCalls& calls) override;
  // A call of a kernel returns when the kernel has run.
  Status Synchronize(std::string_view) override { return OkStatus(); }

 private:
  StatusOr<KilnEntry> EntryOf(const NetworkKernel& kernel);
  Status LaunchKernel(size_t kernel, std::span<void* const> args) override {
    const int32_t code = entries_[kernel](runtime_.context(), args.data());
    if (code == 0) return OkStatus();
    return Internal("a kernel returned {}, expected 0", code);
  }
  // Kernels need the stack and the floating-point environment of programs, which the pool's main
  // thread has.
  Status Work(const std::function<Status()>& work) override {
    Status status;
    runtime_.Call([&] { status = work(); });
    return status;
  }
  void WakeUp() override {
    runtime_.ParallelFor([](void*, int64_t, int64_t) {}, nullptr, runtime_.threads());
  }

  // The stack of runs on the caller's thread; none if there are no such runs.
  std::optional<CallStack> call_stack_;
  std::vector<std::unique_ptr<SharedObject>> objects_;
  std::map<std::pair<int32_t, std::string>, KilnEntry> symbols_;
  // Entry of each kernel.
  std::vector<KilnEntry> entries_;
  // The last member, so that its threads end first.
  ParallelRuntime runtime_;
};

// Pages that are never touched cost nothing.
StatusOr<void*> CpuDevice::Allocate(int64_t bytes, std::string_view purpose) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return ResourceExhausted("no memory for {} bytes of {}: {}", bytes, purpose, ErrnoText(errno));
  }
  // Huge pages mean fewer pages to look up. The system may refuse them.
  (void)madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return memory;
}

Status CpuDevice::LoadBinary(std::string_view binary) {
  KILN_ASSIGN_OR_RETURN(auto object, SharedObject::Load(binary));
  objects_.push_back(std::move(object));
  return OkStatus();
}

StatusOr<KilnEntry> CpuDevice::EntryOf(const NetworkKernel& kernel) {
  KILN_RETURN_IF_ERROR(CheckLaunches(kernel));
  const std::string& symbol = kernel.launches[0].symbol;
  KilnEntry& entry = symbols_[{kernel.binary, symbol}];
  if (entry == nullptr) {
    KILN_ASSIGN_OR_RETURN(void* found,
                          objects_[static_cast<size_t>(kernel.binary)]->Find(symbol.c_str()));
    entry = reinterpret_cast<KilnEntry>(found);
  }
  return entry;
}

Status CpuDevice::LoadKernel(const NetworkKernel& kernel) {
  const StatusOr<KilnEntry> entry = EntryOf(kernel);
  if (!entry.ok()) return Annotate(entry.status(), fmt::format("kernel '{}'", kernel.name));
  entries_.push_back(*entry);
  return OkStatus();
}

// Runs the kernels on the thread of this call if they are little work.
Status CpuDevice::LaunchAll(const KernelCalls& calls) {
  if (!call_stack_) return KernelByKernelDevice::LaunchAll(calls);
  struct Run {
    CpuDevice& device;
    const KernelCalls& calls;
    Status status;
  } run{*this, calls, OkStatus()};
  const auto body = [](void* closure) {
    Run& run = *static_cast<Run*>(closure);
    run.status = run.device.LaunchEach(run.calls);
  };
  const FloatEnvironment floats;
  call_stack_->Call(body, &run);
  return run.status;
}

StatusOr<std::unique_ptr<NetworkDevice>> Open(const Network& network,
                                              const ExecutorOptions& options) {
  KILN_RETURN_IF_ERROR(CheckThisCpu(network.target));
  const double work = WorkOf(network);
  auto device = std::make_unique<CpuDevice>(work, options);
  if (work <= kLittleWork && CallStack::IsSupported()) {
    KILN_RETURN_IF_ERROR(device->UseCallersThread());
  }
  return device;
}

// DLPack's kDLCPU
constexpr int32_t kCpuType = 1;
constexpr int32_t kHostTypes[] = {kCpuType};

}  // namespace

constinit const NetworkDeviceKind kCpuDevice = {.target = "cpu",
                                                .noun = "the CPU",
                                                .dl_type = kCpuType,
                                                .host_dl_types = kHostTypes,
                                                .open = Open};

}  // namespace kiln::runtime
