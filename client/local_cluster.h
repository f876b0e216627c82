// A whole cluster on this machine: tracker, scheduler, builder and runner as child processes of
// this very program, on loopback ports of their own. Same code and RPCs as a farm.
//
// They share a secret that only they and this object know: other users of the machine can reach
// their ports, and get nothing there.
//
// The children are gone when this is destroyed, and also when this process is killed. Spawns;
// belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace kiln::client {

// First argument of a child: the process dies with its parent, prints into the file named by the
// second argument ("-": where its parent says), and goes on as if started with the rest.
inline constexpr char kClusterChild[] = "cluster-child";
// Called by main for such arguments, before anything else. Not OK: the file can't be written.
Status BecomeClusterChild(const std::string& log_path);

class LocalCluster {
 public:
  struct Options {
    std::string db = "kiln.db";
    std::string device = "cpu";  // of the runner: cpu, cuda, null
    int runner_threads = 0;      // 0 = all cores
    int builder_jobs = 0;        // 0 = one per core
    bool allow_faults = false;
    std::string log_folder;  // "": a temporary one
    std::string log_level = "info";
  };

  // Returns when the scheduler can be called. Cancelled when `interrupted` became true meanwhile.
  static StatusOr<std::unique_ptr<LocalCluster>> Start(const Options& options,
                                                       const std::function<bool()>& interrupted);
  ~LocalCluster();  // Stop

  const std::string& scheduler_address() const { return scheduler_address_; }
  std::string tracker_address() const { return AddressOf(tracker_); }
  std::string builder_address() const { return AddressOf(builder_); }
  // Of several GPUs the first one's.
  std::string runner_address() const { return AddressOf(runner_); }
  pid_t runner_pid() const { return runner_.process->pid(); }
  const Secret& secret() const { return secret_; }

  // A scheduler that is started again goes on with this job. Of other unfinished jobs in the
  // database none goes on by itself.
  void GoOnWith(const std::string& job_id);

  // To be called a few times a second: starts a process that has died again, and says so through
  // `notice`. An error when one keeps dying.
  Status Supervise(const std::function<void(const std::string&)>& notice);

  // In order, none is left behind. Takes a few hundred milliseconds, a few seconds at most.
  void Stop();

 private:
  struct Daemon {
    std::string name;  // "tracker", ...
    std::vector<std::string> flags;
    std::string port;  // once known; a restarted one gets it again
    std::unique_ptr<Subprocess> process;
    int restarts = 0;
  };

  LocalCluster(Options options, std::string executable, TempDir folder);

  static std::string AddressOf(const Daemon& daemon);
  std::string SecretPath() const { return folder_.Join("secret"); }
  Status Launch(Daemon& daemon);
  Status WaitForPort(Daemon& daemon, const std::function<bool()>& interrupted);
  std::string LogPath(const Daemon& daemon) const;
  std::string PortPath(const Daemon& daemon) const;
  // "the scheduler ended with exit status 1: cannot open kiln.db"
  Status Ended(const Daemon& daemon, const ExitStatus& exit) const;

  Options options_;
  std::string executable_;
  TempDir folder_;
  const Secret secret_ = Secret::Random();
  // In the order they are started.
  Daemon tracker_, scheduler_, builder_, runner_;
  std::string scheduler_address_;
};

}  // namespace kiln::client
