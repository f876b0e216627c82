#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

#include "base/clock.h"
#include "base/errno_status.h"

namespace kiln {
namespace {

using Stream = SubprocessOptions::Stream;

constexpr std::string_view kParentVariable = "SUBPROCESS_PARENT_PID";
constexpr int kFirstInheritedFd = 3;

// Runs functions on one thread that never ends; see the head of subprocess.h.
class SpawnThread {
 public:
  static SpawnThread& Get() {
    static SpawnThread* thread = new SpawnThread;
    return *thread;
  }

  void Run(const std::function<void()>& function) {
    std::unique_lock<std::mutex> lock(mutex_);
    bool done = false;
    queue_.push([&] {
      function();
      std::lock_guard<std::mutex> done_lock(mutex_);
      done = true;
      changed_.notify_all();
    });
    changed_.notify_all();
    changed_.wait(lock, [&] { return done; });
  }

 private:
  SpawnThread() {
    std::thread([this] { Loop(); }).detach();
  }

  void Loop() {
    // Other threads wait for signals.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !queue_.empty(); });
      auto work = std::move(queue_.front());
      queue_.pop();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> queue_;
};

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> MakeEnvironment(const SubprocessOptions& options) {
  std::vector<std::string> added = options.env;
  added.push_back(fmt::format("{}={}", kParentVariable, getpid()));
  std::vector<std::string> result;
  for (char** p = environ; !options.clear_env && p != nullptr && *p != nullptr; ++p) {
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& variable) {
      return NameOf(variable) == NameOf(*p);
    });
    if (!replaced) result.emplace_back(*p);
  }
  result.insert(result.end(), added.begin(), added.end());
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }

  // `source` must be above all targets, or a later action might find it overwritten.
  void Dup(int source, int target) { posix_spawn_file_actions_adddup2(&actions_, source, target); }
  void OpenNull(int target) {
    posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0);
  }
  void CloseFrom(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(bool own_process_group) {
    posix_spawnattr_init(&attributes_);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (own_process_group) flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes_, flags);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes_, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&attributes_, &set);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

StatusOr<UniqueFd> DupAbove(int fd, int lowest) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
  if (copy < 0) return ErrnoStatus(errno, "cannot pass descriptor {} to a child", fd);
  return UniqueFd(copy);
}

