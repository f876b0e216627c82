// Runs a whole cluster on this machine: tracker, scheduler, builder and runners are child processes
// of this program, on loopback ports. They have the code and the RPCs of a farm.
//
// Only the children and this object know their shared secret: other users of the machine can reach
// the ports, and are refused.
//
// The children end when this object is destroyed, and also when this process is killed. Spawns
// processes; belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/server/secret.h"
#include "base/status.h"
#include "client/daemon_child.h"
#include "client/local_places.h"

namespace kiln::client {

class LocalCluster {
 public:
  struct Options {
    std::string db = "kiln.db";
    // Device of the only runner: cpu, cuda, null.
    std::string device = "cpu";
    // Runners with cores of their own, in place of that one; none: that one.
    LocalPlaces places = {};
    // 0 = all cores.
    int runner_threads = 0;
    // 0 = one per core.
    int builder_jobs = 0;
    bool allow_faults = false;
    // "": a temporary folder.
    std::string log_folder;
    std::string log_level = "info";
  };

  // Returns when the scheduler can be called. Of several runners those that do not start are left
  // out, and notes() says so. Cancelled if `interrupted` became true meanwhile.
  static StatusOr<std::unique_ptr<LocalCluster>> Start(const Options& options,
                                                       const std::function<bool()>& interrupted);
  // Calls Stop().
  ~LocalCluster();

  const std::string& scheduler_address() const { return scheduler_address_; }
  std::string tracker_address() const { return tracker_.child.Address(); }
  std::string builder_address() const { return builder_.child.Address(); }
  // Address of the runner; the first GPU's if there are several.
  std::string runner_address() const { return runners_.front().child.Address(); }
  pid_t runner_pid() const { return runners_.front().child.pid(); }
  // Sentences about runners that did not start.
  const std::vector<std::string>& notes() const { return notes_; }
  const Secret& secret() const { return secret_; }
  // The file of the secret, which ends with the cluster.
  std::string secret_path() const { return folder_.Join("secret"); }

  // Names the unfinished jobs of the database that a scheduler which is started again leaves alone,
  // as the first one does with all. It resumes all others, which are of this cluster.
  void LeaveAlone(std::set<std::string> job_ids);
  // Takes a job out of those, since the user resumed it.
  void GoOnWith(const std::string& job_id);

  // Call it a few times a second. Restarts a process that has died, and reports that through
  // `notice`. A runner that keeps dying is given up while there is another one. An error means that
  // another process keeps dying, or the last runner.
  Status Supervise(const std::function<void(const std::string&)>& notice);

  // Ends all children in order. Takes a few hundred milliseconds, a few seconds at most.
  void Stop();

 private:
  struct Daemon {
    // "scheduler", "runner cuda:1".
    std::string name;
    DaemonChild child;
    int restarts = 0;
  };

  LocalCluster(Options options, std::string executable, TempDir folder);

  // The first word of `name` is the daemon's.
  Daemon MakeDaemon(const std::string& name, std::vector<int> cores,
                    std::vector<std::string> flags) const;
  void AddRunner(const std::string& name, const std::string& device, std::vector<int> cores);
  Status StartRunners(const std::function<bool()>& interrupted);
  Status Revive(Daemon& daemon, const std::function<void(const std::string&)>& notice);
  void SetUnfinished();

  Options options_;
  std::string executable_;
  TempDir folder_;
  const Secret secret_ = Secret::Random();
  // The daemons in the order in which they are started.
  Daemon tracker_, scheduler_, builder_;
  // At least one.
  std::vector<Daemon> runners_;
  std::vector<std::string> notes_;
  std::string scheduler_address_;
  std::set<std::string> left_alone_;
};

}  // namespace kiln::client
