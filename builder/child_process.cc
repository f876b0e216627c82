#include "builder/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/errno_status.h"
#include "builder/message_text.h"

namespace kiln::builder {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// For a fresh child to load its program, on a machine that is busy with builds.
constexpr absl::Duration kStartLimit = absl::Seconds(60);
// Between the end of the pipe and that of the process: its memory is being freed.
constexpr absl::Duration kEndGrace = absl::Seconds(5);
constexpr off_t kShownOutputBytes = 400;

absl::Duration Now() { return absl::Nanoseconds(Clock::Real().MonotonicNanos()); }

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& command) {
  KILN_ASSIGN_OR_RETURN(auto sockets, MakeSocketPair());
  UniqueFd output(memfd_create("kiln-child-output", MFD_CLOEXEC));
  // Appending, so that emptying the file takes effect on the child's next line.
  if (!output.valid() || fcntl(output.get(), F_SETFL, O_APPEND) != 0) {
    return ErrnoStatus(errno, "cannot make a memory file for a child's output");
  }
  SubprocessOptions options;
  options.argv = command;
  options.inherited_fds = {sockets.second.get(), output.get()};
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  return std::unique_ptr<ChildProcess>(new ChildProcess(
      std::move(process), MessagePipe(std::move(sockets.first)), std::move(output)));
}

std::string ChildProcess::TakeOutput() {
  struct stat info{};
  const off_t size = fstat(output_.get(), &info) == 0 ? info.st_size : 0;
  std::string text(static_cast<size_t>(std::min(size, kShownOutputBytes)), 0);
  const ssize_t got =
      pread(output_.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  // Nothing to do if it fails: the next message would carry old lines.
  [[maybe_unused]] const int error = ftruncate(output_.get(), 0);
  return OneLine(text);
}

std::string ChildProcess::DescribeEnd() {
  const auto exit = process_.Wait(kEndGrace);
  process_.Kill();
  std::string text = exit.ok() ? exit->ToString() : "closed its pipe";
  const std::string output = TakeOutput();
  if (!output.empty()) text += ": " + output;
  return text;
}

ChildOutcome ChildProcess::Run(const v1::BuildRequest& request,
                               const std::function<bool()>& cancelled) {
  ChildOutcome outcome;
  const auto end = [&](ChildOutcome::Kind kind, std::string message) {
    process_.Kill();
    outcome.kind = kind;
    outcome.message = std::move(message);
    return outcome;
  };
  absl::Duration deadline = Now() + kStartLimit;
  const Status sent = pipe_.Write(request.SerializeAsString(), kStartLimit);
  if (!sent.ok()) return end(ChildOutcome::kNotStarted, DescribeEnd());

  bool began = false;
  while (true) {
    const absl::Duration wait = std::min(kPollInterval, deadline - Now());
    const auto bytes = pipe_.Read(std::max(wait, absl::ZeroDuration()));
    if (bytes.ok()) {
      wire::ChildEvent event;
      if (!event.ParseFromString(*bytes)) {
        return end(ChildOutcome::kDied, "wrote over its message pipe");
      }
      if (event.has_done()) {
        ++builds_done_;
        outcome.done = std::move(*event.mutable_done());
        TakeOutput();
        return outcome;
      }
      began = true;
      deadline = Now() + absl::Milliseconds(request.timeout_ms());
      continue;
    }
    if (bytes.status().code() != StatusCode::kDeadlineExceeded) {
      return end(began ? ChildOutcome::kDied : ChildOutcome::kNotStarted, DescribeEnd());
    }
    if (Now() >= deadline) {
      if (!began) return end(ChildOutcome::kNotStarted, "did not start to work");
      const absl::Duration limit = absl::Milliseconds(request.timeout_ms());
      return end(ChildOutcome::kTimedOut,
                 fmt::format("not finished after {}", absl::FormatDuration(limit)));
    }
    if (cancelled()) return end(ChildOutcome::kCancelled, "cancelled by the caller");
  }
}

}  // namespace kiln::builder
