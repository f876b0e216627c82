// A farm of real daemons on loopback, for tests that kill them. A daemon keeps its port when it is
// started again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/server/daemon_testing.h"
#include "base/server/secret.h"
#include "base/status.h"
#include "proto/scheduler.grpc.pb.h"

namespace kiln {

class Farm {
 public:
  struct Options {
    // The runner's --device.
    std::string device = "cpu";
    // The secret that all daemons ask for.
    Secret secret = {};
    // Folder of the keys of all daemons; "" = they have none.
    std::string keys_folder = {};
    // Folder of the database; "": a folder of its own.
    std::string db_folder = {};
    // The builder makes broken code when asked to.
    bool allow_faults = true;
    // The tracker's --lease-ms.
    int64_t lease_ms = 10'000;
  };
  static StatusOr<std::unique_ptr<Farm>> Start(const Options& options);
  static StatusOr<std::unique_ptr<Farm>> Start();

  DaemonProcess& tracker() { return *tracker_; }
  DaemonProcess& scheduler() { return *scheduler_; }
  DaemonProcess& builder() { return *builder_; }
  DaemonProcess& runner() { return *runner_; }
  std::string db() const { return JoinPath(options_.db_folder, "kiln.db"); }

  // Connects to the scheduler, with the secret.
  std::unique_ptr<v1::Scheduler::Stub> Connect();
  // Returns the logs of all daemons, for a failure.
  std::string Logs() const;

 private:
  Farm(Options options, TempDir folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}
  Options options_;
  TempDir folder_;
  std::unique_ptr<DaemonProcess> tracker_, scheduler_, builder_, runner_;
};

}  // namespace kiln
