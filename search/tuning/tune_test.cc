#include "search/tuning/tune.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/status_testing.h"

namespace kiln::search {
namespace {

// A policy that proposes `limit` made-up candidates.
class FakePolicy final : public Policy {
 public:
  explicit FakePolicy(int limit) : limit_(limit) {}
  StatusOr<std::vector<Candidate>> Propose(int n) override {
    const Use use(*this);
    if (while_searching != nullptr) while_searching();
    known_at_round.push_back(observed.size());
    std::vector<Candidate> out;
    for (; n > 0 && next_ < limit_; --n) out.push_back({{}, static_cast<uint64_t>(++next_)});
    return out;
  }
  void Observe(std::span<const Observation> observations) override {
    const Use use(*this);
    ++batches;
    for (const Observation& o : observations) observed.push_back(o);
  }
  void Avoid(std::span<const uint64_t>) override {}
  void Suggest(std::span<const Observation> of_another) override {
    suggested.emplace_back(of_another.begin(), of_another.end());
  }
  const RoundReport& last_round() const override { return report; }
  RoundReport report;
  std::vector<Observation> observed;
  std::vector<std::vector<Observation>> suggested;  // one for each round
  std::vector<size_t> known_at_round;
  int batches = 0;
  std::function<void()> while_searching;
  std::atomic<bool> is_used_by_two = false;

 private:
  // A call of the policy.
  struct Use {
    explicit Use(FakePolicy& policy) : policy(policy) {
      if (policy.users_++ > 0) policy.is_used_by_two = true;
    }
    ~Use() { --policy.users_; }
    FakePolicy& policy;
  };

  std::atomic<int> users_ = 0;
  int limit_, next_ = 0;
};

// A measurer that finishes the newest trial first. Candidate h costs 1/h, and every fifth one
// fails.
class FakeMeasurer final : public Measurer {
 public:
  int capacity() override { return 3; }
  void Submit(Trial trial) override {
    numbers.push_back(trial.number);
    tasks.push_back(trial.task);
    queue_.push_back(std::move(trial));
    most_in_flight = std::max(most_in_flight, queue_.size());
  }
  StatusOr<std::optional<Outcome>> Next(double until_s) override {
    if (fail_after-- == 0) return Internal("the store is gone");
    if (queue_.empty() || hangs) {
      std::unique_lock lock(mutex_);
      idle_ = true;
      changed_.notify_all();
      const double left_s = std::min(60.0, until_s - Clock::Real().MonotonicSeconds());
      changed_.wait_for(lock, std::chrono::duration<double>(left_s), [this] { return woken_; });
      woken_ = idle_ = false;
      return std::optional<Outcome>();
    }
    Outcome outcome{std::move(queue_.back()), true, 0};
    queue_.pop_back();
    outcome.valid = !all_fail && outcome.trial.candidate.hash % 5 != 0;
    outcome.cost_s = 1.0 / static_cast<double>(outcome.trial.candidate.hash);
    if (stop != nullptr && outcome.trial.number >= 4) *stop = true;
    recorded.push_back(outcome.trial.number);
    return std::optional<Outcome>(std::move(outcome));
  }
  std::vector<uint32_t> Abandon(int task) override {
    std::vector<uint32_t> abandoned;
    std::erase_if(queue_, [&](const Trial& trial) {
      if (trial.task == task) abandoned.push_back(trial.number);
      return trial.task == task;
    });
    return abandoned;
  }
  std::vector<Correction> TakeCorrections() override { return std::exchange(corrections, {}); }
  void Wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  // Waits until all trials have an outcome and Next waits for more. False after ten seconds.
  bool WaitUntilIdle() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return idle_; });
  }

  std::vector<uint32_t> numbers;   // numbers of submitted trials
  std::vector<uint32_t> recorded;  // trials with an outcome
  std::vector<int> tasks;
  size_t most_in_flight = 0;
  int fail_after = -1;
  bool all_fail = false;
  bool hangs = false;  // no trial ever ends
  std::vector<Correction> corrections;
  std::atomic<bool>* stop = nullptr;

 private:
  std::deque<Trial> queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool idle_ = false;
};

