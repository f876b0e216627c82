// Our daemons under test, as the processes that they are: started, killed, started again on the
// same port. For one thread at a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace kiln {

class DaemonProcess {
 public:
  // `program` is a path below the test's runfiles. --listen and --port-file are added to `flags`.
  DaemonProcess(std::string program, std::vector<std::string> flags);
  // Kills it. Shows its log if the test has failed by then.
  ~DaemonProcess();

  Status Start();               // waits until it serves
  void Kill();                  // kill -9 of the daemon and not of its children, and reaped
  StatusOr<ExitStatus> Stop();  // SIGTERM

  std::string address() const;
  pid_t pid() const { return process_->pid(); }
  bool Running() { return process_ != nullptr && process_->Running(); }
  // Its last lines, with its name above.
  std::string Log() const;

 private:
  const std::string name_;
  const std::string program_;
  const std::vector<std::string> flags_;
  const TempDir folder_;
  int port_ = 0;
  std::unique_ptr<Subprocess> process_;
};

// Runs it to its end, which must come within a minute.
RunResult RunProgram(const std::string& program, const std::vector<std::string>& flags);

// Waits until all of them have ended; false after ten seconds.
bool AllGone(const std::vector<pid_t>& pids);

}  // namespace kiln
