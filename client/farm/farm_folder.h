// The folder of a farm on this machine.
//
//   farm.json      the farm's state (client/farm/farm_state.h); removed when the farm has ended
//   lock           held by the supervisor while the farm runs
//   secret         secret of the farm, which stays for the next start
//   keys           authority of a farm with keys, and their folders
//   kiln.db        jobs and records
//   NAME.log       what a daemon, or the supervisor, has printed
//   NAME.port      the ports of a daemon
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file_lock.h"
#include "base/status.h"
#include "client/farm/farm_state.h"

namespace kiln::client {

class FarmFolder {
 public:
  // `path` is absolute.
  explicit FarmFolder(std::string path) : path_(std::move(path)) {}

  // Returns $XDG_STATE_HOME/kiln/farm, which is ~/.local/state/kiln/farm if that is not set.
  // FailedPrecondition if there is no HOME either.
  static StatusOr<std::string> DefaultPath();

  const std::string& path() const { return path_; }
  std::string StateFile() const;
  std::string SecretFile() const;
  std::string Authority() const;
  std::string Database() const;
  std::string LogFile(const std::string& process) const;
  std::string PortFile(const std::string& process) const;

  // Takes the lock of a farm that runs. Unavailable if another process has it for `patience`.
  StatusOr<FileLock> Lock(absl::Duration patience, Clock& clock) const;
  // Returns whether a supervisor holds the lock.
  bool IsLocked(Clock& clock) const;

 private:
  std::string path_;
};

}  // namespace kiln::client