TEST(Tune, RunsExactlyTheTrialsAskedForAndFeedsAllBack) {
  FakePolicy a(100), b(100);
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 20};
  options.schedule.strategy = TaskStrategy::kRoundRobin;
  options.schedule.round_trials = 5;
  std::vector<int> rounds;
  double best_s = 0;
  options.on_measured = [&](const MeasuredRound& round) {
    rounds.push_back(round.task);
    if (round.trials == 20) best_s = round.tasks.latency_s(0);
    return OkStatus();
  };
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  EXPECT_EQ(std::set<uint32_t>(measurer.numbers.begin(), measurer.numbers.end()).size(), 20u);
  EXPECT_EQ(*std::max_element(measurer.numbers.begin(), measurer.numbers.end()), 19u);
  EXPECT_EQ(a.observed.size(), 10u);
  EXPECT_EQ(b.observed.size(), 10u);
  EXPECT_EQ(rounds.size(), 4u);
  EXPECT_EQ(measurer.most_in_flight, 3u);
  EXPECT_DOUBLE_EQ(best_s, 1.0 / 9);  // candidate 10 fails
}

// The candidates that the policy looked at and refused are reported, too.
TEST(Tune, ARoundThatProposesNothingIsReported) {
  FakePolicy policy(3);
  policy.report.AddDrop(Drop::kIllegal, InvalidArgument("too many threads"));
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 20};
  std::vector<std::string> reports;
  std::vector<uint32_t> trials;
  options.on_measured = [&](const MeasuredRound& round) {
    reports.push_back(PrintRound(round.report));
    trials.push_back(round.trials);
    return OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kSpaceExhausted);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_THAT(reports[1], testing::HasSubstr("too many threads"));
  EXPECT_EQ(policy.known_at_round.size(), 2u);
}

TEST(Tune, TheFastestAreToldToTasksWithTheSameSums) {
  FakePolicy a(100), b(100), c(100);
  const TuneTask tasks[] = {{.policy = &a, .facts = {.sums = "s"}},
                            {.policy = &b, .facts = {.sums = "s"}},
                            {.policy = &c, .facts = {.sums = "t"}}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 60, .lock_step = true};
  options.schedule.strategy = TaskStrategy::kRoundRobin;
  options.schedule.round_trials = 10;
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  const auto hashes = [](const std::vector<Observation>& told) {
    std::vector<uint64_t> all;
    for (const Observation& o : told) all.push_back(o.candidate.hash);
    return all;
  };
  ASSERT_EQ(a.suggested.size(), 2u);
  ASSERT_EQ(b.suggested.size(), 2u);
  EXPECT_TRUE(a.suggested[0].empty());
  // Candidate h costs 1 / h. Candidates 5 and 10 fail.
  EXPECT_EQ(hashes(b.suggested[0]), (std::vector<uint64_t>{9, 8, 7, 6, 4, 3, 2, 1}));
  EXPECT_EQ(hashes(a.suggested[1]), hashes(b.suggested[0])) << "of its equal, the same";
  EXPECT_EQ(hashes(b.suggested[1]), (std::vector<uint64_t>{19, 18, 17, 16, 14, 13, 12, 11}));
  for (const auto& told : c.suggested) EXPECT_TRUE(told.empty());
}

TEST(Tune, CorrectionsReachTheirPolicy) {
  FakePolicy a(100), b(100);
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  measurer.corrections = {{1, 3, 42, true, 0.5}, {1, 4, 43, false, 0}};
  const std::atomic<bool> stop = false;
  ASSERT_OK(Tune(tasks, {.trials = 20}, measurer, stop));
  std::vector<Observation> corrected;
  for (const Observation& o : b.observed) {
    if (o.corrects) corrected.push_back(o);
  }
  ASSERT_EQ(corrected.size(), 2u);
  EXPECT_EQ(corrected[0].candidate.hash, 42u);
  EXPECT_EQ(corrected[0].cost_s, 0.5);
  EXPECT_EQ(corrected[0].trial, 3u);
  EXPECT_FALSE(corrected[1].valid);
  EXPECT_TRUE(std::ranges::none_of(a.observed, &Observation::corrects));
}

