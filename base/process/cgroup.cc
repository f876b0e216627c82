#include "base/process/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
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

Status MakeGroup(const std::string& own, const GroupLimits& limits) {
  const auto controllers = ReadFile(own + "/cgroup.controllers", 4096);
  if (!controllers.ok()) {
    return FailedPrecondition("there is no version 2 of control groups at {}", own);
  }
  for (const std::string_view needed : {"memory", "pids"}) {
    if (HasWord(*controllers, needed)) continue;
    return FailedPrecondition("the group {} has no controller '{}', it has '{}'", own, needed,
                              controllers->substr(0, controllers->find('\n')));
  }
  KILN_RETURN_IF_ERROR(MakeDirs(own + "/daemon"));
  KILN_RETURN_IF_ERROR(MakeDirs(own + "/children"));
  KILN_RETURN_IF_ERROR(Put(own + "/daemon/cgroup.procs", "0"));
  KILN_RETURN_IF_ERROR(Put(own + "/cgroup.subtree_control", "+memory +pids"));
  const std::string children = own + "/children";
  KILN_RETURN_IF_ERROR(Put(children + "/memory.max", fmt::format("{}", limits.memory_bytes)));
  return Put(children + "/pids.max", fmt::format("{}", limits.processes));
}

}  // namespace

StatusOr<std::string> MakeChildGroup(const GroupLimits& limits, const std::string& root,
                                     const std::string& own) {
  const auto folder = OwnFolder(root, own);
  const Status made = folder.ok() ? MakeGroup(*folder, limits) : folder.status();
  if (made.ok()) return *folder + "/children";
  return FailedPrecondition("no control group is delegated to this daemon ({}); {}", Message(made),
                            kDelegate);
}

Status JoinGroup(const std::string& folder) { return Put(folder + "/cgroup.procs", "0"); }

}  // namespace kiln
