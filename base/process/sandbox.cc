#include "base/process/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>

#include "base/errno_status.h"
#include "base/process/containment_table.h"
#include "base/process/file_access.h"
#include "base/process/process_guard.h"
#include "base/process/system_call_filter.h"

namespace kiln {
namespace {

// System calls that neither compilers nor drivers nor programs have a use for: other processes'
// memory, mounts and namespaces, and the machine.
constexpr uint32_t kRefused[] = {
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
    // Files and namespaces.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_move_mount,
    SYS_open_tree, SYS_fsopen, SYS_fsmount, SYS_fsconfig, SYS_fspick, SYS_open_by_handle_at,
    SYS_name_to_handle_at, SYS_mknod, SYS_mknodat, SYS_quotactl,
    // Interfaces of the kernel with a history of bugs.
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    // The machine.
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon,
    SYS_swapoff, SYS_acct, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex,
    SYS_clock_adjtime, SYS_sethostname, SYS_setdomainname};

constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                    CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;

// Calls that change owners, modes, times and attributes of files, which Landlock does not restrict.
// Headers lack the newest ones, whose numbers are the same on all architectures.
constexpr uint32_t kFchmodat2 = 452, kSetxattrat = 463, kRemovexattrat = 466, kFileSetattr = 469;
constexpr uint32_t kChangesOfAttributes[] = {
#ifdef __x86_64__
    SYS_chmod,        SYS_chown,      SYS_lchown,    SYS_utime,   SYS_utimes,      SYS_futimesat,
#endif
    SYS_fchmod,       SYS_fchmodat,   kFchmodat2,    SYS_fchown,  SYS_fchownat,    SYS_utimensat,
    SYS_setxattr,     SYS_lsetxattr,  SYS_fsetxattr, kSetxattrat, SYS_removexattr, SYS_lremovexattr,
    SYS_fremovexattr, kRemovexattrat, kFileSetattr};

// The sockets are those between processes of this child, and for some children those that connect
// to servers of the machine by a file.
void RefuseSockets(SystemCallFilter& filter, bool connects_to_files) {
  filter.RefuseUnlessArgument(SYS_socketpair, 0, AF_UNIX);
  if (connects_to_files) {
    filter.RefuseUnlessArgument(SYS_socket, 0, AF_UNIX);
    return;
  }
  filter.Refuse(SYS_socket);
  // One of a pair of datagram sockets (the type SOCK_RAW gives the same) can be connected anew. The
  // other types lack their bit.
  static_assert((SOCK_RAW & SOCK_DGRAM) != 0 && ((SOCK_STREAM | SOCK_SEQPACKET) & SOCK_DGRAM) == 0);
  filter.RefuseIfAnyBit(SYS_socketpair, 1, SOCK_DGRAM);
}

// Refuses changes of files of the machine that Landlock lets pass.
void RefuseChangesOfFiles(SystemCallFilter& filter) {
  for (const uint32_t call : kChangesOfAttributes) filter.Refuse(call);
  if (CanRestrictTruncation()) return;
  filter.Refuse(SYS_truncate);
  // A file that is opened for reading may be emptied, too.
#ifdef __x86_64__
  filter.RefuseIfArgument(SYS_open, 1, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
#endif
  filter.RefuseIfArgument(SYS_openat, 2, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
  // Its flags are in memory.
  filter.RefuseAsUnknown(SYS_openat2);
}

Status RefuseSystemCalls(const Sandbox& sandbox) {
  SystemCallFilter filter(SystemCallFilter::OtherCalls::kAllowed);
  for (const uint32_t call : kRefused) filter.Refuse(call);
  filter.RefuseIfAnyBit(SYS_clone, 0, kNewNamespaces);
  // Its flags are in memory, which a filter does not see. The C library has another way then.
  filter.RefuseAsUnknown(SYS_clone3);
  RefuseSockets(filter, sandbox.view.has_sockets);
  if (!sandbox.namespaces) RefuseChangesOfFiles(filter);
  return filter.Install(SystemCallFilter::Threads::kThis);
}

// The processes of the child write settings of their own below /proc. Outside of namespaces root
// could write those of the machine there, too.
FileAccess AccessOf(const Sandbox& sandbox) {
  const FileView& view = sandbox.view;
  FileAccess access{.read = view.read, .write = view.write};
  access.write.insert(access.write.end(), view.devices.begin(), view.devices.end());
  access.write.push_back(view.scratch);
  const bool writes_proc = sandbox.namespaces || geteuid() != 0;
  (writes_proc ? access.write : access.read).emplace_back("/proc");
  if (view.has_shared_memory) access.write.emplace_back("/dev/shm");
  return access;
}

// Outside of namespaces the scratch folder is one of the machine's, which the daemon made.
Status EnterWithoutNamespaces(const Sandbox& sandbox) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return ErrnoStatus(errno, "cannot give up new privileges");
  }
  if (sandbox.nobody && geteuid() == 0) {
    KILN_RETURN_IF_ERROR(GiveToNobody(sandbox.view.scratch));
    KILN_RETURN_IF_ERROR(BecomeNobody());
  }
  return DropCapabilities();
}

// Returns why children of root stay root.
std::string_view WhyRoot(const SandboxWish& wish) {
  if (!wish.nobody) {
    return "children run as root, because --no-drop-privileges is given; leave it out";
  }
  if (!NobodyExists()) {
    return "children run as root, because user 65534 does not exist here; start the daemon in a "
           "user namespace with more than one user";
  }
  return "children run as root, because the daemon lacks one of the capabilities CAP_SETUID, "
         "CAP_SETGID and CAP_CHOWN and cannot make them user 65534; give it these, or start it as "
         "an ordinary user";
}

void GiveUp(SandboxFound& found, std::string_view means, std::string gap) {
  std::erase(found.applied, means);
  found.gaps.push_back(std::move(gap));
}

}  // namespace

SandboxFound FindSandbox(const SandboxWish& wish) {
  SandboxFound found;
  Sandbox& sandbox = found.sandbox;
  sandbox.wanted = true;
  sandbox.view = wish.view;
  const ContainmentFacts facts = ContainmentFactsHere();
  const auto note = [&](bool applies, std::string_view means, std::string_view gap) {
    if (applies) {
      found.applied.emplace_back(means);
    } else {
      found.gaps.emplace_back(gap);
    }
  };
  sandbox.namespaces = facts.namespaces.empty();
  note(sandbox.namespaces, "namespaces", facts.namespaces);
  if (facts.is_root) {
    sandbox.nobody = wish.nobody && (facts.has_nobody || sandbox.namespaces);
    // A user that is another one inside of its namespaces alone may still be root outside.
    const bool stays_root = !facts.has_nobody && facts.is_root_outside;
    note(sandbox.nobody && !stays_root, "unprivileged user", WhyRoot(wish));
  } else {
    found.applied.emplace_back("unprivileged user");
  }
  note(facts.filters_calls, "seccomp",
       "this kernel or build has no seccomp; use a kernel with CONFIG_SECCOMP_FILTER and a build "
       "without sanitizers");
  note(facts.restricts_files, "Landlock",
       "this kernel has no Landlock; use Linux 5.13 or newer with landlock in its list of security "
       "modules (lsm=landlock,...)");
  const auto group = MakeChildGroup(wish.limits);
  if (group.ok()) sandbox.group = *group;
  note(group.ok(), "cgroup", group.ok() ? "" : Message(group.status()));
  found.applied.insert(found.applied.end(), {"no new privileges", "rlimits"});
  return found;
}

Status FitSandbox(SandboxFound& found, const std::function<Status(const Sandbox&)>& opens) {
  if (!found.sandbox.namespaces && !found.sandbox.nobody) return OkStatus();
  Status opened = opens(found.sandbox);
  if (opened.ok()) return opened;
  SandboxFound fewer = found;
  if (fewer.sandbox.namespaces) {
    fewer.sandbox.namespaces = false;
    GiveUp(fewer, "namespaces",
           fmt::format("children run without namespaces, because the device does not open in them "
                       "({}); see the list of what a driver needs in docs/runner.md",
                       Message(opened)));
    opened = opens(fewer.sandbox);
  }
  if (!opened.ok() && fewer.sandbox.nobody) {
    fewer.sandbox.nobody = false;
    GiveUp(fewer, "unprivileged user",
           fmt::format("children run as root, because the device does not open for user {} ({}); "
                       "let that user read and write the device's files, for instance /dev/nvidia*",
                       kNobody, Message(opened)));
    opened = opens(fewer.sandbox);
  }
  if (opened.ok()) found = std::move(fewer);
  return opened;
}

Status RequireNoGaps(const SandboxFound& found) {
  if (found.gaps.empty()) return OkStatus();
  return FailedPrecondition(
      "--require-sandbox is given, and {} of the sandbox's means do not work here:\n  {}",
      found.gaps.size(), fmt::join(found.gaps, "\n  "));
}

std::vector<std::string> ArgumentsOf(const Sandbox& sandbox) {
  std::vector<std::string> arguments = {"--sandbox"};
  if (sandbox.namespaces) arguments.emplace_back("--namespaces");
  if (sandbox.nobody) arguments.emplace_back("--nobody");
  const auto add = [&](const char* option, const std::string& value) {
    arguments.emplace_back(option);
    arguments.push_back(value);
  };
  if (!sandbox.group.empty()) add("--group", sandbox.group);
  for (const std::string& path : sandbox.view.read) add("--see", path);
  for (const std::string& path : sandbox.view.devices) add("--use-device", path);
  for (const std::string& path : sandbox.view.write) add("--write", path);
  if (sandbox.view.has_shared_memory) arguments.emplace_back("--shared-memory");
  if (sandbox.view.has_sockets) arguments.emplace_back("--sockets");
  return arguments;
}

void AddSandboxOptions(CLI::App& app, Sandbox& sandbox) {
  app.add_flag("--sandbox", sandbox.wanted);
  app.add_flag("--namespaces", sandbox.namespaces);
  app.add_flag("--nobody", sandbox.nobody);
  app.add_option("--group", sandbox.group);
  app.add_option("--see", sandbox.view.read)->expected(1)->take_all();
  app.add_option("--use-device", sandbox.view.devices)->expected(1)->take_all();
  app.add_option("--write", sandbox.view.write)->expected(1)->take_all();
  app.add_flag("--shared-memory", sandbox.view.has_shared_memory);
  app.add_flag("--sockets", sandbox.view.has_sockets);
}

Status EnterSandbox(Sandbox sandbox) {
  if (!sandbox.wanted) return OkStatus();
  const char* const scratch = std::getenv("TMPDIR");
  if (scratch == nullptr) return InvalidArgument("TMPDIR names no scratch folder");
  sandbox.view.scratch = scratch;
  setenv("HOME", scratch, 1);
  if (!sandbox.group.empty()) KILN_RETURN_IF_ERROR(JoinGroup(sandbox.group));
  KILN_RETURN_IF_ERROR(sandbox.namespaces ? EnterNamespaces(sandbox.view, sandbox.nobody)
                                          : EnterWithoutNamespaces(sandbox));
  if (CanRestrictFiles()) KILN_RETURN_IF_ERROR(RestrictFiles(AccessOf(sandbox)));
  return SystemCallFilter::Works() ? RefuseSystemCalls(sandbox) : OkStatus();
}

}  // namespace kiln
