#include "base/turns.h"

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

using Kind = Turns::Kind;

constexpr Turns::Options kOptions{.length = absl::Seconds(2), .linger = absl::Milliseconds(10)};

// A thread that enters, and leaves when it is told to.
class Visitor {
 public:
  Visitor(Turns& turns, Kind kind)
      : thread_([this, &turns, kind](std::stop_token stop) {
          Turns::Hold hold = turns.Enter(kind, stop);
          entered_.set_value(static_cast<bool>(hold));
          leave_.get_future().wait();
        }) {}
  ~Visitor() {
    if (!left_) Leave();
  }

  bool Entered() { return entered().get(); }  // blocks
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

TEST(Turns, ManyOfAKindWorkAtOnce) {
  FakeClock clock;
  Turns turns(kOptions, clock);
  for (const Kind kind : {Kind::kWork, Kind::kMeasurement}) {
    clock.Advance(kOptions.linger);
    const Turns::Hold one = turns.Enter(kind);
    const Turns::Hold another = turns.Enter(kind);
    EXPECT_TRUE(one);
    EXPECT_TRUE(another);
  }
}

TEST(Turns, TheOtherKindWaitsUntilAllAreDone) {
  FakeClock clock;
  Turns turns(kOptions, clock);
  for (const auto& [first, second] :
       {std::pair(Kind::kWork, Kind::kMeasurement), std::pair(Kind::kMeasurement, Kind::kWork)}) {
    clock.Advance(kOptions.linger);
    std::optional<Turns::Hold> a = turns.Enter(first);
    std::optional<Turns::Hold> b = turns.Enter(first);
    Visitor other(turns, second);
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

TEST(Turns, NewcomersJoinUntilTheOtherKindHasWaitedLong) {
  FakeClock clock;
  Turns turns(kOptions, clock);
  std::optional<Turns::Hold> build = turns.Enter(Kind::kWork);
  Visitor measurement(turns, Kind::kMeasurement);
  clock.WaitForSleepers(1);
  clock.Advance(kOptions.length - absl::Milliseconds(1));
  {
    const Turns::Hold joins = turns.Enter(Kind::kWork);
  }
  clock.Advance(absl::Milliseconds(1));
  Visitor late(turns, Kind::kWork);
  EXPECT_TRUE(late.Waits());
  build.reset();
  clock.Advance(kOptions.linger);
  EXPECT_TRUE(measurement.Entered());
  EXPECT_TRUE(late.Waits());
  // Its wait counts from the beginning of the other's turn: that is as long as its own.
  {
    const Turns::Hold joins = turns.Enter(Kind::kMeasurement);
  }
  measurement.Leave();
  clock.Advance(kOptions.linger);
  EXPECT_TRUE(late.Entered());
}

TEST(Turns, WhoIsStoppedStandsInNobodysWay) {
  FakeClock clock;
  Turns turns(kOptions, clock);
  const Turns::Hold build = turns.Enter(Kind::kWork);
  Visitor measurement(turns, Kind::kMeasurement);
  clock.WaitForSleepers(1);
  clock.Advance(kOptions.length);
  Visitor late(turns, Kind::kWork);
  EXPECT_TRUE(late.Waits());
  measurement.Stop();
  EXPECT_FALSE(measurement.Entered());
  EXPECT_TRUE(late.Entered());
}

TEST(Turns, NothingIsHeldWhereStopWasRequestedBefore) {
  FakeClock clock;
  Turns turns(kOptions, clock);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(turns.Enter(Kind::kMeasurement, stop.get_token()));
  EXPECT_TRUE(turns.Enter(Kind::kWork));
}

TEST(Turns, AHoldCanBeHandedOn) {
  FakeClock clock;
  Turns turns(kOptions, clock);
  Turns::Hold hold = turns.Enter(Kind::kWork);
  Turns::Hold moved = std::move(hold);
  EXPECT_FALSE(hold);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved);
  moved = Turns::Hold();
  clock.Advance(kOptions.linger);
  EXPECT_TRUE(turns.Enter(Kind::kMeasurement));
}

// On the real clock: nothing overlaps, nobody starves.
TEST(Turns, ManyThreadsAlternate) {
  Turns turns({.length = absl::Milliseconds(5), .linger = absl::Milliseconds(1)}, Clock::Real());
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
          const Turns::Hold hold = turns.Enter(static_cast<Kind>(kind));
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
