#include "client/farm/farm_folder.h"

#include <algorithm>
#include <cstdlib>

#include "base/file/file.h"

namespace kiln::client {
namespace {

// Returns "runner-cuda-1" of "runner cuda:1".
std::string FileName(std::string process) {
  std::ranges::replace(process, ' ', '-');
  std::ranges::replace(process, ':', '-');
  return process;
}

}  // namespace

StatusOr<std::string> FarmFolder::DefaultPath() {
  // The standard has relative paths ignored.
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return JoinPath(state, "kiln/farm");
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return JoinPath(home, ".local/state/kiln/farm");
  return FailedPrecondition("there is no HOME to keep the farm in; name a folder with --folder");
}

std::string FarmFolder::StateFile() const { return JoinPath(path_, "farm.json"); }
std::string FarmFolder::SecretFile() const { return JoinPath(path_, "secret"); }
std::string FarmFolder::Authority() const { return JoinPath(path_, "keys"); }
std::string FarmFolder::Database() const { return JoinPath(path_, "kiln.db"); }
std::string FarmFolder::LogFile(const std::string& process) const {
  return JoinPath(path_, FileName(process) + ".log");
}
std::string FarmFolder::PortFile(const std::string& process) const {
  return JoinPath(path_, FileName(process) + ".port");
}

StatusOr<FileLock> FarmFolder::Lock(absl::Duration patience, Clock& clock) const {
  return FileLock::Acquire(JoinPath(path_, "lock"), patience, clock);
}

bool FarmFolder::IsLocked(Clock& clock) const {
  // Looking makes no file where there is no farm.
  if (!FileExists(JoinPath(path_, "lock"))) return false;
  return Lock(absl::ZeroDuration(), clock).status().code() == absl::StatusCode::kUnavailable;
}

}  // namespace kiln::client
