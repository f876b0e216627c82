#include "base/process/file_access.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "base/errno_status.h"
#include "base/file/fd.h"

namespace kiln {
namespace {

// The kernel's interface (linux/landlock.h). Older headers lack its newer parts. A kernel reads no
// more of a structure than the size that it is given.
struct RulesetAttributes {
  uint64_t handled_access_fs = 0;
  // Since version 4 of Landlock's interface.
  uint64_t handled_access_net = 0;
  // Since its version 6.
  uint64_t scoped = 0;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
// The numbers are the same on all architectures.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;

constexpr uint64_t kExecute = 1 << 0, kReadFile = 1 << 2, kReadFolder = 1 << 3;
constexpr uint64_t kOfFiles = kExecute | 1 << 1 | kReadFile | 1 << 14 | 1 << 15;
constexpr uint64_t kRead = kExecute | kReadFile | kReadFolder;

constexpr int kTruncationVersion = 3;

// Returns all rights that a version knows. Version 1 has 13; later versions add linking and
// renaming between folders, truncating, and controlling devices.
uint64_t AllAccess(int version) {
  uint64_t rights = (uint64_t{1} << 13) - 1;
  if (version >= 2) rights |= uint64_t{1} << 13;
  if (version >= kTruncationVersion) rights |= uint64_t{1} << 14;
  if (version >= 5) rights |= uint64_t{1} << 15;
  return rights;
}

int Version() {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

size_t AttributeBytes(int version) {
  return sizeof(uint64_t) * (version >= 6 ? 3 : version >= 4 ? 2 : 1);
}

Status AddPath(const UniqueFd& ruleset, const std::string& path, uint64_t rights) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return OkStatus();
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "cannot look at {}", path);
  if (!S_ISDIR(info.st_mode)) rights &= kOfFiles;
  const PathBeneath rule{rights, fd.get()};
  if (syscall(kAddRule, ruleset.get(), kPathBeneath, &rule, 0) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot allow a process to use {}", path);
}

}  // namespace

bool CanRestrictFiles() { return Version() > 0; }

bool CanRestrictTruncation() { return Version() >= kTruncationVersion; }

Status RestrictFiles(const FileAccess& access) {
  const int version = Version();
  if (version == 0) return Unimplemented("this kernel has no Landlock, or it is switched off");
  RulesetAttributes attributes;
  const uint64_t all = AllAccess(version);
  attributes.handled_access_fs = all;
  // To bind and to connect by TCP.
  attributes.handled_access_net = 3;
  // Abstract sockets and signals.
  attributes.scoped = 3;
  const UniqueFd ruleset(
      static_cast<int>(syscall(kCreateRuleset, &attributes, AttributeBytes(version), 0)));
  if (!ruleset.valid()) return ErrnoStatus(errno, "cannot restrict the files of a process");
  for (const std::string& path : access.read) {
    KILN_RETURN_IF_ERROR(AddPath(ruleset, path, kRead));
  }
  for (const std::string& path : access.write) {
    KILN_RETURN_IF_ERROR(AddPath(ruleset, path, all));
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(kRestrictSelf, ruleset.get(), 0) != 0) {
    return ErrnoStatus(errno, "cannot restrict the files of a process");
  }
  return OkStatus();
}

Status RunRestricted(const FileAccess& access, const std::function<void()>& work) {
  if (!CanRestrictFiles()) {
    work();
    return OkStatus();
  }
  Status status;
  std::thread thread([&] {
    status = RestrictFiles(access);
    if (status.ok()) work();
  });
  thread.join();
  return status;
}

std::vector<std::string> SystemLibraryFolders() {
  return {
      "/lib",       "/lib32",         "/lib64",           "/usr/lib",         "/usr/lib32",
      "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf"};
}

}  // namespace kiln
