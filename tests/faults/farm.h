// A farm of real daemons on loopback, for tests that kill them. Ports are kept when a daemon is started again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "proto/scheduler.grpc.pb.h"

namespace kiln {

class Daemon {
 public:
  // `program` is a path below the test's runfiles; --listen and --port-file are added.
  Daemon(std::string name, std::string program, std::vector<std::string> flags, std::string folder);

  Status Start();             // waits until it serves
  void Kill();                // kill -9, and reaped
  StatusOr<ExitStatus> Stop();  // SIGTERM
  std::string address() const;
  int pid() const { return process_->pid(); }
  bool running() { return process_ != nullptr && process_->Running(); }
  std::string Log() const;

 private:
  const std::string name_, program_;
  const std::vector<std::string> flags_;
  const std::string folder_;
  int port_ = 0;
  std::unique_ptr<Subprocess> process_;
};

class Farm {
 public:
  // `device` as the runner's --device.
  static StatusOr<std::unique_ptr<Farm>> Start(const std::string& device = "cpu");

  Daemon& tracker() { return *tracker_; }
  Daemon& scheduler() { return *scheduler_; }
  Daemon& builder() { return *builder_; }
  Daemon& runner() { return *runner_; }
  std::string db() const { return folder_.path() + "/kiln.db"; }

  std::unique_ptr<v1::Scheduler::Stub> Connect();
  // Logs of all, for a failure.
  std::string Logs() const;

 private:
  explicit Farm(TempDir folder);
  TempDir folder_;
  std::unique_ptr<Daemon> tracker_, scheduler_, builder_, runner_;
};

}  // namespace kiln
