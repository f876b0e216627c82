// Runs a farm on this machine: tracker, scheduler, a builder, and a runner for each device, as
// children of this process on the usual ports and on cores of their own (client/local_places.h). A
// child that dies is started again (client/farm/restart_policy.h); the others go on meanwhile. All
// end with this process.
//
// Tracker and scheduler listen on the host of the options, the workers on loopback: only this
// scheduler calls them. With an authority, all of them have its keys. Belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file_lock.h"
#include "base/status.h"
#include "client/daemon_child.h"
#include "client/farm/farm_folder.h"
#include "client/farm/farm_state.h"
#include "client/farm/restart_policy.h"
#include "client/local_places.h"

namespace kiln::client {

class FarmSupervisor {
 public:
  // Returns the runners of the farm and their places.
  using FindPlaces = std::function<StatusOr<LocalPlaces>(const FarmOptions& options)>;

  // Returns once all daemons serve; of several runners, once one serves and each other one serves
  // or has failed, which the state's notes say. Takes the folder's lock, ends what a supervisor
  // that was killed has left behind, and makes the secret, or authority and keys, if there are
  // none. Errors: the farm runs already; no device; a daemon ends before it serves. Cancelled if
  // `interrupted` becomes true meanwhile. `clock` outlives the object.
  static StatusOr<std::unique_ptr<FarmSupervisor>> Start(const FarmOptions& options,
                                                         const FindPlaces& find_places,
                                                         const std::function<bool()>& interrupted,
                                                         Clock& clock);
  // Ends the daemons in order: the scheduler, which gives its leases back, the workers, the
  // tracker. Removes the state's file.
  ~FarmSupervisor();

  // Call it a few times a second: looks for daemons that have died, and starts those whose pause is
  // over. Once a day it also renews keys that end soon; daemons take them up by themselves.
  void Tick();

  const FarmState& state() const { return state_; }

 private:
  struct Member {
    DaemonChild child;
    RestartPolicy policy = RestartPolicy();
    double started_s = 0;
    // Set while it waits to be started again; on the monotonic clock.
    std::optional<double> next_start_s = {};
  };

  FarmSupervisor(FarmOptions options, FileLock lock, std::string executable, Clock& clock);

  Status EndLeftovers();
  // Sets access_.
  Status MakeAccess();
  Status MakeSecret() const;
  void RenewKeys();
  // The daemon is the first word of `name`. Its pages get the first free port from `pages` on.
  void AddMember(const std::string& name, const std::string& host, int port, int pages,
                 const std::vector<int>& cores, std::vector<std::string> flags);
  void AddRunner(const LocalPlaces::Runner& runner, int port, const std::string& tracker);
  Status LaunchAll(const LocalPlaces& places, const std::function<bool()>& interrupted);
  Status AwaitRunners(const std::function<bool()>& interrupted);
  Status Launch(size_t index);
  void LookAt(size_t index);
  void NoteDeath(size_t index, const ExitStatus& exit);
  // Writes the state's file if the state has changed.
  void Save();

  const FarmFolder folder_;
  const FileLock lock_;
  const std::string executable_;
  Clock& clock_;
  FarmState state_;
  FarmState saved_;
  // The words of a daemon's command line that name its secret or its keys.
  std::vector<std::string> access_;
  // Time of the next look at the end of the keys, by the wall clock.
  absl::Time next_renewal_;
  // Tracker, scheduler, workers; state_.processes has the same order.
  std::vector<Member> members_;
};

}  // namespace kiln::client
