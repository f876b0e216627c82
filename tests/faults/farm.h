// A farm of real daemons on loopback, for tests that kill them. Ports are kept when a daemon is started again.
#pragma once

#include <memory>
#include <string>

#include "base/daemon_testing.h"
#include "base/file.h"
#include "base/status.h"
#include "proto/scheduler.grpc.pb.h"

namespace kiln {

class Farm {
 public:
  // `device` as the runner's --device.
  static StatusOr<std::unique_ptr<Farm>> Start(const std::string& device = "cpu");

  DaemonProcess& tracker() { return *tracker_; }
  DaemonProcess& scheduler() { return *scheduler_; }
  DaemonProcess& builder() { return *builder_; }
  DaemonProcess& runner() { return *runner_; }
  std::string db() const { return folder_.path() + "/kiln.db"; }

  std::unique_ptr<v1::Scheduler::Stub> Connect();
  // Logs of all, for a failure.
  std::string Logs() const;

 private:
  explicit Farm(TempDir folder);
  TempDir folder_;
  std::unique_ptr<DaemonProcess> tracker_, scheduler_, builder_, runner_;
};

}  // namespace kiln