TEST(Tune, FillsTheGapsOfAnEarlierRunFirst) {
  FakePolicy policy(100);
  const TuneTask tasks[] = {
      {.policy = &policy, .earlier_costs_s = std::vector<std::optional<double>>(8, 1.0)}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  ASSERT_OK(Tune(tasks, {.trials = 12, .first_trial = 10, .missing = {3, 7}}, measurer, stop));
  EXPECT_EQ(measurer.numbers, (std::vector<uint32_t>{3, 7, 10, 11}));
}

TEST(Tune, EndsWhenPoliciesAreExhausted) {
  FakePolicy policy(5);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, {.trials = 50}, measurer, stop));
  EXPECT_EQ(ending, Ending::kSpaceExhausted);
  EXPECT_EQ(measurer.numbers.size(), 5u);
  EXPECT_EQ(policy.observed.size(), 5u);
}

TEST(Tune, StopsEarlyWithoutImprovement) {
  FakePolicy policy(1000);
  // No candidate reaches this earlier result.
  const TuneTask tasks[] = {{.policy = &policy, .earlier_costs_s = {1e-9}}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 500};
  options.schedule.task_early_stopping = 10;
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kNoImprovement);
  EXPECT_EQ(measurer.recorded.size(), 11u) << "none of those in flight";
}

TEST(Tune, ATargetThatIsReachedEndsItAtOnce) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 500};
  options.schedule.objective = MakeObjective(ObjectiveKind::kWeightedSum, {{}}, 0.4);
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTargetReached);
  // The third candidate is the first to be finished.
  EXPECT_EQ(measurer.numbers, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(measurer.recorded, (std::vector<uint32_t>{2}));
}

TEST(Tune, ATargetThatIsReachedAlreadyTakesNoTrial) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy, .earlier_costs_s = {0.3}}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 500, .first_trial = 1};
  options.schedule.objective = MakeObjective(ObjectiveKind::kWeightedSum, {{}}, 0.4);
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTargetReached);
  EXPECT_TRUE(measurer.numbers.empty());
}

// One task stops early. Its trials in hand are given up, and their numbers go to the other task.
TEST(Tune, TheTrialsOfATaskThatIsStoppedGoToOthers) {
  FakePolicy stopped(1000), other(1000);
  const TuneTask tasks[] = {{.policy = &stopped, .earlier_costs_s = {1e-9}}, {.policy = &other}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 41, .first_trial = 1};
  options.schedule.task_early_stopping = 10;
  options.schedule.strategy = TaskStrategy::kRoundRobin;
  options.schedule.round_trials = 20;
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTrialsUsedUp);
  EXPECT_EQ(stopped.observed.size(), 11u);
  EXPECT_EQ(other.observed.size(), 29u);
  std::vector<uint32_t> recorded = measurer.recorded;
  std::ranges::sort(recorded);
  for (uint32_t i = 0; i < recorded.size(); ++i) EXPECT_EQ(recorded[i], i + 1);
  EXPECT_EQ(recorded.size(), 40u);
}

// Counts the searches that go on at the same time.
class SearchCount {
 public:
  // Counts one search. Waits in it until `wanted` have gone on at once, or for ten seconds.
  void Search(int wanted) {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++now_);
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return most_ >= wanted; });
    --now_;
  }
  int most() const { return most_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int now_ = 0, most_ = 0;
};

