// A device whose kernels are launched one after another, and timed by the host's clock.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/network_device.h"

namespace kiln::runtime {

class KernelByKernelDevice : public NetworkDevice {
 public:
  Status LaunchAll(const KernelCalls& calls) override;
  StatusOr<double> TimeRuns(const KernelCalls& calls, int64_t number) override;
  StatusOr<std::vector<double>> TimeKernels(const KernelCalls& calls, int64_t number) override;
  StatusOr<std::vector<double>> TimeKernelsInRuns(const KernelCalls& calls,
                                                  int64_t number) override;
  StatusOr<std::vector<KernelSpan>> TraceRun(const KernelCalls& calls) override;

 protected:
  // Launches each kernel. Called on the thread of Work.
  Status LaunchEach(const KernelCalls& calls);

 private:
  // Launches a kernel. Called on the thread of Work.
  virtual Status LaunchKernel(size_t kernel, std::span<void* const> args) = 0;
  // Runs `work` on the thread that launches kernels, waits for it, and returns what it returns.
  virtual Status Work(const std::function<Status()>& work) { return work(); }
  // Makes the device ready for a run that is timed. Called on the thread of Work.
  virtual void WakeUp() {}

  Status LaunchTimes(const KernelCalls& calls, size_t kernel, int64_t number);
};

}  // namespace kiln::runtime
