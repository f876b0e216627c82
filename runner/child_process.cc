#include "runner/child_process.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace kiln::runner {
namespace {

// The child watches its time itself and means to end within the limit; the daemon waits this much
// longer.
constexpr absl::Duration kWatchdogGrace = absl::Milliseconds(200);
// Time for a driver to start on a machine with many GPUs.
constexpr absl::Duration kCheckLimit = absl::Minutes(1);
constexpr absl::Duration kCancelGrace = absl::Milliseconds(500);

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

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& command,
                                                            const YieldFlag& wanted) {
  KILN_ASSIGN_OR_RETURN(TempDir scratch, TempDir::Make("kiln-runner"));
  KILN_ASSIGN_OR_RETURN(MessageChild child,
                        MessageChild::Start(command, {wanted.fd()}, {"TMPDIR=" + scratch.path()}));
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(scratch), std::move(child)));
}

Status ChildProcess::Check(std::vector<std::string> command) {
  command.emplace_back("--check");
  KILN_ASSIGN_OR_RETURN(const TempDir scratch, TempDir::Make("kiln-runner"));
  KILN_ASSIGN_OR_RETURN(MessageChild child,
                        MessageChild::Start(command, {}, {"TMPDIR=" + scratch.path()}));
  const MessageChild::Call call = {.limit = kCheckLimit, .cancelled = [] { return false; }};
  const auto take = [](const std::string&) { return MessageChild::Taken{}; };
  if (child.Ask("", call, take) != MessageChild::End::kEnded) {
    return DeadlineExceeded("the device is not open after {}", absl::FormatDuration(kCheckLimit));
  }
  const std::string end = child.DescribeEnd();
  return end == "exit status 0" ? OkStatus() : FailedPrecondition("{}", end);
}

ChildOutcome ChildProcess::Run(const wire::ChildRequest& request, const UniqueFd& outputs,
                               const ChildLimits& limits, const std::function<bool()>& cancelled,
                               const OnPhase& on_phase) {
  using Taken = MessageChild::Taken;
  ChildOutcome outcome;
  absl::Duration limit = limits.prepare;
  // Time at which the run began.
  absl::Time running;
  const auto take = [&](const std::string& message) -> Taken {
    wire::ChildEvent event;
    if (!event.ParseFromString(message)) return {Taken::kGarbled};
    if (event.has_done()) {
      outcome.done = std::move(*event.mutable_done());
      return {Taken::kAnswered};
    }
    const bool first_is_over = outcome.in_first_run;
    outcome.phase = event.phase();
    if (on_phase != nullptr) on_phase(event.phase());
    outcome.in_first_run = event.phase() == wire::RUNNING && limits.first_run < limits.run;
    if (event.phase() == wire::RUNNING) {
      running = absl::Now();
      limit = std::min(limits.run, limits.first_run);
    } else if (first_is_over) {
      limit = limits.run;
      return {Taken::kGoesOn, limit - (absl::Now() - running) + kWatchdogGrace};
    } else {
      return {Taken::kGoesOn};
    }
    return {Taken::kGoesOn, limit + kWatchdogGrace};
  };
  const auto end = [&](ChildOutcome::Kind kind, std::string message) {
    outcome.kind = kind;
    outcome.message = std::move(message);
    return outcome;
  };
  const MessageChild::Call call = {limits.prepare, kCancelGrace, cancelled, outputs.get()};
  const MessageChild::End how = child_.Ask(request.SerializeAsString(), call, take);
  const std::string phase = fmt::format("while {}", PhaseName(outcome.phase));
  switch (how) {
    case MessageChild::End::kAnswered:
      return outcome;
    case MessageChild::End::kEnded: {
      const bool started = outcome.phase != wire::STARTING;
      return end(started ? ChildOutcome::kDied : ChildOutcome::kNotStarted,
                 child_.DescribeEnd(phase));
    }
    case MessageChild::End::kGarbled:
      return end(ChildOutcome::kDied, "wrote over its message pipe");
    case MessageChild::End::kTimedOut:
      return end(
          ChildOutcome::kTimedOut,
          fmt::format("not finished after {}, stopped {}",
                      absl::FormatDuration(absl::Trunc(limit, absl::Milliseconds(1))), phase));
    case MessageChild::End::kStopped: {
      const bool started = outcome.phase != wire::STARTING;
      return end(started ? ChildOutcome::kStopped : ChildOutcome::kNotStarted,
                 fmt::format("stood still (as after SIGSTOP) {}", phase));
    }
    case MessageChild::End::kCancelled:
      break;
  }
  return end(ChildOutcome::kCancelled, "cancelled by the caller");
}

}  // namespace kiln::runner