// Tunes three tasks, with two searches at once.
void TuneWithTwoSearches(ExclusivePhases* phases) {
  FakePolicy policies[] = {FakePolicy(1000), FakePolicy(1000), FakePolicy(1000)};
  SearchCount count;
  std::vector<TuneTask> tasks;
  for (FakePolicy& policy : policies) {
    policy.while_searching = [&count] { count.Search(2); };
    tasks.push_back({.policy = &policy});
  }
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 300, .searches = 2, .phases = phases};
  options.schedule.round_trials = 5;
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTrialsUsedUp);
  EXPECT_EQ(count.most(), 2);
  size_t observed = 0;
  for (const FakePolicy& policy : policies) {
    EXPECT_FALSE(policy.is_used_by_two);
    observed += policy.observed.size();
  }
  EXPECT_EQ(observed, 300u);
  const std::set<uint32_t> numbers(measurer.numbers.begin(), measurer.numbers.end());
  EXPECT_EQ(numbers.size(), 300u);
  EXPECT_EQ(*numbers.rbegin(), 299u);
}

TEST(Tune, SeveralTasksAreSearchedAtOnce) { TuneWithTwoSearches(nullptr); }

TEST(Tune, SeveralTasksAreSearchedAtOnceInAPhase) {
  ExclusivePhases phases;
  TuneWithTwoSearches(&phases);
}

TEST(Tune, InLockStepOneTaskIsSearchedAtATime) {
  FakePolicy a(1000), b(1000);
  SearchCount count;
  for (FakePolicy* policy : {&a, &b}) policy->while_searching = [&count] { count.Search(1); };
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 60, .lock_step = true, .searches = 4};
  options.schedule.round_trials = 5;
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  EXPECT_EQ(count.most(), 1);
}

TEST(Tune, SearchesTakeTurns) {
  FakePolicy a(1000), b(1000);
  SearchCount count;
  for (FakePolicy* policy : {&a, &b}) policy->while_searching = [&count] { count.Search(1); };
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  SearchTurns turns(1);
  TuneOptions options{.trials = 60, .searches = 2, .turns = &turns};
  options.schedule.round_trials = 5;
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  EXPECT_EQ(count.most(), 1);
  EXPECT_EQ(a.observed.size() + b.observed.size(), 60u);
}

TEST(Tune, EndsWithItsTimeThoughOthersHaveTheTurn) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  SearchTurns turns(1);
  const SearchTurns::Turn of_another = turns.Take();
  const TuneOptions options{
      .trials = 500, .until_s = Clock::Real().MonotonicSeconds() + 0.05, .turns = &turns};
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTimeUsedUp);
  EXPECT_TRUE(measurer.numbers.empty());
  EXPECT_EQ(turns.waiting(), 0);
}

TEST(Tune, EndsWithItsTimeWhateverIsInHand) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  measurer.hangs = true;
  const std::atomic<bool> stop = false;
  const TuneOptions options{.trials = 500, .until_s = Clock::Real().MonotonicSeconds() + 0.05};
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTimeUsedUp);
  EXPECT_EQ(measurer.numbers.size(), 3u);
  EXPECT_TRUE(measurer.recorded.empty());
}

TEST(Tune, ATaskOfFailuresLeavesTheTrialsToOthers) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  measurer.all_fail = true;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 500};
  options.schedule.give_up_trials = 40;
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  EXPECT_LE(measurer.numbers.size(), 42u);
}

TEST(Tune, StopWaitsForTrialsInFlight) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy}};
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
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  measurer.fail_after = 4;
  const std::atomic<bool> stop = false;
  EXPECT_THAT(Tune(tasks, {.trials = 500}, measurer, stop),
              StatusIs(StatusCode::kInternal, "the store is gone"));
}

// Each search of 8 rounds of 16 trials begins before the last trials are measured, and takes until
// they are.
TEST(Tune, TheMeasurerDoesNotWaitForTheSearch) {
  FakePolicy policy(1000);
  FakeMeasurer measurer;
  policy.while_searching = [&] { EXPECT_TRUE(measurer.WaitUntilIdle()); };
  const TuneTask tasks[] = {{.policy = &policy}};
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 128};
  options.schedule.round_trials = 16;
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  EXPECT_EQ(measurer.numbers.size(), 128u);
  ASSERT_EQ(policy.known_at_round.size(), 8u);
  EXPECT_LE(policy.batches, static_cast<int>(policy.known_at_round.size()) + 1);
  EXPECT_EQ(policy.known_at_round[0], 0u);
  for (size_t round = 1; round < 8; ++round) {
    EXPECT_LT(policy.known_at_round[round], 16 * round) << "the search began early";
    EXPECT_GT(policy.known_at_round[round], policy.known_at_round[round - 1])
        << "the policy learns during the run";
  }
}

