#include "builder/child_process.h"

#include <signal.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::builder {
namespace {

// Time for a new child to load its program on a machine that is busy with builds.
constexpr absl::Duration kStartLimit = absl::Seconds(60);
// Time for killed processes to end, so that none writes into a folder that is being removed. If
// nobody reaps orphans, they stay zombies.
constexpr absl::Duration kGroupEndLimit = absl::Milliseconds(500);

void WaitForEndOfGroup(pid_t group) {
  const absl::Time limit = absl::Now() + kGroupEndLimit;
  while (kill(-group, 0) == 0 && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
}

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& command) {
  KILN_ASSIGN_OR_RETURN(TempDir scratch, TempDir::Make("kiln-build"));
  KILN_ASSIGN_OR_RETURN(MessageChild child,
                        MessageChild::Start(command, {}, {"TMPDIR=" + scratch.path()}));
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(scratch), std::move(child)));
}

ChildProcess::~ChildProcess() {
  const pid_t group = child_->pid();
  child_.reset();
  WaitForEndOfGroup(group);
}

ChildOutcome ChildProcess::Run(const v1::BuildRequest& request,
                               const std::function<bool()>& cancelled) {
  using Taken = MessageChild::Taken;
  const absl::Duration limit = absl::Milliseconds(request.timeout_ms());
  ChildOutcome outcome;
  bool began = false;
  const auto take = [&](const std::string& message) -> Taken {
    wire::ChildEvent event;
    if (!event.ParseFromString(message)) return {Taken::kGarbled};
    if (event.has_done()) {
      ++builds_done_;
      outcome.done = std::move(*event.mutable_done());
      return {Taken::kAnswered};
    }
    began = true;
    return {Taken::kGoesOn, limit};
  };
  const auto end = [&](ChildOutcome::Kind kind, std::string message) {
    outcome.kind = kind;
    outcome.message = std::move(message);
    return outcome;
  };
  const MessageChild::Call call = {.limit = kStartLimit, .cancelled = cancelled};
  switch (child_->Ask(request.SerializeAsString(), call, take)) {
    case MessageChild::End::kAnswered:
      return outcome;
    case MessageChild::End::kEnded:
      return end(began ? ChildOutcome::kDied : ChildOutcome::kNotStarted, child_->DescribeEnd());
    case MessageChild::End::kGarbled:
      return end(ChildOutcome::kDied, "wrote over its message pipe");
    case MessageChild::End::kTimedOut:
      if (!began) return end(ChildOutcome::kNotStarted, "did not start to work");
      return end(ChildOutcome::kTimedOut,
                 fmt::format("not finished after {}", absl::FormatDuration(limit)));
    case MessageChild::End::kStopped:
      return end(began ? ChildOutcome::kStopped : ChildOutcome::kNotStarted,
                 "stood still (as after SIGSTOP)");
    case MessageChild::End::kCancelled:
      break;
  }
  return end(ChildOutcome::kCancelled, "cancelled by the caller");
}

}  // namespace kiln::builder