// Sets up descriptor 0, 1 or 2 of the child; `ours` receives our end of a pipe.
Status SetUpStream(Stream stream, int target, int lowest, FileActions& actions, UniqueFd& ours,
                   std::vector<UniqueFd>& theirs) {
  if (stream == Stream::kInherit) return OkStatus();
  if (stream == Stream::kNull) {
    actions.OpenNull(target);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  UniqueFd& child_end = target == 0 ? pipe.read : pipe.write;
  ours = std::move(target == 0 ? pipe.write : pipe.read);
  KILN_ASSIGN_OR_RETURN(UniqueFd copy, DupAbove(child_end.get(), lowest));
  actions.Dup(copy.get(), target);
  theirs.push_back(std::move(copy));
  return OkStatus();
}

Status SetLimit(pid_t pid, __rlimit_resource resource, std::string_view name, int64_t soft,
                int64_t hard) {
  rlimit limit{static_cast<rlim_t>(soft), static_cast<rlim_t>(hard)};
  if (prlimit(pid, resource, &limit, nullptr) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot set the {} limit of process {} to {}", name, pid, soft);
}

// Calls pidfd_open directly, because glibc 2.36 has it in a header that does not work from C++.
int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

int PollTimeoutMs(absl::Duration left) {
  if (left <= absl::ZeroDuration()) return 0;
  const double ms = absl::ToDoubleMilliseconds(left);
  return ms > 1e9 ? 1'000'000'000 : static_cast<int>(ms) + 1;
}

class Deadline {
 public:
  explicit Deadline(absl::Duration timeout)
      : infinite_(timeout == absl::InfiniteDuration()),
        end_(infinite_ ? absl::InfiniteDuration() : Now() + timeout) {}
  absl::Duration Left() const { return infinite_ ? absl::InfiniteDuration() : end_ - Now(); }
  bool Passed() const { return Left() <= absl::ZeroDuration(); }

 private:
  static absl::Duration Now() { return absl::Nanoseconds(Clock::Real().MonotonicNanos()); }
  bool infinite_;
  absl::Duration end_;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

struct Subprocess::State {
  pid_t pid = 0;
  bool own_group = true;
  // Invalid if the kernel or a sandbox refuses it.
  UniqueFd pidfd;
  UniqueFd input, output, error;

  // Guards `ended` and the time between the end of the child and its reaping.
  std::mutex mutex;
  std::optional<ExitStatus> ended;

  ~State() {
    if (pid == 0) return;
    Kill(SIGKILL);
    while (!WaitOnce(-1)) {
    }
  }

  void Kill(int signal) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!ended) kill(own_group ? -pid : pid, signal);
  }

  // Waits up to timeout_ms (-1: no limit), and may return early. True if the child has ended and is
  // reaped.
  bool WaitOnce(int timeout_ms) {
    if (Reap()) return true;
    if (pidfd.valid()) {
      pollfd poll_fd{pidfd.get(), POLLIN, 0};
      poll(&poll_fd, 1, timeout_ms);
    } else {
      constexpr int kStepMs = 5;
      std::this_thread::sleep_for(
          std::chrono::milliseconds(timeout_ms < 0 ? kStepMs : std::min(timeout_ms, kStepMs)));
    }
    return Reap();
  }

  bool Reap() {
    std::lock_guard<std::mutex> lock(mutex);
    if (ended) return true;
    siginfo_t info{};
    if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
      return false;
    // The dead child still holds its pid, so the signal reaches its group and no stranger's.
    if (own_group) kill(-pid, SIGKILL);
    int status = 0;
    rusage usage{};
    pid_t reaped = 0;
    do {
      reaped = wait4(pid, &status, 0, &usage);
    } while (reaped < 0 && errno == EINTR);
    ended = Describe(reaped, status, usage);
    return true;
  }

  static ExitStatus Describe(pid_t reaped, int status, const rusage& usage) {
    ExitStatus exit;
    if (reaped < 0) {
      // Somebody else has reaped the child, and has its status.
      exit.code = -1;
      return exit;
    }
    if (WIFSIGNALED(status)) {
      exit.signal = WTERMSIG(status);
      exit.core_dumped = WCOREDUMP(status);
    } else {
      exit.code = WEXITSTATUS(status);
    }
    exit.cpu_s = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
    exit.max_rss_bytes = int64_t{1024} * usage.ru_maxrss;
    return exit;
  }
};

std::string ExitStatus::ToString() const {
  if (signal == 0) return fmt::format("exit status {}", code);
  const char* name = sigdescr_np(signal);
  return fmt::format("killed by signal {} ({}){}", signal, name == nullptr ? "unknown" : name,
                     core_dumped ? ", core dumped" : "");
}

Status ApplyResourceLimits(const ResourceLimits& limits, pid_t pid) {
  auto set = [&](__rlimit_resource resource, std::string_view name,
                 const std::optional<int64_t>& value, int64_t extra) -> Status {
    if (!value) return OkStatus();
    return SetLimit(pid, resource, name, *value, *value + extra);
  };
  KILN_RETURN_IF_ERROR(set(RLIMIT_AS, "address space", limits.address_space_bytes, 0));
  KILN_RETURN_IF_ERROR(set(RLIMIT_DATA, "data", limits.data_bytes, 0));
  KILN_RETURN_IF_ERROR(set(RLIMIT_CPU, "cpu time", limits.cpu_s, 1));
  KILN_RETURN_IF_ERROR(set(RLIMIT_NOFILE, "open files", limits.open_files, 0));
  KILN_RETURN_IF_ERROR(set(RLIMIT_FSIZE, "file size", limits.file_bytes, 0));
  KILN_RETURN_IF_ERROR(set(RLIMIT_NPROC, "processes", limits.processes, 0));
  return limits.core_dumps ? OkStatus() : SetLimit(pid, RLIMIT_CORE, "core file", 0, 0);
}

StatusOr<Subprocess> Subprocess::Spawn(const SubprocessOptions& options) {
  if (options.argv.empty()) return InvalidArgument("a child process needs a program to run");
  auto state = std::make_unique<State>();
  state->own_group = options.own_process_group;

  FileActions actions;
  // Open until the child has its copies.
  std::vector<UniqueFd> theirs;
  const int first_unused = kFirstInheritedFd + static_cast<int>(options.inherited_fds.size());
  KILN_RETURN_IF_ERROR(SetUpStream(options.input, 0, first_unused, actions, state->input, theirs));
  KILN_RETURN_IF_ERROR(
      SetUpStream(options.output, 1, first_unused, actions, state->output, theirs));
  KILN_RETURN_IF_ERROR(SetUpStream(options.error, 2, first_unused, actions, state->error, theirs));
  int target = kFirstInheritedFd;
  for (int fd : options.inherited_fds) {
    KILN_ASSIGN_OR_RETURN(UniqueFd copy, DupAbove(fd, first_unused));
    actions.Dup(copy.get(), target++);
    theirs.push_back(std::move(copy));
  }
  actions.CloseFrom(first_unused);

  const Attributes attributes(options.own_process_group);
  const std::vector<std::string> environment = MakeEnvironment(options);
  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<char*> envp = Pointers(environment);
  int error = 0;
  pid_t pid = 0;
  Status confined;
  const auto spawn = [&] {
    if (options.confine) confined = options.confine();
    if (!confined.ok()) return;
    error = posix_spawnp(&pid, argv[0], actions.get(), attributes.get(), argv.data(), envp.data());
  };
  if (options.confine) {
    std::thread(spawn).join();
  } else {
    SpawnThread::Get().Run(spawn);
  }
  KILN_RETURN_IF_ERROR(confined);
  if (error != 0) return ErrnoStatus(error, "cannot start {}", options.argv[0]);
  state->pid = pid;
  state->pidfd.Reset(OpenPidfd(pid));
  KILN_RETURN_IF_ERROR(ApplyResourceLimits(options.limits, pid));
  return Subprocess(std::move(state));
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subprocess::Subprocess(Subprocess&&) noexcept = default;
Subprocess& Subprocess::operator=(Subprocess&&) noexcept = default;
Subprocess::~Subprocess() = default;

pid_t Subprocess::pid() const { return state_->pid; }
UniqueFd& Subprocess::input() { return state_->input; }
UniqueFd& Subprocess::output() { return state_->output; }
UniqueFd& Subprocess::error() { return state_->error; }

StatusOr<ExitStatus> Subprocess::Wait(absl::Duration timeout) {
  const Deadline deadline(timeout);
  while (true) {
    const absl::Duration left = deadline.Left();
    if (state_->WaitOnce(PollTimeoutMs(left))) return *state_->ended;
    if (deadline.Passed()) {
      return DeadlineExceeded("process {} still runs after {:.3g} s", state_->pid,
                              absl::ToDoubleSeconds(timeout));
    }
  }
}

bool Subprocess::Running() { return !state_->Reap(); }

void Subprocess::Kill(int signal) { state_->Kill(signal); }

StatusOr<ExitStatus> Subprocess::Stop(absl::Duration grace) {
  Kill(SIGTERM);
  StatusOr<ExitStatus> exit = Wait(grace);
  if (exit.ok()) return exit;
  Kill(SIGKILL);
  return Wait();
}

namespace {

// Reads once; false at the end of the stream.
bool ReadSome(int fd, size_t limit, std::string& text) {
  char buffer[1 << 16];
  const ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  text.append(buffer, std::min<size_t>(n, limit - std::min(limit, text.size())));
  return true;
}

// Writes as much as fits without blocking; false if all is written or the reader is gone.
bool WriteSome(int fd, std::string_view& text) {
  const ssize_t n = write(fd, text.data(), text.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  text.remove_prefix(n);
  return !text.empty();
}

// Blocks SIGPIPE for this thread while alive, and swallows one that came.
class BlockSigpipe {
 public:
  BlockSigpipe() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set_, &old_);
  }
  ~BlockSigpipe() {
    const timespec zero{};
    while (sigtimedwait(&set_, nullptr, &zero) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t set_, old_;
};

}  // namespace

StatusOr<RunResult> RunToEnd(SubprocessOptions options, std::string_view input,
                             absl::Duration timeout, size_t max_output_bytes) {
  const BlockSigpipe block_sigpipe;
  const Deadline deadline(timeout);
  options.input = input.empty() ? Stream::kNull : Stream::kPipe;
  options.output = options.error = Stream::kPipe;
  KILN_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Spawn(options));
  if (child.input().valid()) fcntl(child.input().get(), F_SETFL, O_NONBLOCK);
  RunResult result;
  // Polls in steps, to notice a child that has ended while a descendant outside of its group holds
  // the pipes open.
  constexpr absl::Duration kStep = absl::Milliseconds(50), kGrace = absl::Seconds(1);
  std::optional<Deadline> drained;
  while (child.output().valid() || child.error().valid() || child.input().valid()) {
    pollfd fds[] = {{child.output().get(), POLLIN, 0},
                    {child.error().get(), POLLIN, 0},
                    // poll skips a descriptor of -1.
                    {child.input().get(), POLLOUT, 0}};
    if (poll(fds, 3, PollTimeoutMs(std::min(kStep, deadline.Left()))) < 0 && errno != EINTR) {
      return ErrnoStatus(errno, "cannot wait for {}", options.argv[0]);
    }
    if (fds[0].revents != 0 && !ReadSome(fds[0].fd, max_output_bytes, result.output)) {
      child.output().Reset();
    }
    if (fds[1].revents != 0 && !ReadSome(fds[1].fd, max_output_bytes, result.error)) {
      child.error().Reset();
    }
    if (fds[2].revents != 0 && !WriteSome(fds[2].fd, input)) child.input().Reset();
    if (deadline.Passed() || (drained && drained->Passed())) break;
    if (!drained && !child.Running()) drained.emplace(kGrace);
  }
  StatusOr<ExitStatus> exit = child.Wait(std::max(deadline.Left(), absl::ZeroDuration()));
  if (!exit.ok()) {
    return DeadlineExceeded("{} still ran after {:.3g} s and was killed", options.argv[0],
                            absl::ToDoubleSeconds(timeout));
  }
  result.exit = *exit;
  return result;
}

StatusOr<std::string> CurrentExecutable() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  if (size < 0) return ErrnoStatus(errno, "cannot read /proc/self/exe");
  return std::string(path, size);
}

void DieWithParent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before prctl took effect.
  const char* text = getenv(std::string(kParentVariable).c_str());
  if (text == nullptr) return;
  pid_t parent = 0;
  std::from_chars(text, text + strlen(text), parent);
  if (getppid() != parent) _exit(128 + SIGKILL);
}

}  // namespace kiln