TEST(Tune, SearchesInTurnsWithMeasuring) {
  FakePolicy policy(100);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  FakeClock clock;
  ExclusivePhases phases({}, clock);
  std::optional<ExclusivePhases::Hold> measurement =
      phases.Enter(ExclusivePhases::Kind::kMeasurement);
  std::atomic<bool> done = false;
  std::jthread tuning([&] {
    EXPECT_OK(Tune(tasks, {.trials = 10, .phases = &phases}, measurer, stop));
    done = true;
  });
  clock.WaitForSleepers(1);  // the search
  EXPECT_FALSE(done);
  EXPECT_TRUE(policy.known_at_round.empty());
  measurement.reset();
  clock.Advance(ExclusivePhases::Options().linger);
  tuning.join();
  EXPECT_EQ(measurer.numbers.size(), 10u);
}

TEST(Tune, EndsWhileTheSearchWaitsForItsTurn) {
  FakePolicy policy(100);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  measurer.fail_after = 0;
  const std::atomic<bool> stop = false;
  ExclusivePhases phases;
  const ExclusivePhases::Hold measurement = phases.Enter(ExclusivePhases::Kind::kMeasurement);
  EXPECT_THAT(Tune(tasks, {.trials = 10, .phases = &phases}, measurer, stop),
              StatusIs(StatusCode::kInternal, "the store is gone"));
}

TEST(Tune, InLockStepEverySearchKnowsAllResultsInOrder) {
  FakePolicy policy(1000);
  const TuneTask tasks[] = {{.policy = &policy}};
  FakeMeasurer measurer;
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 40, .lock_step = true};
  options.schedule.round_trials = 16;
  ASSERT_OK(Tune(tasks, options, measurer, stop));
  EXPECT_EQ(policy.known_at_round, (std::vector<size_t>{0, 16, 32}));
  for (size_t i = 0; i < policy.observed.size(); ++i) EXPECT_EQ(policy.observed[i].trial, i);
}

// Other searches, as the test says.
class FakeOthers final : public OtherSearches {
 public:
  explicit FakeOthers(NewsOfOthers news) : now(std::move(news)) {}
  StatusOr<NewsOfOthers> Take() override {
    ++taken;
    if (before_take != nullptr) before_take();
    NewsOfOthers news = now;
    now.results.clear();
    return news;
  }

  NewsOfOthers now;
  int taken = 0;
  std::function<void()> before_take;
};

KnownResult Known(int task, uint64_t hash, double cost_s, bool is_new) {
  KnownResult known{.task = task, .is_new = is_new};
  known.observation.candidate.hash = hash;
  known.observation.valid = true;
  known.observation.cost_s = cost_s;
  return known;
}

size_t TrialsOf(const FakeMeasurer& measurer, int task) {
  return static_cast<size_t>(std::ranges::count(measurer.tasks, task));
}

TEST(Tune, ATaskThatAnotherSearchTunesHasNoTrialsAndItsResultsAreKnown) {
  FakePolicy a(100), b(100);
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  FakeOthers others({.tuned_by = {TunedBy::kOthers, TunedBy::kThisSearch},
                     .trials = 12,
                     .results = {Known(0, 1000, 0.5, true), Known(0, 1001, 0.25, false)}});
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 20, .others = &others};
  double best_s = 0;
  options.on_measured = [&](const MeasuredRound& round) {
    best_s = round.tasks.latency_s(0);
    return OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kLeftToOthers);
  EXPECT_EQ(TrialsOf(measurer, 0), 0u);
  EXPECT_EQ(TrialsOf(measurer, 1), 12u);
  EXPECT_EQ(best_s, 0.25);
  ASSERT_EQ(a.observed.size(), 1u) << "the other candidate is known";
  EXPECT_EQ(a.observed[0].candidate.hash, 1000u);
}

