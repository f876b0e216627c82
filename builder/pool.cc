#include "builder/pool.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "builder/message_text.h"

namespace kiln::builder {
namespace {

constexpr int kMaxStarts = 3;
constexpr auto kCancelPoll = std::chrono::milliseconds(50);

BuildOutcome Lost(v1::ErrorKind kind, std::string_view message) {
  BuildOutcome outcome;
  outcome.repeatable = false;
  outcome.reply.set_error(kind);
  outcome.reply.set_message(CutMessage(message));
  return outcome;
}

StatusOr<BuildOutcome> OutcomeOf(ChildOutcome child) {
  if (child.kind == ChildOutcome::kTimedOut) {
    return Lost(v1::BUILD_TIMEOUT_ERROR, child.message);
  }
  if (child.kind == ChildOutcome::kDied || child.kind == ChildOutcome::kStopped) {
    return Lost(v1::COMPILE_HOST_ERROR, "compiler process " + child.message);
  }
  if (child.done.status_code() != 0) {
    return Status(static_cast<StatusCode>(child.done.status_code()), child.done.status_message());
  }
  BuildOutcome outcome;
  outcome.reply = std::move(*child.done.mutable_reply());
  outcome.repeatable = child.done.repeatable();
  return outcome;
}

}  // namespace

// A place among the builds that run at a time, held from Wait until the object is destroyed.
class Pool::Place {
 public:
  explicit Place(Pool& pool) : pool_(pool) {}
  ~Place() {
    std::lock_guard lock(pool_.mutex_);
    if (taken_) {
      --pool_.busy_;
    } else {
      std::erase(pool_.queue_, this);
    }
    pool_.place_freed_.notify_all();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  Status Wait(const std::function<bool()>& cancelled) {
    std::unique_lock lock(pool_.mutex_);
    if (pool_.queue_.size() >= pool_.options_.max_waiting) {
      return ResourceExhausted("{} calls wait for this builder already", pool_.queue_.size());
    }
    pool_.queue_.push_back(this);
    while (pool_.queue_.front() != this || pool_.busy_ >= pool_.options_.jobs) {
      pool_.place_freed_.wait_for(lock, kCancelPoll);
      lock.unlock();
      const bool stop = cancelled();
      lock.lock();
      if (stop) return Cancelled("cancelled while waiting for a build process");
    }
    pool_.queue_.pop_front();
    ++pool_.busy_;
    taken_ = true;
    // Wakes the next in the queue, if there is room.
    pool_.place_freed_.notify_all();
    return OkStatus();
  }

 private:
  Pool& pool_;
  bool taken_ = false;
};

Pool::Pool(PoolOptions options) : options_(std::move(options)) { KeepSpare(); }

Pool::~Pool() = default;

Pool::Stats Pool::stats() const { return {children_started_, children_lost_, children_replaced_}; }

std::vector<pid_t> Pool::IdlePids() {
  std::lock_guard lock(mutex_);
  std::vector<pid_t> pids;
  for (const Child& child : idle_) pids.push_back(child->pid());
  return pids;
}

StatusOr<Pool::Child> Pool::StartChild() {
  KILN_ASSIGN_OR_RETURN(Child child, ChildProcess::Start(options_.child_command));
  ++children_started_;
  return child;
}

void Pool::KeepSpare() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty() || starting_spare_) return;
    starting_spare_ = true;
  }
  auto child = StartChild();
  if (!child.ok()) LogWarn("cannot start a standby build process: {}", Message(child.status()));
  std::lock_guard lock(mutex_);
  starting_spare_ = false;
  if (child.ok()) idle_.insert(idle_.begin(), *std::move(child));
}

StatusOr<Pool::Child> Pool::TakeChild() {
  while (true) {
    Child child;
    {
      std::lock_guard lock(mutex_);
      if (idle_.empty()) break;
      child = std::move(idle_.back());
      idle_.pop_back();
    }
    if (child->Running()) return child;
    ++children_lost_;
    LogWarn("build process {} was gone between two builds", child->pid());
  }
  return StartChild();
}

void Pool::GiveBack(Child child, const wire::ChildDone& done) {
  // A reply that might differ next time may come from a process that is broken.
  const bool suspect = done.has_reply() && !done.repeatable();
  if (suspect || child->builds_done() >= options_.max_builds ||
      done.memory_bytes() > options_.max_child_bytes) {
    ++children_replaced_;
    LogDebug("build process {} is replaced after {} builds, with {} bytes", child->pid(),
             child->builds_done(), done.memory_bytes());
    child = nullptr;
    KeepSpare();
    return;
  }
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(child));
}

StatusOr<ChildOutcome> Pool::RunInChild(const v1::BuildRequest& request,
                                        const std::function<bool()>& cancelled) {
  std::string last_message;
  for (int attempt = 0; attempt < kMaxStarts; ++attempt) {
    // The last attempt is for a new child, because all idle children may have been killed just now.
    auto child = attempt + 1 < kMaxStarts ? TakeChild() : StartChild();
    if (!child.ok()) {
      return Unavailable("cannot start a build process: {}", Message(child.status()));
    }
    // A spare child is started now, so that the next build need not wait for the start of its
    // child.
    KeepSpare();
    ChildOutcome outcome = (*child)->Run(request, cancelled);
    if (outcome.kind == ChildOutcome::kDone) {
      GiveBack(*std::move(child), outcome.done);
      return outcome;
    }
    ++children_lost_;
    LogInfo("build process {} is lost: {}", (*child)->pid(), outcome.message);
    if (outcome.kind == ChildOutcome::kCancelled) return Cancelled("{}", outcome.message);
    if (outcome.kind == ChildOutcome::kStopped) {
      // Somebody else may have stopped the child, but hardly each time.
      if (attempt + 1 < kMaxStarts) continue;
      outcome.message += fmt::format(", in the last of {} attempts", kMaxStarts);
    }
    if (outcome.kind != ChildOutcome::kNotStarted) return outcome;
    last_message = std::move(outcome.message);
  }
  return Unavailable(
      "{} build processes in a row ended before they began to work, the last one: {}", kMaxStarts,
      last_message);
}

StatusOr<BuildOutcome> Pool::Build(const v1::BuildRequest& request,
                                   const std::function<bool()>& cancelled) {
  v1::BuildRequest limited = request;
  if (limited.timeout_ms() == 0) limited.set_timeout_ms(options_.timeout_ms);
  if (limited.memory_limit_bytes() == 0) {
    limited.set_memory_limit_bytes(options_.memory_limit_bytes);
  }
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  limited.set_memory_limit_bytes(std::min<uint64_t>(limited.memory_limit_bytes(), kMax));

  const double asked_s = Clock::Real().MonotonicSeconds();
  Place place(*this);
  KILN_RETURN_IF_ERROR(place.Wait(cancelled));
  const double start_s = Clock::Real().MonotonicSeconds();
  KILN_ASSIGN_OR_RETURN(ChildOutcome child, RunInChild(limited, cancelled));
  KILN_ASSIGN_OR_RETURN(BuildOutcome outcome, OutcomeOf(std::move(child)));
  outcome.reply.set_build_s(Clock::Real().MonotonicSeconds() - start_s);
  outcome.reply.mutable_times()->set_build_wait_s(start_s - asked_s);
  return outcome;
}

}  // namespace kiln::builder
