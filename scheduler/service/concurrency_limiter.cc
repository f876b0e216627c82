#include "scheduler/service/concurrency_limiter.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "scheduler/service/caller_watch.h"

namespace kiln::scheduler {
namespace {

constexpr std::chrono::milliseconds kLook{20};

}  // namespace

Status ConcurrencyLimiter::Enter(const std::function<bool()>& gone) {
  std::unique_lock lock(mutex_);
  if (at_work_ >= options_.at_work) {
    if (in_line_ >= options_.in_line) {
      return ResourceExhausted(
          "{} calls for a {} are running and {} wait, no more are accepted; try again", at_work_,
          options_.what, in_line_);
    }
    ++in_line_;
    const absl::Cleanup leave_line = [&] { --in_line_; };
    while (at_work_ >= options_.at_work) {
      lock.unlock();
      const bool is_gone = gone();
      if (!is_gone) std::this_thread::sleep_for(kLook);
      lock.lock();
      if (is_gone) return Cancelled("the caller has disconnected");
    }
  }
  ++at_work_;
  return OkStatus();
}

void ConcurrencyLimiter::Leave() {
  std::lock_guard lock(mutex_);
  --at_work_;
}

Status ConcurrencyLimiter::Do(std::function<bool()> gone,
                              const std::function<Status(const std::stop_token&)>& work) {
  KILN_RETURN_IF_ERROR(Enter(gone));
  const absl::Cleanup leave = [&] { Leave(); };
  const absl::Time end = absl::Now() + options_.longest;
  const CallerWatch caller([gone = std::move(gone), end] { return absl::Now() >= end || gone(); });
  const Status status = work(caller.token());
  if (status.code() != StatusCode::kCancelled || absl::Now() < end) return status;
  return DeadlineExceeded(
      "this {} was stopped after {} s, which is the limit; the computation is too large for it: "
      "tune the computation, or divide it",
      options_.what, absl::ToInt64Seconds(options_.longest));
}

}  // namespace kiln::scheduler
