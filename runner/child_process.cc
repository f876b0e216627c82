#include "runner/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/errno_status.h"

namespace kiln::runner {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// The child counts its time itself and means to end within it.
constexpr absl::Duration kWatchdogGrace = absl::Milliseconds(200);
constexpr absl::Duration kCancelGrace = absl::Milliseconds(500);
// Between the end of the pipe and that of the process: its memory is being freed.
constexpr absl::Duration kEndGrace = absl::Seconds(5);
constexpr off_t kShownOutputBytes = 400;
constexpr off_t kMaxOutputBytes = 16 << 20;

absl::Duration Now() { return absl::Nanoseconds(Clock::Real().MonotonicNanos()); }

std::string_view PhaseName(wire::Phase phase) {
  switch (phase) {
    case wire::STARTING:
      return "starting";
    case wire::LOADING:
      return "loading";
    case wire::PREPARING:
      return "preparing its arguments";
    case wire::RUNNING:
      return "running";
    case wire::TIMING:
      return "being timed";
    default:
      return "running again";
  }
}

off_t SizeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? info.st_size : 0;
}

// Control characters and line ends become spaces: this goes into a one-line message.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  }
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& command,
                                                            const WantedFlag& wanted) {
  KILN_ASSIGN_OR_RETURN(auto sockets, MakeSocketPair());
  UniqueFd output(memfd_create("kiln-child-output", MFD_CLOEXEC));
  // Appending, so that emptying the file takes effect on the child's next line.
  if (!output.valid() || fcntl(output.get(), F_SETFL, O_APPEND) != 0) {
    return ErrnoStatus(errno, "cannot make a memory file for a child's output");
  }
  SubprocessOptions options;
  options.argv = command;
  options.inherited_fds = {sockets.second.get(), output.get(), wanted.fd()};
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  return std::unique_ptr<ChildProcess>(new ChildProcess(
      std::move(process), MessagePipe(std::move(sockets.first)), std::move(output)));
}

std::string ChildProcess::TakeOutput() {
  const off_t size = SizeOf(output_.get());
  std::string text(static_cast<size_t>(std::min(size, kShownOutputBytes)), 0);
  const off_t from = size - static_cast<off_t>(text.size());
  const ssize_t got = pread(output_.get(), text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  // Nothing to do if it fails: the next message would carry old lines.
  [[maybe_unused]] const int error = ftruncate(output_.get(), 0);
  return OneLine(std::move(text));
}

std::string ChildProcess::DescribeEnd(wire::Phase phase) {
  const auto exit = process_.Wait(kEndGrace);
  process_.Kill();
  std::string text = fmt::format("{} while {}", exit.ok() ? exit->ToString() : "closed its pipe",
                                 PhaseName(phase));
  const std::string output = TakeOutput();
  if (!output.empty()) text += ": " + output;
  return text;
}

ChildOutcome ChildProcess::Run(const wire::ChildRequest& request, const ChildLimits& limits,
                               const std::function<bool()>& cancelled) {
  ChildOutcome outcome;
  const auto end = [&](ChildOutcome::Kind kind, std::string message) {
    process_.Kill();
    outcome.kind = kind;
    outcome.message = std::move(message);
    return outcome;
  };
  absl::Duration limit = limits.prepare;
  absl::Duration deadline = Now() + limit;
  const Status sent = pipe_.Write(request.SerializeAsString(), limits.prepare);
  if (!sent.ok()) return end(ChildOutcome::kNotStarted, DescribeEnd(wire::STARTING));

  absl::Duration kill_at = absl::InfiniteDuration();  // of a cancelled call
  while (true) {
    const absl::Duration wait = std::min(kPollInterval, deadline - Now());
    const auto bytes = pipe_.Read(std::max(wait, absl::ZeroDuration()));
    if (bytes.ok()) {
      wire::ChildEvent event;
      if (!event.ParseFromString(*bytes)) {
        return end(ChildOutcome::kDied, "wrote over its message pipe");
      }
      if (event.has_done()) {
        outcome.done = std::move(*event.mutable_done());
        TakeOutput();
        return outcome;
      }
      outcome.phase = event.phase();
      if (event.phase() == wire::RUNNING) {
        limit = limits.run;
        deadline = Now() + limit + kWatchdogGrace;
      }
      continue;
    }
    if (bytes.status().code() != StatusCode::kDeadlineExceeded) {
      const bool started = outcome.phase != wire::STARTING;
      return end(started ? ChildOutcome::kDied : ChildOutcome::kNotStarted,
                 DescribeEnd(outcome.phase));
    }
    if (Now() >= deadline) {
      return end(ChildOutcome::kTimedOut,
                 fmt::format("not finished after {}, stopped while {}", absl::FormatDuration(limit),
                             PhaseName(outcome.phase)));
    }
    if (kill_at == absl::InfiniteDuration() && cancelled()) kill_at = Now() + kCancelGrace;
    if (Now() >= kill_at) return end(ChildOutcome::kCancelled, "cancelled by the caller");
    if (SizeOf(output_.get()) > kMaxOutputBytes) TakeOutput();
  }
}

}  // namespace kiln::runner
