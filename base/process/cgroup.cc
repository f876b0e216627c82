#include "base/process/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/file/file.h"

namespace kiln {
namespace {

constexpr std::string_view kDelegate =
    "let systemd delegate it (Delegate=memory pids in the unit), or give the container a tree of "
    "its own (--cgroupns=private)";

// A file of the file system takes one write, and must exist.
Status Put(const std::string& path, std::string_view text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || write(file.get(), text.data(), text.size()) < 0) {
    return ErrnoStatus(errno, "cannot write {}", path);
  }
  return OkStatus();
}

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const size_t end = at + word.size();
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

// Returns the folder of this process's group. The line of version 2 is "0::/path".
StatusOr<std::string> OwnFolder(const std::string& root, const std::string& own) {
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(own, 1 << 16));
  size_t at = text.starts_with("0::") ? 0 : text.find("\n0::");
  if (at == text.npos) return FailedPrecondition("{} names no group of version 2", own);
  at = text.find("0::", at) + 3;
  std::string path = text.substr(at, text.find('\n', at) - at);
  // A daemon that was started again from a child of its own group.
  if (path.ends_with("/daemon")) path.resize(path.size() - std::string_view("/daemon").size());
  return root + path;
}

constexpr std::string_view kNeeded[] = {"memory", "pids"};
constexpr std::string_view kChildren = "children-";

// Returns the first controller that a list lacks; "": it lacks none.
std::string_view FirstMissing(std::string_view controllers) {
  for (const std::string_view needed : kNeeded) {
    if (!HasWord(controllers, needed)) return needed;
  }
  return "";
}

Status CheckControllers(const std::string& own) {
  const auto controllers = ReadFile(own + "/cgroup.controllers", 4096);
  if (!controllers.ok()) {
    return FailedPrecondition("there is no version 2 of control groups at {}", own);
  }
  const std::string_view missing = FirstMissing(*controllers);
  if (missing.empty()) return OkStatus();
  return FailedPrecondition("the group {} has no controller '{}', it has '{}'", own, missing,
                            controllers->substr(0, controllers->find('\n')));
}

// The controllers of a group can be switched on for others while it has no process but this one,
// which leaves it.
Status CheckNoOthers(const std::string& own) {
  KILN_ASSIGN_OR_RETURN(const std::string processes, ReadFile(own + "/cgroup.procs", 1 << 20));
  std::istringstream lines(processes);
  for (pid_t pid = 0; lines >> pid;) {
    if (pid == getpid()) continue;
    return FailedPrecondition(
        "process {} is in the group {}, too, and a group with processes cannot limit others; start "
        "the daemon in a group of its own",
        pid, own);
  }
  return OkStatus();
}

// Switches the controllers on for the groups below. This process leaves its group for that, and is
// back there if it fails.
Status EnableControllers(const std::string& own) {
  const auto enabled = ReadFile(own + "/cgroup.subtree_control", 4096);
  const bool are_on = enabled.ok() && FirstMissing(*enabled).empty();
  if (!are_on) KILN_RETURN_IF_ERROR(CheckNoOthers(own));
  KILN_RETURN_IF_ERROR(MakeDirs(own + "/daemon"));
  KILN_RETURN_IF_ERROR(JoinGroup(own + "/daemon"));
  if (are_on) return OkStatus();
  const Status put = Put(own + "/cgroup.subtree_control", "+memory +pids");
  if (!put.ok() && JoinGroup(own).ok()) rmdir((own + "/daemon").c_str());
  return put;
}

// Removes groups of daemons that are gone. The kernel keeps a group that has processes.
void RemoveLeftGroups(const std::string& own) {
  std::error_code error;
  std::filesystem::directory_iterator entries(own, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(kChildren)) continue;
    const pid_t pid = std::atoi(name.c_str() + name.rfind('-') + 1);
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) rmdir(entries->path().c_str());
  }
}

// Returns the folder of the children's group.
StatusOr<std::string> MakeGroup(const std::string& own, const GroupLimits& limits) {
  KILN_RETURN_IF_ERROR(CheckControllers(own));
  KILN_RETURN_IF_ERROR(EnableControllers(own));
  RemoveLeftGroups(own);
  const std::string children =
      fmt::format("{}/{}{}-{}", own, kChildren, program_invocation_short_name, getpid());
  KILN_RETURN_IF_ERROR(MakeDirs(children));
  KILN_RETURN_IF_ERROR(Put(children + "/memory.max", fmt::format("{}", limits.memory_bytes)));
  // A kernel without swap has no such file.
  const std::string swap = children + "/memory.swap.max";
  if (FileExists(swap)) KILN_RETURN_IF_ERROR(Put(swap, "0"));
  KILN_RETURN_IF_ERROR(Put(children + "/pids.max", fmt::format("{}", limits.processes)));
  return children;
}

}  // namespace

StatusOr<std::string> MakeChildGroup(const GroupLimits& limits, const std::string& root,
                                     const std::string& own) {
  const auto folder = OwnFolder(root, own);
  auto made = folder.ok() ? MakeGroup(*folder, limits) : folder.status();
  if (made.ok()) return made;
  return FailedPrecondition("no control group is delegated to this daemon ({}); {}",
                            Message(made.status()), kDelegate);
}

Status JoinGroup(const std::string& folder) { return Put(folder + "/cgroup.procs", "0"); }

}  // namespace kiln
