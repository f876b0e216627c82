#include "scheduler/fair_share/shared_leases.h"

#include <algorithm>
#include <utility>

namespace kiln::scheduler {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A user with a limit asks for so long at a time. Another job of his, which may suit the devices
// that are there, then has its turn.
constexpr absl::Duration kTurn = absl::Seconds(2);

class SharedLeases : public LeaseSource {
 public:
  SharedLeases(std::unique_ptr<LeaseSource> source, FairShares& shares, std::string user)
      : source_(std::move(source)), shares_(shares), user_(std::move(user)) {}

  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override {
    shares_.BeginAsking(user_);
    StatusOr<LeasedWorker> lease = AcquireInTurns(timeout, stop, avoid);
    shares_.EndAsking(user_);
    return lease;
  }

 private:
  StatusOr<LeasedWorker> AcquireInTurns(absl::Duration timeout, const std::stop_token& stop,
                                        const std::vector<std::string>& avoid) {
    const auto until = timeout > absl::Hours(24 * 365)
                           ? SteadyClock::time_point::max()
                           : SteadyClock::now() + absl::ToChronoNanoseconds(timeout);
    while (true) {
      // A wait until the end of time would overflow.
      const auto patience = std::min(until, SteadyClock::now() + std::chrono::hours(24));
      if (!shares_.Reserve(user_, patience, stop)) {
        if (stop.stop_requested()) return Cancelled("stopped while waiting for a worker");
        if (patience < until) continue;
        return DeadlineExceeded("no runner: {}", shares_.WhyNoDevice(user_));
      }
      const absl::Duration left = until == SteadyClock::time_point::max()
                                      ? absl::InfiniteDuration()
                                      : absl::FromChrono(until - SteadyClock::now());
      const bool in_turns = shares_.LimitsOf(user_).devices > 0;
      const absl::Duration turn = in_turns ? std::min(left, kTurn) : left;
      StatusOr<LeasedWorker> lease = source_->Acquire(turn, stop, avoid);
      if (lease.ok()) {
        shares_.BeginDevice(user_);
        lease->AlsoOnRelease([&shares = shares_, user = user_] { shares.EndDevice(user); });
        return lease;
      }
      shares_.EndReservation(user_);
      const bool again = lease.status().code() == StatusCode::kDeadlineExceeded && turn < left;
      if (!again) return lease;
    }
  }

  const std::unique_ptr<LeaseSource> source_;
  FairShares& shares_;
  const std::string user_;
};

}  // namespace

LeaseFactory ShareFairly(LeaseFactory leases, FairShares& shares) {
  return [leases = std::move(leases), &shares](const LeaseSpec& spec) {
    if (spec.kind != v1::RUNNER) return leases(spec);
    LeaseSpec counted = spec;
    counted.use = [&shares, user = spec.user] { return shares.Use(user); };
    Leases shared = leases(counted);
    shared.why_waiting = [&shares, user = spec.user, why = std::move(shared.why_waiting)] {
      const std::string limit = shares.WhyNoDevice(user);
      return limit.empty() ? why() : "waiting for a device: " + limit;
    };
    shared.source = std::make_unique<SharedLeases>(std::move(shared.source), shares, spec.user);
    return shared;
  };
}

}  // namespace kiln::scheduler
