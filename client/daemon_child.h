// A daemon of Kiln as a child of this program: the same program, started again with the daemon's
// name. It ends when this process ends, in whatever way.
//
// Belongs to one thread. The destructor kills the child.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "base/status.h"

namespace kiln::client {

// First argument of a child: the process dies with its parent, prints into the file that the second
// argument names ("-": its parent's output), runs on the cores that the third one lists ("0-3,8";
// "-": those of its parent), and then starts with the remaining arguments.
inline constexpr char kClusterChild[] = "cluster-child";
// main calls it for such arguments, before anything else and before any thread. An error: the file
// can't be written. A process that may use none of the cores says so and uses those of its parent.
Status BecomeClusterChild(const std::string& log_path, const std::string& cores);

class DaemonChild {
 public:
  struct Options {
    // Path of this program.
    std::string executable;
    // "tracker", "scheduler", "builder", "runner".
    std::string daemon;
    // Flags besides --listen and --port-file.
    std::vector<std::string> flags = {};
    std::string host = "127.0.0.1";
    // "0": any free port. A daemon that is started again gets the port that it had.
    std::string port = "0";
    // The daemon writes its ports there once it serves.
    std::string port_file;
    // The file to which it prints.
    std::string log;
    // Cores on which it runs, ascending; empty: those of this process.
    std::vector<int> cores = {};
  };

  DaemonChild() = default;
  explicit DaemonChild(Options options) : options_(std::move(options)) {}

  const Options& options() const { return options_; }
  std::vector<std::string>& flags() { return options_.flags; }

  // Starts the process. It does not serve yet.
  Status Launch();
  // Returns whether the process serves; its ports are known from then on. An error says how it
  // ended before that: "the scheduler ended (exit status 1): cannot open kiln.db".
  StatusOr<bool> Serves();
  // Waits until it serves. Cancelled if `interrupted` becomes true meanwhile.
  Status WaitUntilServes(const std::function<bool()>& interrupted);

  // True from Launch to Stop, also after an end that nobody has looked at.
  bool launched() const { return process_ != nullptr; }
  bool Running() { return launched() && process_->Running(); }
  pid_t pid() const { return process_->pid(); }
  // Returns how a process that runs no longer has ended.
  StatusOr<ExitStatus> Exit() { return process_->Wait(); }
  // Returns the error of such an end, with the last line of the log.
  Status Ended(const ExitStatus& exit) const;

  // Returns HOST:PORT for each port; more than one of a runner with several GPUs.
  std::vector<std::string> Addresses() const;
  // Returns the first address.
  std::string Address() const;

  // Tells the process to end, by SIGTERM. It is told once: a second SIGTERM would end a daemon
  // before it has removed its files.
  void AskToStop();
  // Ends the process: AskToStop, and SIGKILL after `grace`. Does nothing if it was not launched.
  void Stop(absl::Duration grace);

 private:
  Options options_;
  std::vector<std::string> ports_;
  std::unique_ptr<Subprocess> process_;
  bool is_asked_ = false;
};

// Ends the daemons of a farm in order, the tracker last: the scheduler gives its leases back to a
// tracker that still listens. The workers end at the same time. Each has `grace`.
void StopInOrder(DaemonChild& scheduler, const std::vector<DaemonChild*>& workers,
                 DaemonChild& tracker, absl::Duration grace);

}  // namespace kiln::client
