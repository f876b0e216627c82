#include "device/exclusive_phases.h"

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace kiln {
namespace {

using Kind = ExclusivePhases::Kind;

constexpr ExclusivePhases::Options kOptions{.length = absl::Seconds(2),
                                            .linger = absl::Milliseconds(10)};

// A thread that enters, and leaves when it is told to.
class Visitor {
 public:
  Visitor(ExclusivePhases& phases, Kind kind)
      : thread_([this, &phases, kind](std::stop_token stop) {
          ExclusivePhases::Hold hold = phases.Enter(kind, stop);
          entered_.set_value(static_cast<bool>(hold));
          leave_.get_future().wait();
        }) {}
  ~Visitor() {
    if (!left_) Leave();
  }

  // Blocks until the thread has entered.
  bool Entered() { return entered().get(); }
  bool Waits() {
    return entered().wait_for(std::chrono::milliseconds(30)) != std::future_status::ready;
  }
  void Stop() { thread_.request_stop(); }
  void Leave() {
    left_ = true;
    leave_.set_value();
    thread_.join();
  }

 private:
  std::shared_future<bool>& entered() {
    if (!answer_.has_value()) answer_ = entered_.get_future().share();
    return *answer_;
  }

  bool left_ = false;
  std::promise<bool> entered_;
  std::promise<void> leave_;
  std::optional<std::shared_future<bool>> answer_;
  std::jthread thread_;
};

TEST(ExclusivePhases, ManyOfAKindWorkAtOnce) {
  FakeClock clock;
  ExclusivePhases phases(kOptions, clock);
  for (const Kind kind : {Kind::kWork, Kind::kMeasurement}) {
    clock.Advance(kOptions.linger);
    const ExclusivePhases::Hold one = phases.Enter(kind);
    const ExclusivePhases::Hold another = phases.Enter(kind);
    EXPECT_TRUE(one);
    EXPECT_TRUE(another);
  }
}

TEST(ExclusivePhases, TheOtherKindWaitsUntilAllAreDone) {
  FakeClock clock;
  ExclusivePhases phases(kOptions, clock);
  for (const auto& [first, second] :
       {std::pair(Kind::kWork, Kind::kMeasurement), std::pair(Kind::kMeasurement, Kind::kWork)}) {
    clock.Advance(kOptions.linger);
    std::optional<ExclusivePhases::Hold> a = phases.Enter(first);
    std::optional<ExclusivePhases::Hold> b = phases.Enter(first);
    Visitor other(phases, second);
    EXPECT_TRUE(other.Waits());
    a.reset();
    clock.Advance(kOptions.linger);
    EXPECT_TRUE(other.Waits());
    b.reset();
    EXPECT_TRUE(other.Waits()) << "a short gap does not end the turn";
    clock.Advance(kOptions.linger);
    EXPECT_TRUE(other.Entered());
  }
}

TEST(ExclusivePhases, NewcomersJoinUntilTheOtherKindHasWaitedLong) {
  FakeClock clock;
  ExclusivePhases phases(kOptions, clock);
  std::optional<ExclusivePhases::Hold> build = phases.Enter(Kind::kWork);
  Visitor measurement(phases, Kind::kMeasurement);
  clock.WaitForSleepers(1);
  clock.Advance(kOptions.length - absl::Milliseconds(1));
  {
    const ExclusivePhases::Hold joins = phases.Enter(Kind::kWork);
  }
  clock.Advance(absl::Milliseconds(1));
  Visitor late(phases, Kind::kWork);
  EXPECT_TRUE(late.Waits());
  build.reset();
  clock.Advance(kOptions.linger);
  EXPECT_TRUE(measurement.Entered());
  EXPECT_TRUE(late.Waits());
  // Its wait counts from the beginning of the other phase's turn, so that turn is as long as its
  // own.
  {
    const ExclusivePhases::Hold joins = phases.Enter(Kind::kMeasurement);
  }
  measurement.Leave();
  clock.Advance(kOptions.linger);
  EXPECT_TRUE(late.Entered());
}

TEST(ExclusivePhases, AStoppedWaiterBlocksNobody) {
  FakeClock clock;
  ExclusivePhases phases(kOptions, clock);
  const ExclusivePhases::Hold build = phases.Enter(Kind::kWork);
  Visitor measurement(phases, Kind::kMeasurement);
  clock.WaitForSleepers(1);
  clock.Advance(kOptions.length);
  Visitor late(phases, Kind::kWork);
  EXPECT_TRUE(late.Waits());
  measurement.Stop();
  EXPECT_FALSE(measurement.Entered());
  EXPECT_TRUE(late.Entered());
}

TEST(ExclusivePhases, NothingIsHeldWhereStopWasRequestedBefore) {
  FakeClock clock;
  ExclusivePhases phases(kOptions, clock);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(phases.Enter(Kind::kMeasurement, stop.get_token()));
  EXPECT_TRUE(phases.Enter(Kind::kWork));
}

TEST(ExclusivePhases, AHoldCanBeHandedOn) {
  FakeClock clock;
  ExclusivePhases phases(kOptions, clock);
  ExclusivePhases::Hold hold = phases.Enter(Kind::kWork);
  ExclusivePhases::Hold moved = std::move(hold);
  EXPECT_FALSE(hold);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved);
  moved = ExclusivePhases::Hold();
  clock.Advance(kOptions.linger);
  EXPECT_TRUE(phases.Enter(Kind::kMeasurement));
}

// Runs on the real clock: nothing overlaps, and no thread starves.
TEST(ExclusivePhases, ManyThreadsAlternate) {
  ExclusivePhases phases({.length = absl::Milliseconds(5), .linger = absl::Milliseconds(1)},
                         Clock::Real());
  std::atomic<int> at_work[2] = {0, 0};
  std::atomic<int> overlaps = 0;
  std::atomic<int> done[2] = {0, 0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937_64 rng(static_cast<uint64_t>(i));
        const int kind = i % 2;
        for (int visit = 0; visit < 40; ++visit) {
          const ExclusivePhases::Hold hold = phases.Enter(static_cast<Kind>(kind));
          ++at_work[kind];
          if (at_work[1 - kind] > 0) ++overlaps;
          std::this_thread::sleep_for(std::chrono::microseconds(rng() % 1000));
          --at_work[kind];
          ++done[kind];
        }
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(done[0], 120);
  EXPECT_EQ(done[1], 120);
}

}  // namespace
}  // namespace kiln
