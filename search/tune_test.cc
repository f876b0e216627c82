#include "search/tune.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/status_testing.h"

namespace kiln::search {
namespace {

// Proposes `limit` made-up candidates.
class FakePolicy final : public Policy {
 public:
  explicit FakePolicy(int limit) : limit_(limit) {}
  StatusOr<std::vector<Candidate>> Propose(int n) override {
    std::vector<Candidate> out;
    for (; n > 0 && next_ < limit_; --n) out.push_back({{}, static_cast<uint64_t>(++next_)});
    return out;
  }
  void Observe(std::span<const Observation> observations) override {
    for (const Observation& o : observations) observed.push_back(o);
  }
  const RoundReport& last_round() const override { return report_; }
  std::vector<Observation> observed;

 private:
  int limit_, next_ = 0;
  RoundReport report_;
};

// Finishes trials newest first; candidate h costs 1/h, every fifth one fails.
class FakeMeasurer final : public Measurer {
 public:
  int capacity() override { return 3; }
  void Submit(Trial trial) override {
    numbers.push_back(trial.number);
    queue_.push_back(std::move(trial));
    most_in_flight = std::max(most_in_flight, queue_.size());
  }
  StatusOr<Outcome> Next() override {
    if (fail_after-- == 0) return Internal("the store is gone");
    Outcome outcome{std::move(queue_.back()), true, 0};
    queue_.pop_back();
    outcome.valid = outcome.trial.candidate.hash % 5 != 0;
    outcome.cost_s = 1.0 / static_cast<double>(outcome.trial.candidate.hash);
    if (stop != nullptr && outcome.trial.number >= 4) *stop = true;
    return outcome;
  }
  std::vector<uint32_t> numbers;
  size_t most_in_flight = 0;
  int fail_after = -1;
  std::atomic<bool>* stop = nullptr;

 private:
  std::deque<Trial> queue_;
};

TEST(Tune, RunsExactlyTheTrialsAskedForAndFeedsAllBack) {
  FakePolicy a(100), b(100);
  TaskProgress tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  ASSERT_OK(Tune(tasks, {.trials = 20}, measurer, stop));
  EXPECT_EQ(std::set<uint32_t>(measurer.numbers.begin(), measurer.numbers.end()).size(), 20u);
  EXPECT_EQ(*std::max_element(measurer.numbers.begin(), measurer.numbers.end()), 19u);
  EXPECT_EQ(a.observed.size() + b.observed.size(), 20u);
  EXPECT_EQ(tasks[0].trials, 10u);
  EXPECT_EQ(measurer.most_in_flight, 3u);
  EXPECT_DOUBLE_EQ(tasks[0].best_cost_s, 1.0 / 9);  // candidate 10 fails
}

TEST(Tune, FillsTheGapsOfAnEarlierRunFirst) {
  FakePolicy policy(100);
  TaskProgress tasks[] = {{.policy = &policy, .trials = 8}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  ASSERT_OK(Tune(tasks, {.trials = 12, .first_trial = 10, .missing = {3, 7}}, measurer, stop));
  EXPECT_EQ(measurer.numbers, (std::vector<uint32_t>{3, 7, 10, 11}));
}

TEST(Tune, EndsWhenPoliciesAreExhausted) {
  FakePolicy policy(5);
  TaskProgress tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  ASSERT_OK(Tune(tasks, {.trials = 50}, measurer, stop));
  EXPECT_EQ(measurer.numbers.size(), 5u);
  EXPECT_TRUE(tasks[0].exhausted);
}

TEST(Tune, StopsEarlyWithoutImprovement) {
  FakePolicy policy(1000);
  // A best that no candidate reaches.
  TaskProgress tasks[] = {{.policy = &policy, .trials = 0, .best_cost_s = 1e-9}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  ASSERT_OK(Tune(tasks, {.trials = 500, .early_stopping = 10}, measurer, stop));
  EXPECT_EQ(measurer.numbers.size(), 11u);
}

TEST(Tune, StopWaitsForTrialsInFlight) {
  FakePolicy policy(1000);
  TaskProgress tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  std::atomic<bool> stop = false;
  measurer.stop = &stop;
  EXPECT_THAT(Tune(tasks, {.trials = 500}, measurer, stop),
              StatusIs(StatusCode::kCancelled, testing::_));
  EXPECT_EQ(policy.observed.size(), measurer.numbers.size());
  EXPECT_LT(measurer.numbers.size(), 12u);
}

TEST(Tune, AnErrorOfTheMeasurerEndsTheJob) {
  FakePolicy policy(1000);
  TaskProgress tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  measurer.fail_after = 4;
  const std::atomic<bool> stop = false;
  EXPECT_THAT(Tune(tasks, {.trials = 500}, measurer, stop),
              StatusIs(StatusCode::kInternal, "the store is gone"));
}

}  // namespace
}  // namespace kiln::search
