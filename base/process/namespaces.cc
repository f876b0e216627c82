#include "base/process/namespaces.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/process/process_guard.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr int kWithoutUser = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC;

// The kernel's interface of mount_setattr (linux/mount.h), which glibc 2.35 lacks.
struct MountAttributes {
  uint64_t set = 0, clear = 0, propagation = 0, user_namespace = 0;
};
constexpr long kMountSetAttributes = 442;
constexpr uint64_t kReadOnly = 1, kNoSetUid = 2, kNoDevices = 4, kNoPrograms = 8;

// ---- users ----------------------------------------------------------------------------------

Status WriteOnce(const char* path, std::string_view text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  if (file.valid() && write(file.get(), text.data(), text.size()) >= 0) return OkStatus();
  return ErrnoStatus(errno, "cannot write {}", path);
}

// Maps this process's user to nobody inside of its new user namespace. The files that say so belong
// to root while a process is hidden.
Status MapUser(uid_t user, gid_t group) {
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  KILN_RETURN_IF_ERROR(WriteOnce("/proc/self/setgroups", "deny"));
  KILN_RETURN_IF_ERROR(WriteOnce("/proc/self/uid_map", fmt::format("{} {} 1", kNobody, user)));
  KILN_RETURN_IF_ERROR(WriteOnce("/proc/self/gid_map", fmt::format("{} {} 1", kNobody, group)));
  HideProcess();
  return OkStatus();
}

// Returns whether this process needed a user namespace to make the others. Root that may not make
// them by its own right becomes another user first: in a user namespace it would stay root for all
// that is outside.
StatusOr<bool> Unshare(const std::string& scratch, bool nobody) {
  const bool changes_user = nobody && CanBecomeNobody();
  if (geteuid() == 0 && changes_user == nobody && unshare(kWithoutUser) == 0) return false;
  if (changes_user) {
    KILN_RETURN_IF_ERROR(GiveToNobody(scratch));
    KILN_RETURN_IF_ERROR(BecomeNobody());
  }
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER | kWithoutUser) != 0) return ErrnoStatus(errno, "cannot make them");
  KILN_RETURN_IF_ERROR(MapUser(user, group));
  return true;
}

// ---- files ----------------------------------------------------------------------------------

