// Our daemons under test, as processes: started, killed, and started again on the same port. For
// one thread at a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status.h"

namespace kiln {

class DaemonProcess {
 public:
  // `program` is a path below the test's runfiles. --listen and --port-file are added to `flags`.
  DaemonProcess(std::string program, std::vector<std::string> flags);
  // Kills the daemon. Shows its log if the test has failed by then.
  ~DaemonProcess();

  // Returns once the daemon serves.
  Status Start();
  // Kills the daemon with SIGKILL, but not its children, and reaps it.
  void Kill();
  // Stops the daemon with SIGTERM.
  StatusOr<ExitStatus> Stop();

  std::string address() const;
  pid_t pid() const { return process_->pid(); }
  bool Running() { return process_ != nullptr && process_->Running(); }
  // Returns the log's last lines, with the daemon's name above them.
  std::string Log() const;

 private:
  const std::string name_;
  const std::string program_;
  const std::vector<std::string> flags_;
  const TempDir folder_;
  int port_ = 0;
  std::unique_ptr<Subprocess> process_;
};

// Runs a program to its end, which must come within a minute.
RunResult RunProgram(const std::string& program, const std::vector<std::string>& flags);

// Waits until all of the processes have ended; false after ten seconds.
bool AllGone(const std::vector<pid_t>& pids);

}  // namespace kiln
