#include "runner/containment.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/process/containment_table.h"
#include "base/process/file_access.h"
#include "base/process/namespaces.h"
#include "base/process/process_guard.h"
#include "base/process/process_tree.h"
#include "base/process/system_call_filter.h"

namespace kiln::runner {
namespace {

constexpr int64_t kOpenFiles = 128;

// Sanitizers reserve terabytes of address space, and their runtimes make calls that programs have
// no use for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// ---- system calls ---------------------------------------------------------------------------

// The calls that a run makes come first, because the filter compares them one after another.
constexpr uint32_t kAllowed[] = {
    // Threads that exist already.
    SYS_futex, SYS_sched_yield, SYS_set_robust_list, SYS_rseq, SYS_membarrier, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_exit, SYS_exit_group,
    SYS_restart_syscall,
    // Time.
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
    // Memory.
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
    // Descriptors that are open.
    SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_lseek, SYS_close, SYS_fstat,
    SYS_recvfrom, SYS_sendto,
    // The loader's questions about files.
    SYS_newfstatat, SYS_readlinkat, SYS_faccessat, SYS_getcwd,
#ifdef __x86_64__
    SYS_stat, SYS_lstat, SYS_readlink, SYS_access,
#endif
    // Questions of the process about itself.
    SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getcpu,
    SYS_sched_getaffinity, SYS_getrusage, SYS_times, SYS_uname, SYS_sysinfo, SYS_getrandom};

// Signals by which a program may end itself (abort, raise, a fault that is reported), and 0. Above
// all it cannot stand still.
constexpr std::initializer_list<uint32_t> kOwnSignals = {0,      SIGABRT, SIGSEGV, SIGBUS,
                                                         SIGFPE, SIGILL,  SIGTERM, SIGKILL};

Status InstallFilter() {
  SystemCallFilter filter(SystemCallFilter::OtherCalls::kFail);
  for (const uint32_t call : kAllowed) filter.Allow(call);
  const auto self = static_cast<uint32_t>(getpid());
  // Opening is allowed for reading only: none of the bits that write, make or change may be set.
  filter.AllowIfArgument(SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | O_PATH, 0);
  filter.AllowIfArguments(SYS_tgkill, 0, self, 2, kOwnSignals);
  filter.AllowIfArguments(SYS_kill, 0, self, 1, kOwnSignals);
  filter.AllowIfArgument(SYS_prlimit64, 0, UINT32_MAX, 0);
  return filter.Install(SystemCallFilter::Threads::kAll);
}

// ---- descriptors and limits -----------------------------------------------------------------

void CloseRange(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  // A kernel before 5.9 has no close_range.
  const unsigned end = std::min(last, 65536u);
  for (unsigned fd = first; fd <= end; ++fd) close(static_cast<int>(fd));
}

void CloseAllBut(std::span<const int> kept) {
  std::vector<int> fds(kept.begin(), kept.end());
  std::sort(fds.begin(), fds.end());
  unsigned next = 3;
  for (const int fd : fds) {
    if (fd < 3) continue;
    CloseRange(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
  }
  CloseRange(next, UINT32_MAX);
}

int64_t AddressSpaceBytes() {
  const auto statm = ReadFile("/proc/self/statm", 4096);
  if (!statm.ok()) return 0;
  return int64_t{sysconf(_SC_PAGESIZE)} * std::strtoll(statm->c_str(), nullptr, 10);
}

Status SetLimit(__rlimit_resource resource, std::string_view name, int64_t value) {
  rlimit limit{};
  getrlimit(resource, &limit);
  const rlim_t bound = std::min(static_cast<rlim_t>(value), limit.rlim_max);
  limit = {bound, bound};
  if (setrlimit(resource, &limit) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot limit the {} of a program to {}", name, value);
}

Status SetLimits(const ContainmentOptions& options, int64_t extra_bytes) {
  KILN_RETURN_IF_ERROR(SetLimit(RLIMIT_CORE, "core file", 0));
  KILN_RETURN_IF_ERROR(SetLimit(RLIMIT_CPU, "seconds on CPUs", options.cpu_s));
  KILN_RETURN_IF_ERROR(SetLimit(RLIMIT_FSIZE, "file size", options.output_bytes));
  KILN_RETURN_IF_ERROR(SetLimit(RLIMIT_NOFILE, "open files", kOpenFiles));
  const int64_t now_bytes = AddressSpaceBytes();
  if (kSanitized || now_bytes == 0) return OkStatus();
  return SetLimit(RLIMIT_AS, "address space", now_bytes + extra_bytes);
}

}  // namespace

std::string MissingContainment(const ContainmentOptions& options) {
  ContainmentFacts facts = ContainmentFactsHere();
  facts.drops_privileges = options.drop_privileges;
  return BrokenContainmentLines(facts, {Contained::kCpuProgram, Contained::kAll});
}

Status Confine(const ContainmentOptions& options, std::span<const int> kept, int64_t extra_bytes) {
  const pid_t parent = getppid();
  CloseAllBut(kept);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return ErrnoStatus(errno, "cannot give up new privileges");
  }
  // Writing into a full file is then an error, and does not end the process.
  signal(SIGXFSZ, SIG_IGN);
  KILN_RETURN_IF_ERROR(SetLimits(options, extra_bytes));
  // Root that had to stay root when it entered its sandbox has no capabilities to change its user.
  if (options.drop_privileges && CanBecomeNobody()) KILN_RETURN_IF_ERROR(BecomeNobody());
  KILN_RETURN_IF_ERROR(DropCapabilities());
  // The program itself is a memory file. Beside it, the loader needs only the libraries of the
  // system.
  if (CanRestrictFiles() && !kSanitized) {
    KILN_RETURN_IF_ERROR(RestrictFiles({.read = SystemLibraryFolders()}));
  }
  // This comes last, because a change of the user undoes it. The parent may have ended before.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);
  return OkStatus();
}

Status ForbidSystemCalls() {
  if (kSanitized) return OkStatus();
  // The limit counts all processes of the user, this one included, so 0 allows no further process.
  KILN_RETURN_IF_ERROR(SetLimit(RLIMIT_NPROC, "processes", 0));
  return SystemCallFilter::Works() ? InstallFilter() : OkStatus();
}

Status ForbidOpening(pid_t pid) {
  if (kSanitized) return OkStatus();
  const rlimit none{0, 0};
  int failed = prlimit(pid, RLIMIT_NOFILE, &none, nullptr) == 0 ? 0 : errno;
  if (failed == EPERM && geteuid() == 0) {
    // Containers seldom let root limit the processes of others (CAP_SYS_RESOURCE). A process with
    // the same real user may do so.
    const gid_t group = getgid();
    const uid_t user = getuid();
    if (setresgid(kNobody, -1, -1) == 0 && setresuid(kNobody, -1, -1) == 0) {
      failed = prlimit(pid, RLIMIT_NOFILE, &none, nullptr) == 0 ? 0 : errno;
    }
    if (setresuid(user, -1, -1) != 0 || setresgid(group, -1, -1) != 0) failed = errno;
  }
  if (failed == 0) return OkStatus();
  return ErrnoStatus(failed, "cannot keep a program from opening files");
}

void AdoptOrphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  HideProcess();
}

void EndOrphans() {
  int adopts = 0;
  if (prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0) != 0 || adopts == 0) return;
  while (true) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended > 0 || (ended < 0 && errno == EINTR)) continue;
    // There is no child left.
    if (ended < 0) return;
    // The orphans of a process that is killed here become children of this process, and are found
    // the next time.
    for (const pid_t child : ChildrenOf(getpid())) kill(child, SIGKILL);
    usleep(1000);
  }
}

}  // namespace kiln::runner