Status Mount(const char* source, const std::string& target, const char* type, unsigned long flags,
             const std::string& options = "") {
  if (mount(source, target.c_str(), type, flags, options.c_str()) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot mount {} on {}", source, target);
}

Status Restrict(const std::string& path, uint64_t attributes) {
  MountAttributes wanted{.set = attributes};
  if (syscall(kMountSetAttributes, AT_FDCWD, path.c_str(), AT_RECURSIVE, &wanted, sizeof(wanted)) ==
      0) {
    return OkStatus();
  }
  if (errno == ENOSYS) return Unimplemented("mount_setattr is missing, which Linux has since 5.12");
  return ErrnoStatus(errno, "cannot restrict {}", path);
}

// Builds a root folder in memory, on the mount point `at`.
class NewRoot {
 public:
  static StatusOr<NewRoot> Make(const std::string& at) {
    KILN_RETURN_IF_ERROR(Mount("none", "/", nullptr, MS_REC | MS_PRIVATE));
    KILN_RETURN_IF_ERROR(
        Mount("kiln", at, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m,nr_inodes=4096"));
    return NewRoot(at);
  }

  Status Show(const std::string& path, uint64_t attributes) {
    struct stat info{};
    // A path that is there is a part of a folder that was shown before.
    if (stat(path.c_str(), &info) != 0 || lstat((at_ + path).c_str(), &info) == 0) {
      return OkStatus();
    }
    std::error_code error;
    const fs::path link = fs::read_symlink(path, error);
    if (!error && link.is_relative() && fs::path(path).parent_path() == "/") {
      // For instance /lib, which is usr/lib.
      fs::create_symlink(link, at_ + path, error);
      return Show(fs::canonical(path, error), attributes);
    }
    KILN_RETURN_IF_ERROR(MakeMountPoint(path));
    KILN_RETURN_IF_ERROR(Mount(path.c_str(), at_ + path, nullptr, MS_BIND | MS_REC));
    return Restrict(at_ + path, attributes);
  }

  // The machine's settings below /proc are read-only, because root may write them without any
  // capability.
  Status AddProc() {
    KILN_RETURN_IF_ERROR(MakeDirs(at_ + "/proc"));
    KILN_RETURN_IF_ERROR(Mount("proc", at_ + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC));
    for (const char* const name :
         {"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"}) {
      const std::string path = fmt::format("{}/proc/{}", at_, name);
      if (!FileExists(path)) continue;
      KILN_RETURN_IF_ERROR(Mount(path.c_str(), path, nullptr, MS_BIND));
      KILN_RETURN_IF_ERROR(Restrict(path, kReadOnly));
    }
    return OkStatus();
  }

  Status AddMemory(const std::string& path, int64_t bytes) {
    KILN_RETURN_IF_ERROR(MakeDirs(at_ + path));
    return Mount("kiln", at_ + path, "tmpfs", MS_NOSUID | MS_NODEV,
                 fmt::format("mode=1777,size={},nr_inodes=65536", bytes));
  }

  // Makes this the root folder of all processes of the mount namespace. The old one is gone.
  Status Enter() {
    if (chdir(at_.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
        umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) {
      return ErrnoStatus(errno, "cannot change the root folder to {}", at_);
    }
    return Mount("none", "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV);
  }

 private:
  explicit NewRoot(std::string at) : at_(std::move(at)) {}

  Status MakeMountPoint(const std::string& path) {
    if (fs::is_directory(path)) return MakeDirs(at_ + path);
    KILN_RETURN_IF_ERROR(MakeDirs(fs::path(at_ + path).parent_path()));
    return WriteFile(at_ + path, "");
  }

  const std::string at_;
};

Status EnterView(const FileView& view) {
  KILN_ASSIGN_OR_RETURN(NewRoot root, NewRoot::Make(view.scratch));
  for (const std::string& path : view.read) {
    KILN_RETURN_IF_ERROR(root.Show(path, kReadOnly | kNoSetUid | kNoDevices));
  }
  for (const std::string& path : view.devices) {
    KILN_RETURN_IF_ERROR(root.Show(path, kNoSetUid | kNoPrograms));
  }
  for (const std::string& path : view.write) {
    KILN_RETURN_IF_ERROR(root.Show(path, kNoSetUid | kNoDevices));
  }
  if (view.has_shared_memory) {
    KILN_RETURN_IF_ERROR(root.AddMemory("/dev/shm", view.scratch_bytes));
  }
  KILN_RETURN_IF_ERROR(root.AddProc());
  KILN_RETURN_IF_ERROR(root.AddMemory(view.scratch, view.scratch_bytes));
  return root.Enter();
}

// ---- processes ------------------------------------------------------------------------------

void CloseAbove(unsigned first) { syscall(SYS_close_range, first, UINT32_MAX, 0); }

// Process 1 of the namespace, which reaps the others' orphans. It ends when the outer process does,
// which alone holds the other end of the pipe; all others end with it.
[[noreturn]] void RunInit(int pipe) {
  signal(SIGCHLD, SIG_IGN);
  dup2(pipe, 3);
  CloseAbove(4);
  char byte = 0;
  while (read(3, &byte, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Waits for the inner process, ends the others, and ends as that one did.
[[noreturn]] void EndAs(pid_t inner, pid_t init) {
  const int status = WaitFor(inner);
  kill(init, SIGKILL);
  WaitFor(init);
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

// Forks the first two processes of the namespace, and returns in the second.
Status ForkInside() {
  KILN_ASSIGN_OR_RETURN(Pipe alive, MakePipe());
  const pid_t init = fork();
  if (init < 0) return ErrnoStatus(errno, "cannot start their first process");
  if (init == 0) RunInit(alive.read.get());
  const pid_t inner = fork();
  if (inner < 0) return ErrnoStatus(errno, "cannot start their second process");
  if (inner == 0) return OkStatus();
  // The pipe's end must outlive this block.
  dup2(alive.write.Release(), 3);
  CloseAbove(4);
  EndAs(inner, init);
}

// The inner process of root becomes another user, in a user namespace of its own where there are
// such.
Status LeaveRoot() {
  KILN_RETURN_IF_ERROR(BecomeNobody());
  if (unshare(CLONE_NEWUSER) == 0) KILN_RETURN_IF_ERROR(MapUser(kNobody, kNobody));
  return OkStatus();
}

// Reads until all writers have closed the pipe. DeadlineExceeded if that takes longer than `limit`.
StatusOr<std::string> ReadToEnd(const UniqueFd& pipe, absl::Duration limit) {
  Clock& clock = Clock::Real();
  const int64_t end = clock.MonotonicNanos() + absl::ToInt64Nanoseconds(limit);
  std::string text;
  while (true) {
    const int64_t left = std::max<int64_t>(end - clock.MonotonicNanos(), 0);
    pollfd waited{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    const int ready = poll(&waited, 1, static_cast<int>(left / 1'000'000));
    if (ready == 0) {
      return DeadlineExceeded("the process has not ended after {}", absl::FormatDuration(limit));
    }
    char part[256];
    const ssize_t got = ready < 0 ? -1 : read(pipe.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
}

// Returns what the tried process said, or what became of it.
std::string WhyNot(const StatusOr<std::string>& text) {
  if (!text.ok()) return std::string(Message(text.status()));
  return text->empty() ? "the process died" : *text;
}

// Kills a process that holds `pipe`, and reaps it. One that hangs in the kernel is left alone.
void KillHolder(pid_t pid, const UniqueFd& pipe) {
  constexpr absl::Duration kLimit = absl::Seconds(1);
  kill(pid, SIGKILL);
  if (ReadToEnd(pipe, kLimit).ok()) WaitFor(pid);
}

// Returns a user's id outside of the user namespace of this process; nullopt: the namespace has no
// such user.
std::optional<uint32_t> UserOutside(uint32_t user) {
  const auto map = ReadFile("/proc/self/uid_map", 1 << 16);
  // A kernel without user namespaces has no such file.
  if (!map.ok()) return user;
  const char* at = map->c_str();
  unsigned long long inside = 0, outside = 0, count = 0;
  int used = 0;
  while (std::sscanf(at, "%llu %llu %llu%n", &inside, &outside, &count, &used) == 3) {
    if (user >= inside && user - inside < count) {
      return static_cast<uint32_t>(outside + (user - inside));
    }
    at += used;
  }
  return std::nullopt;
}

bool HasCapabilities(std::initializer_list<unsigned> capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, held) != 0) return false;
  return std::ranges::all_of(capabilities, [&](unsigned capability) {
    return (held[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
  });
}

// ---- reasons --------------------------------------------------------------------------------

std::string SettingOf(const char* path) {
  const auto text = ReadFile(path, 64);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

// Returns whether the root folder is no mount point, as in a chroot. Its mounts cannot be changed
// then.
bool IsInChroot() {
  struct statx about = {};
  return statx(AT_FDCWD, "/", 0, 0, &about) == 0 &&
         (about.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
         (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0;
}

// Returns what to do about namespaces that fail, from the settings of this machine.
std::string Advice() {
  if (IsInChroot()) {
    return "the root folder is no mount point; before chroot, make it one: mount --bind FOLDER "
           "FOLDER";
  }
  if (SettingOf("/proc/sys/user/max_user_namespaces") == "0") {
    return "user.max_user_namespaces is 0; set it: sysctl -w user.max_user_namespaces=15000";
  }
  if (SettingOf("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    return "kernel.unprivileged_userns_clone is 0; set it: sysctl -w "
           "kernel.unprivileged_userns_clone=1";
  }
  if (SettingOf("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return "AppArmor restricts user namespaces; allow them: sysctl -w "
           "kernel.apparmor_restrict_unprivileged_userns=0";
  }
  return "a container may forbid it; start the container with --security-opt seccomp=unconfined "
         "--security-opt systempaths=unconfined, or with --privileged";
}

}  // namespace

Status DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot give up the capabilities of a process");
}

bool NobodyExists() { return UserOutside(kNobody).has_value(); }

bool CanBecomeNobody() {
  return geteuid() == 0 && NobodyExists() && HasCapabilities({CAP_SETUID, CAP_SETGID, CAP_CHOWN});
}

bool IsRootOutside() { return UserOutside(0) == 0; }

Status GiveToNobody(const std::string& path) {
  if (chown(path.c_str(), kNobody, kNobody) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot give {} to user {}", path, kNobody);
}

Status BecomeNobody() {
  if (geteuid() != 0) return OkStatus();
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  const pid_t parent = getppid();
  if (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
      setresuid(kNobody, kNobody, kNobody) != 0) {
    return ErrnoStatus(errno, "cannot become user {}", kNobody);
  }
  // The change of the user undoes it. The parent may have ended meanwhile.
  if (death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) _exit(128 + death_signal);
  }
  return OkStatus();
}

Status EnterNamespaces(const FileView& view, bool nobody) {
  KILN_ASSIGN_OR_RETURN(const bool has_user_namespace, Unshare(view.scratch, nobody));
  HideProcess();
  KILN_RETURN_IF_ERROR(ForkInside());
  KILN_RETURN_IF_ERROR(EnterView(view));
  if (!has_user_namespace && nobody) KILN_RETURN_IF_ERROR(LeaveRoot());
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return ErrnoStatus(errno, "cannot give up new privileges");
  }
  KILN_RETURN_IF_ERROR(DropCapabilities());
  HideProcess();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return OkStatus();
}

Status TryNamespaces(absl::Duration limit) {
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-namespaces"));
  KILN_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "cannot fork");
  if (pid == 0) {
    const Status status = EnterNamespaces({.read = {"/usr/lib"}, .scratch = folder.path()}, true);
    const std::string text = status.ok() ? "ok" : std::string(Message(status));
    [[maybe_unused]] const ssize_t written = write(pipe.write.get(), text.data(), text.size());
    _exit(0);
  }
  pipe.write.Reset();
  const StatusOr<std::string> text = ReadToEnd(pipe.read, limit);
  if (text.ok()) {
    WaitFor(pid);
  } else {
    KillHolder(pid, pipe.read);
  }
  if (text.ok() && *text == "ok") return OkStatus();
  return FailedPrecondition("namespaces do not work here ({}): {}", WhyNot(text), Advice());
}

}  // namespace kiln
