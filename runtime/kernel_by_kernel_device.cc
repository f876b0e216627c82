#include "runtime/kernel_by_kernel_device.h"

#include <chrono>

namespace kiln::runtime {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Status KernelByKernelDevice::LaunchEach(const KernelCalls& calls) {
  for (size_t k = 0; k < calls.args.size(); ++k) {
    KILN_RETURN_IF_ERROR(LaunchKernel(k, calls.args[k]));
  }
  return OkStatus();
}

// Launches one kernel again and again, and waits for it.
Status KernelByKernelDevice::LaunchTimes(const KernelCalls& calls, size_t kernel, int64_t number) {
  for (int64_t i = 0; i < number; ++i) {
    KILN_RETURN_IF_ERROR(LaunchKernel(kernel, calls.args[kernel]));
  }
  return Synchronize("run a kernel");
}

Status KernelByKernelDevice::LaunchAll(const KernelCalls& calls) {
  return Work([&] { return LaunchEach(calls); });
}

StatusOr<double> KernelByKernelDevice::TimeRuns(const KernelCalls& calls, int64_t number) {
  double seconds = 0;
  const auto runs = [&]() -> Status {
    WakeUp();
    const double start_s = Now();
    for (int64_t i = 0; i < number; ++i) KILN_RETURN_IF_ERROR(LaunchEach(calls));
    KILN_RETURN_IF_ERROR(Synchronize("run the network"));
    seconds = Now() - start_s;
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(Work(runs));
  return seconds;
}

StatusOr<std::vector<double>> KernelByKernelDevice::TimeKernels(const KernelCalls& calls,
                                                                int64_t number) {
  std::vector<double> seconds;
  const auto kernels = [&]() -> Status {
    WakeUp();
    for (size_t k = 0; k < calls.args.size(); ++k) {
      KILN_RETURN_IF_ERROR(LaunchTimes(calls, k, 1));
      const double start_s = Now();
      KILN_RETURN_IF_ERROR(LaunchTimes(calls, k, number));
      seconds.push_back((Now() - start_s) / static_cast<double>(number));
    }
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(Work(kernels));
  return seconds;
}

StatusOr<std::vector<double>> KernelByKernelDevice::TimeKernelsInRuns(const KernelCalls& calls,
                                                                      int64_t number) {
  std::vector<double> seconds(calls.args.size());
  const auto runs = [&]() -> Status {
    KILN_RETURN_IF_ERROR(LaunchEach(calls));
    KILN_RETURN_IF_ERROR(Synchronize("run the network"));
    for (int64_t run = 0; run < number; ++run) {
      double start_s = Now();
      for (size_t k = 0; k < seconds.size(); ++k) {
        KILN_RETURN_IF_ERROR(LaunchTimes(calls, k, 1));
        const double end_s = Now();
        seconds[k] += (end_s - start_s) / static_cast<double>(number);
        start_s = end_s;
      }
    }
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(Work(runs));
  return seconds;
}

StatusOr<std::vector<KernelSpan>> KernelByKernelDevice::TraceRun(const KernelCalls& calls) {
  std::vector<KernelSpan> spans;
  const auto run = [&]() -> Status {
    WakeUp();
    KILN_RETURN_IF_ERROR(LaunchEach(calls));
    KILN_RETURN_IF_ERROR(Synchronize("run the network"));
    const double start_s = Now();
    for (size_t k = 0; k < calls.args.size(); ++k) {
      const double begin_s = Now() - start_s;
      KILN_RETURN_IF_ERROR(LaunchTimes(calls, k, 1));
      spans.push_back({begin_s, Now() - start_s});
    }
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(Work(run));
  return spans;
}

}  // namespace kiln::runtime
