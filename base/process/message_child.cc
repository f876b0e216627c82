#include "base/process/message_child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/process/process_tree.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr int kPipeFd = 3;
constexpr int kOutputFd = 4;
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// Time between the end of the pipe and the end of the process, in which its memory is freed.
constexpr absl::Duration kEndGrace = absl::Seconds(5);
constexpr off_t kShownOutputBytes = 400;
constexpr off_t kMaxOutputBytes = 16 << 20;

absl::Duration Now() { return absl::Nanoseconds(Clock::Real().MonotonicNanos()); }

// Variables of our environment that children get: places of libraries and caches, and settings of
// drivers and sanitizers. Other variables may hold secrets, and change nothing in what a child
// does.
constexpr std::string_view kKeptVariables[] = {
    "PATH",       "HOME",    "TMPDIR",          "TZ",        "LANG", "LC_ALL", "LD_LIBRARY_PATH",
    "KILN_DEBUG", "KILN_CC", "KILN_CC_FOLDERS", "KILN_NVRTC"};
constexpr std::string_view kKeptPrefixes[] = {"CUDA", "NVIDIA", "NVRTC", "ASAN",
                                              "LSAN", "TSAN",   "UBSAN"};

std::vector<std::string> KeptEnvironment(const std::vector<std::string>& variables) {
  std::vector<std::string> kept = variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool known = std::ranges::find(kKeptVariables, name) != std::end(kKeptVariables) ||
                       std::ranges::any_of(kKeptPrefixes, [&](std::string_view prefix) {
                         return name.starts_with(prefix);
                       });
    const bool replaced = std::ranges::any_of(variables, [&](const std::string& variable) {
      return variable.starts_with(name) && variable.substr(name.size(), 1) == "=";
    });
    if (known && !replaced) kept.emplace_back(text);
  }
  return kept;
}

// Looks once a second whether a child stands still. A child that continues within kStoppedFor is
// left alone.
class StandstillWatch {
 public:
  explicit StandstillWatch(pid_t child) : child_(child) {}

  bool HasStoodStill(absl::Duration now) {
    if (now < next_look_) return false;
    next_look_ = now + kLookInterval;
    if (FindStopped(child_) == 0) {
      since_ = absl::InfiniteDuration();
      return false;
    }
    since_ = std::min(since_, now);
    return now - since_ >= kStoppedFor;
  }

 private:
  static constexpr absl::Duration kLookInterval = absl::Seconds(1);
  static constexpr absl::Duration kStoppedFor = absl::Seconds(3);

  const pid_t child_;
  absl::Duration next_look_ = Now() + kLookInterval;
  absl::Duration since_ = absl::InfiniteDuration();
};

off_t SizeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? info.st_size : 0;
}

}  // namespace

StatusOr<MessageChild> MessageChild::Start(const std::vector<std::string>& command,
                                           const std::vector<int>& inherited_fds,
                                           const std::vector<std::string>& variables) {
  KILN_ASSIGN_OR_RETURN(auto sockets, MakeSocketPair());
  UniqueFd output(memfd_create("kiln-child-output", MFD_CLOEXEC));
  // The file is written in append mode, so that the child's next line is at its start after it is
  // emptied.
  if (!output.valid() || fcntl(output.get(), F_SETFL, O_APPEND) != 0) {
    return ErrnoStatus(errno, "cannot make a memory file for a child's output");
  }
  SubprocessOptions options;
  options.argv = command;
  options.clear_env = true;
  options.env = KeptEnvironment(variables);
  options.inherited_fds = {sockets.second.get(), output.get()};
  options.inherited_fds.insert(options.inherited_fds.end(), inherited_fds.begin(),
                               inherited_fds.end());
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  return MessageChild(std::move(process), MessagePipe(std::move(sockets.first)), std::move(output));
}

std::string MessageChild::TakeOutput() {
  const off_t size = SizeOf(output_.get());
  std::string text(static_cast<size_t>(std::min(size, kShownOutputBytes)), 0);
  const off_t from = size - static_cast<off_t>(text.size());
  const ssize_t got = pread(output_.get(), text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  // Nothing can be done if this fails: the next message would carry old lines.
  [[maybe_unused]] const int error = ftruncate(output_.get(), 0);
  return OneLine(text);
}

std::string MessageChild::DescribeEnd(std::string_view doing) {
  const auto exit = process_.Wait(kEndGrace);
  process_.Kill();
  std::string text = exit.ok() ? exit->ToString() : "closed its pipe";
  if (!doing.empty()) text.append(" ").append(doing);
  const std::string output = TakeOutput();
  if (!output.empty()) text += ": " + output;
  return text;
}

MessageChild::End MessageChild::Ask(std::string_view request, const Call& call,
                                    const std::function<Taken(const std::string& message)>& take) {
  const auto kill = [&](End end) {
    process_.Kill();
    return end;
  };
  absl::Duration deadline = Now() + call.limit;
  StandstillWatch standstill_watch(process_.pid());
  const Status sent = pipe_.Write(request, call.limit, call.descriptor);
  if (sent.code() == StatusCode::kDeadlineExceeded && FindStopped(process_.pid()) != 0) {
    return kill(End::kStopped);
  }
  if (!sent.ok()) return End::kEnded;

  // Time at which a cancelled call's child is killed.
  absl::Duration kill_at = absl::InfiniteDuration();
  while (true) {
    const absl::Duration wait = std::min(kPollInterval, deadline - Now());
    const auto message = pipe_.Read(std::max(wait, absl::ZeroDuration()));
    if (message.ok()) {
      const Taken taken = take(*message);
      if (taken.what == Taken::kGarbled) return kill(End::kGarbled);
      if (taken.what == Taken::kAnswered) {
        TakeOutput();
        return End::kAnswered;
      }
      if (taken.limit.has_value()) deadline = Now() + *taken.limit;
      continue;
    }
    if (message.status().code() != StatusCode::kDeadlineExceeded) return End::kEnded;
    if (Now() >= deadline) {
      return kill(FindStopped(process_.pid()) != 0 ? End::kStopped : End::kTimedOut);
    }
    if (standstill_watch.HasStoodStill(Now())) return kill(End::kStopped);
    if (kill_at == absl::InfiniteDuration() && call.cancelled()) {
      kill_at = Now() + call.cancel_grace;
    }
    if (Now() >= kill_at) return kill(End::kCancelled);
    if (SizeOf(output_.get()) > kMaxOutputBytes) TakeOutput();
  }
}

MessagePipe ServeParent() {
  dup2(kOutputFd, STDOUT_FILENO);
  dup2(kOutputFd, STDERR_FILENO);
  close(kOutputFd);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  return MessagePipe(UniqueFd(kPipeFd));
}

}  // namespace kiln