TEST(Tune, ATaskIsTunedOnceTheOtherSearchLeavesIt) {
  FakePolicy a(100), b(100);
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  FakeOthers others({.tuned_by = {TunedBy::kOthers, TunedBy::kThisSearch}, .trials = 10});
  others.before_take = [&] {
    if (measurer.recorded.size() == 5)
      others.now = {.tuned_by = {TunedBy::kThisSearch, TunedBy::kThisSearch}, .trials = 20};
  };
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 20, .others = &others};
  options.schedule.strategy = TaskStrategy::kRoundRobin;
  options.schedule.round_trials = 5;
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTrialsUsedUp);
  EXPECT_EQ(measurer.recorded.size(), 20u);
  EXPECT_GE(TrialsOf(measurer, 0), 5u);
  EXPECT_GE(others.taken, 20) << "after each result";
}

// Candidates that were proposed before are measured when the task is let go.
TEST(Tune, CandidatesOfATaskThatIsTakenOverWait) {
  FakePolicy a(8), b(100);
  const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
  FakeMeasurer measurer;
  FakeOthers others({.tuned_by = {TunedBy::kThisSearch, TunedBy::kThisSearch}, .trials = 40});
  size_t held_from = 0, held_until = 0;
  others.before_take = [&] {
    const size_t done = measurer.recorded.size();
    const bool held = done >= 2 && done < 10;
    if (held && held_from == 0) held_from = measurer.tasks.size();
    if (done == 10 && held_until == 0) held_until = measurer.tasks.size();
    others.now.tuned_by[0] = held ? TunedBy::kOthers : TunedBy::kThisSearch;
  };
  const std::atomic<bool> stop = false;
  TuneOptions options{.trials = 40, .others = &others};
  options.schedule.strategy = TaskStrategy::kRoundRobin;
  options.schedule.round_trials = 8;
  ASSERT_OK_AND_ASSIGN(const Ending ending, Tune(tasks, options, measurer, stop));
  EXPECT_EQ(ending, Ending::kTrialsUsedUp);
  ASSERT_GT(held_from, 0u);
  ASSERT_GT(held_until, held_from);
  for (size_t i = held_from; i < held_until; ++i) EXPECT_EQ(measurer.tasks[i], 1) << i;
  EXPECT_EQ(TrialsOf(measurer, 0), 8u);
}

TEST(Tune, ASearchThatStopsEarlyAwaitsTheOthersUnlessItsTimeIsUp) {
  const std::atomic<bool> stop = false;
  const auto ending_of = [&](TuneOptions options, TunedBy tuned_by) {
    FakePolicy a(100), b(100);
    const TuneTask tasks[] = {{.policy = &a}, {.policy = &b}};
    FakeMeasurer measurer;
    measurer.all_fail = true;
    FakeOthers others({.tuned_by = {tuned_by, TunedBy::kThisSearch},
                       .trials = 90,
                       .results = {Known(0, 1000, 0.5, true)}});
    options.trials = 90;
    options.others = &others;
    const StatusOr<Ending> ending = Tune(tasks, options, measurer, stop);
    EXPECT_OK(ending);
    return *ending;
  };
  TuneOptions early;
  early.schedule.give_up_trials = 5;
  early.schedule.early_stopping = 20;
  EXPECT_EQ(ending_of(early, TunedBy::kOthers), Ending::kLeftToOthers);
  EXPECT_EQ(ending_of(early, TunedBy::kNobody), Ending::kNoImprovement);
  TuneOptions late;
  late.until_s = Clock::Real().MonotonicSeconds() - 1;
  EXPECT_EQ(ending_of(late, TunedBy::kOthers), Ending::kTimeUsedUp);
}

}  // namespace
}  // namespace kiln::search
