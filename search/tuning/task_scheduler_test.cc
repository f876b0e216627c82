#include "search/tuning/task_scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

namespace kiln::search {
namespace {

constexpr std::optional<double> kFailed;

TaskScheduler Make(std::vector<ScheduledTask> tasks, TaskSchedulerOptions options = {}) {
  return TaskScheduler(std::move(tasks), std::move(options));
}

// Runs one round of one result for each cost, each over at once.
void Rounds(TaskScheduler& scheduler, int task,
            std::initializer_list<std::optional<double>> costs_s) {
  for (const std::optional<double>& cost_s : costs_s) {
    scheduler.BeginRound(task);
    scheduler.AddResult(task, cost_s);
    scheduler.EndRound(task);
  }
}

TEST(TaskScheduler, EveryTaskHasOneRoundFirst) {
  TaskScheduler s = Make({{}, {}, {}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(s.Next(), i);
    Rounds(s, i, {1e-3 * (3 - i)});
  }
  // t = 1 everywhere: gradient_i = 0.8 * -g_i, so the slowest task is next.
  EXPECT_EQ(s.Next(), 0);
}

TEST(TaskScheduler, AllTasksAreOpenedTheHeaviestFirstAndAlternativesLast) {
  TaskScheduler s = Make({{.weight = 1, .estimate_s = 2e-3},
                          {.weight = 1, .estimate_s = 9e-3, .alternative_of = 0},
                          {.weight = 4, .estimate_s = 1e-3},
                          {.weight = 1}},
                         {.first_round_trials = 16, .opening_trials = 1});
  std::vector<int> opened;
  for (int i = 0; i < 4; ++i) {
    opened.push_back(*s.Next());
    EXPECT_EQ(s.RoundTrials(opened.back()), 1u);
    Rounds(s, opened.back(), {1e-3 * (opened.back() + 1)});
  }
  EXPECT_EQ(opened, (std::vector<int>{2, 0, 3, 1}));
  EXPECT_EQ(s.RoundTrials(0), 6u);
  Rounds(s, 0, {1e-3});
  EXPECT_EQ(s.RoundTrials(0), 16u);
}

TEST(TaskScheduler, TheObjectiveIsAskedOnceForEachListOfLatencies) {
  Objective objective = MakeObjective(ObjectiveKind::kGeometricMean, {{}, {}, {}});
  int calls = 0;
  objective.slopes = [&calls, slopes = objective.slopes](std::span<const double> latencies_s) {
    ++calls;
    return slopes(latencies_s);
  };
  TaskScheduler s = Make({{}, {}, {}}, {.objective = objective});
  for (int i = 0; i < 3; ++i) Rounds(s, i, {1e-3});
  calls = 0;
  s.Next();
  EXPECT_EQ(calls, 1);
  Rounds(s, 0, {2e-3});
  s.Next();
  EXPECT_EQ(calls, 1) << "the latencies are the same";
  Rounds(s, 0, {5e-4});
  s.Next();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(s.GradientOf(0).chain, objective.slopes(std::vector<double>{5e-4, 1e-3, 1e-3})[0]);
}

const TaskSchedulerOptions kOpened = {.first_round_trials = 16, .opening_trials = 1};

// Runs the round that the scheduler chooses. Each of its trials has the cost that `cost_s` gives
// for the task.
int NextRound(TaskScheduler& s, const std::function<double(int)>& cost_s) {
  const int task = *s.Next();
  const uint32_t trials = s.RoundTrials(task);
  s.BeginRound(task);
  for (uint32_t i = 0; i < trials; ++i) s.AddResult(task, cost_s(task));
  s.EndRound(task);
  return task;
}

// Tasks 0 and 2 have the same sums, and so do their alternatives, 1 and 3.
const std::vector<ScheduledTask> kTwoWithAlternatives = {{.sums = "a"},
                                                         {.sums = "b", .alternative_of = 0},
                                                         {.sums = "a"},
                                                         {.sums = "b", .alternative_of = 2}};

// A single trial does not prune an alternative. Alternative 1 stands for alternative 3.
TEST(TaskScheduler, AnAlternativeIsPrunedAfterMoreThanItsOpening) {
  TaskScheduler s = Make(kTwoWithAlternatives, kOpened);
  for (int i = 0; i < 40; ++i)
    EXPECT_NE(NextRound(s, [](int task) { return task % 2 == 1 ? 1.5e-3 : 1e-3; }), 3);
  EXPECT_GE(s.trials(1), 7u) << "it had more than its opening";
}

TEST(TaskScheduler, AnAlternativeThatStoodForAnotherAndIsNearLetsItBegin) {
  TaskScheduler s = Make(kTwoWithAlternatives, kOpened);
  int rounds = 0;
  while (s.rounds(3) == 0 && ++rounds < 40)
    NextRound(s, [](int task) { return task % 2 == 1 ? 1.1e-3 : 1e-3; });
  EXPECT_GE(s.trials(1), 7u);
  EXPECT_EQ(s.rounds(3), 1);
}

// One trial says little, so the slower task has a second round, but only after some rounds of the
// faster one, the more the slower it is.
TEST(TaskScheduler, WhoIsFarSlowerByItsOpeningHasASecondRoundLater) {
  struct Case {
    double slower;
    uint32_t rival_trials;  // 24 for a task that is 1.4 times slower, in proportion, at most 96
  };
  for (const auto& [slower, rival_trials] : {Case{1.5, 26}, Case{2.8, 48}, Case{100, 96}}) {
    SCOPED_TRACE(slower);
    TaskScheduler s = Make({{}, {.alternative_of = 0}}, kOpened);
    const auto cost_s = [&](int task) { return task == 1 ? slower * 1e-3 : 1e-3; };
    EXPECT_EQ(NextRound(s, cost_s), 0);
    EXPECT_EQ(NextRound(s, cost_s), 1);
    while (s.trials(0) < rival_trials) ASSERT_EQ(NextRound(s, cost_s), 0);
    EXPECT_EQ(NextRound(s, cost_s), 1);
    EXPECT_EQ(s.trials(1), 7u);
  }
  // A task whose alternative is faster has a second round, too.
  TaskScheduler s = Make({{}, {.alternative_of = 0}}, kOpened);
  for (int i = 0; i < 10; ++i) NextRound(s, [](int task) { return task == 0 ? 0.1 : 1e-3; });
  EXPECT_EQ(s.rounds(0), 2);
}

// A task with the same sums as the rival shows that the alternative is far slower.
TEST(TaskScheduler, AnAlternativeIsComparedWithAllThatSumUpAsItsRivalDoes) {
  TaskScheduler s = Make(kTwoWithAlternatives, kOpened);
  const auto cost_s = [&](int task) {
    if (task % 2 == 1) return 4e-3;
    return s.rounds(task) > 1 ? 1e-3 : 5e-3;  // tuning helps these tasks a lot
  };
  std::vector<int> order;
  for (int i = 0; i < 6; ++i) order.push_back(NextRound(s, cost_s));
  EXPECT_EQ(std::vector<int>(order.begin(), order.begin() + 3), (std::vector<int>{0, 2, 1}));
  EXPECT_EQ(s.rounds(1), 1) << "task 0 or 2 was tuned first and showed what is possible";
  EXPECT_EQ(s.rounds(3), 0);
}

// The first task of those with equal sums teaches the others, which have smaller rounds.
TEST(TaskScheduler, OfEqualSumsOneIsTunedFirst) {
  TaskScheduler s = Make({{.weight = 2, .sums = "a"}, {.sums = "a"}, {}}, kOpened);
  for (int i = 0; i < 3; ++i) NextRound(s, [](int) { return 5e-3; });
  ASSERT_EQ(s.Next(), 0);
  EXPECT_EQ(s.RoundTrials(0), 6u);
  s.BeginRound(0);
  EXPECT_EQ(s.Next(), 2) << "task 1 waits for what task 0 finds";
  for (int i = 0; i < 6; ++i) s.AddResult(0, 1e-3);
  s.EndRound(0);
  EXPECT_EQ(s.Next(), 1);
  EXPECT_EQ(s.RoundTrials(1), 2u);
}

// Whatever a task finds later is taken over at once, also within the round that found it, but only
// once for each finding: the second time no trial has shown that the schedule is fast there, too.
TEST(TaskScheduler, ATaskFollowsEachTimeThatAnotherWithTheSameSumsBecomesFaster) {
  TaskScheduler s = Make({{.weight = 1, .sums = "a"}, {.weight = 9}, {.sums = "a"}}, kOpened);
  for (int i = 0; i < 3; ++i) NextRound(s, [](int) { return 1e-3; });
  for (const int task : {0, 2}) Rounds(s, task, {1e-3, 1e-3});
  s.BeginRound(0);
  s.AddResult(0, 0.97e-3);
  EXPECT_EQ(s.Next(), 1) << "3% are found without following, too";
  s.AddResult(0, 0.9e-3);
  ASSERT_EQ(s.Next(), 2) << "task 1 is heavier, but its gain is not certain";
  EXPECT_EQ(s.RoundTrials(2), 2u);
  Rounds(s, 2, {1e-3});
  EXPECT_EQ(s.Next(), 1) << "task 2 was told, and is no faster";
  EXPECT_GT(s.RoundTrials(2), 2u);
  s.AddResult(0, 0.8e-3);
  EXPECT_EQ(s.Next(), 2);
}

TEST(TaskScheduler, TheFollowerThatGainsMostIsFirst) {
  TaskScheduler s = Make({{.sums = "a"}, {.sums = "a"}, {.weight = 3, .sums = "a"}}, kOpened);
  for (int i = 0; i < 3; ++i) NextRound(s, [](int) { return 1e-3; });
  Rounds(s, 0, {0.5e-3});
  EXPECT_EQ(s.Next(), 2);
  s.BeginRound(2);
  EXPECT_EQ(s.Next(), 1);
}

// The alternatives 1 and 3 are far slower than their rivals, so there is nothing to gain.
TEST(TaskScheduler, AnAlternativeThatIsFarSlowerDoesNotFollow) {
  for (const double slower : {1.2, 2.0}) {
    TaskScheduler s = Make(kTwoWithAlternatives, kOpened);
    for (const int task : {0, 2}) Rounds(s, task, {1e-3, 1e-3});
    Rounds(s, 1, {9e-3});
    Rounds(s, 3, {9e-3});
    Rounds(s, 1, {slower * 1e-3});
    EXPECT_EQ(*s.Next() == 3, slower < 1.4) << slower;
  }
}

// Task 0 gains more in its round of 16 trials. Task 1 gains more with each trial of its round of 6.
TEST(TaskScheduler, ARoundOfFewTrialsNeedsLessGain) {
  TaskScheduler s = Make({{.weight = 6}, {}}, kOpened);
  Rounds(s, 0, {1e-3, 1e-3});  // t = 4, for the second round counts as three
  Rounds(s, 1, {1e-3});        // t = 1
  EXPECT_LT(s.GradientOf(0).gradient, s.GradientOf(1).gradient);
  EXPECT_EQ(s.Next(), 1);
}

// A light task has its second round before a heavy one has many rounds: t is 1 and 4, so 3 stands
// against 11 / 4.
TEST(TaskScheduler, TheSecondRoundCountsAsThree) {
  TaskScheduler s = Make({{}, {}}, kOpened);
  const auto cost_s = [](int task) { return task == 0 ? 11e-3 : 3e-3; };
  EXPECT_EQ(NextRound(s, cost_s), 0);
  EXPECT_EQ(NextRound(s, cost_s), 1);
  EXPECT_EQ(NextRound(s, cost_s), 0);
  EXPECT_NEAR(s.GradientOf(0).forward, -11e-3 / 4, 1e-12);
  EXPECT_EQ(NextRound(s, cost_s), 1);
}

// The task becomes four times faster right after its opening, and no faster after that.
TEST(TaskScheduler, WhatTheOpeningGaveWayToIsNoTrend) {
  TaskScheduler s = Make({{}, {}}, kOpened);
  Rounds(s, 0, {40e-3, 10e-3, 10e-3, 10e-3});
  EXPECT_EQ(s.GradientOf(0).backward, 0);
  Rounds(s, 0, {7e-3});
  EXPECT_NEAR(s.GradientOf(0).backward, -1e-3, 1e-12);
}

TEST(TaskScheduler, TheObjectiveIsEstimatedInProportionToWhatIsMeasured) {
  TaskScheduler s = Make({{.weight = 2, .estimate_s = 1e-3}, {.estimate_s = 4e-3}});
  EXPECT_FALSE(s.Score().has_value());
  EXPECT_NEAR(s.ExpectedScore()->value, 6e-3, 1e-12);
  EXPECT_EQ(s.ExpectedScore()->estimated, 2);
  Rounds(s, 0, {3e-3});
  EXPECT_NEAR(s.ExpectedScore()->value, 2 * 3e-3 + 3 * 4e-3, 1e-12);
  EXPECT_EQ(s.ExpectedScore()->estimated, 1);
  Rounds(s, 1, {5e-3});
  EXPECT_EQ(s.ExpectedScore()->value, s.Score());
  EXPECT_EQ(s.ExpectedScore()->estimated, 0);
  EXPECT_FALSE(Make({{.estimate_s = 1e-3}, {}}).ExpectedScore().has_value());
}

TEST(TaskScheduler, FirstRoundsAreCutToWhatTheTimeAllows) {
  TaskScheduler s = Make({{}, {}}, {.first_round_trials = 16, .opening_trials = 1});
  Rounds(s, 0, {1e-3, 1e-3});
  s.ExpectTrials(1000);
  EXPECT_EQ(s.RoundTrials(0), 16u);
  s.ExpectTrials(32);
  EXPECT_EQ(s.RoundTrials(0), 8u);
  s.ExpectTrials(2);
  EXPECT_EQ(s.RoundTrials(0), 4u);
}

// Tasks 0 and 2 have the same sums, and so do their alternatives, 1 and 3.
TEST(TaskScheduler, AnAlternativeThatWasFarSlowerForTheSameSumsIsNotBegun) {
  for (const double alternative_s : {1.3e-3, 1.5e-3}) {
    TaskScheduler s = Make({{.sums = "a"},
                            {.sums = "b", .alternative_of = 0},
                            {.sums = "a"},
                            {.sums = "b", .alternative_of = 2},
                            {}});
    Rounds(s, *s.Next(), {1e-3});
    Rounds(s, *s.Next(), {alternative_s});
    Rounds(s, *s.Next(), {1e-3});
    EXPECT_EQ(s.Next(), alternative_s < 1.4e-3 ? 3 : 4);
    Rounds(s, 4, {1e-6});
    for (int i = 0; i < 20; ++i) {
      const int next = *s.Next();
      if (alternative_s > 1.4e-3) {
        EXPECT_NE(next, 3);
      }
      Rounds(s, next, {next == 1 || next == 3 ? alternative_s : 1e-3});
    }
  }
}

// Worked out by hand, with alpha 0.2 and window 3:
//   task 0: h = 10, 6, 5, 4, 4 ms; t = 5, g = 4
//     backward = (4 - 6) / 3 = -0.666667   forward = (4 - 4 / 5) - 4 = -0.8
//     gradient = 0.2 * -0.666667 + 0.8 * -0.8 = -0.773333
//   task 1: h = 3, 3 ms; t = 2, g = 3, weight 2
//     backward = 0                         forward = (3 - 1.5) - 3 = -1.5
//     gradient = 2 * 0.8 * -1.5 = -2.4
TEST(TaskScheduler, TheGradientIsTheFormula) {
  TaskScheduler s = Make({{.weight = 1}, {.weight = 2}});
  Rounds(s, 0, {10e-3, 6e-3, 5e-3, 4e-3, 4.5e-3});
  Rounds(s, 1, {3e-3, 3.5e-3});
  EXPECT_EQ(s.history_s(0), (std::vector<double>{10e-3, 6e-3, 5e-3, 4e-3, 4e-3}));
  const auto g0 = s.GradientOf(0), g1 = s.GradientOf(1);
  EXPECT_NEAR(g0.backward, -0.666667e-3, 1e-9);
  EXPECT_NEAR(g0.forward, -0.8e-3, 1e-9);
  EXPECT_NEAR(g0.gradient, -0.773333e-3, 1e-9);
  EXPECT_EQ(g1.chain, 2);
  EXPECT_EQ(g1.backward, 0);
  EXPECT_NEAR(g1.gradient, -2.4e-3, 1e-9);
  EXPECT_EQ(s.Next(), 1);
  EXPECT_NEAR(*s.Score(), 4e-3 + 2 * 3e-3, 1e-12);
  // Task 1 stays at 3 ms, so its gradient becomes 2 * (0.2 * 0 - 0.8 * 3 / t): t = 3: -1.6, 4:
  // -1.2, 5: -0.96, 6: -0.8, 7: -0.686 > -0.773.
  for (int t = 3; t <= 7; ++t) {
    ASSERT_EQ(s.Next(), 1) << t;
    Rounds(s, 1, {5e-3});
  }
  EXPECT_EQ(s.Next(), 0);
}

// Runs three tasks, round by round. The gradients were worked out by hand (all are 0.8 * -w*g/t
// until a history has four rounds).
TEST(TaskScheduler, GoldenSequence) {
  TaskScheduler s = Make({{.weight = 1}, {.weight = 4}, {.weight = 1}});
  std::vector<int> order;
  // Task 0 halves each time from 8 ms. Task 1 stays at 1 ms, and task 2 at 2 ms.
  double cost0 = 16e-3;
  for (int i = 0; i < 10; ++i) {
    const int task = *s.Next();
    order.push_back(task);
    Rounds(s, task, {task == 0 ? (cost0 /= 2) : task == 1 ? 1e-3 : 2e-3});
  }
  // After the warm-up 8/1, 4*1/1, 2/1 -> 0 (4/2 = 2); then 4 -> 1 (4/2 = 2); then 2, 2, 2: all are
  // equal but for the rounding of task 1, 4 * 0.5 = 2, so the next choice is random and not checked
  // here.
  EXPECT_EQ(std::vector<int>(order.begin(), order.begin() + 5), (std::vector<int>{0, 1, 2, 0, 1}));
  for (int i = 0; i < 3; ++i) EXPECT_GE(s.rounds(i), 2) << i;
}

// Task 0 has gained in each round but the last, task 1 has gained nothing. What may be gained is
// worth 0.8 ms of task 0 and 3 ms of task 1; see TheGradientIsTheFormula.
TEST(TaskScheduler, AlphaAndTheWindowWeighThePast) {
  struct Case {
    double alpha;
    int window;
    double gradient;  // of task 0
    int next;
  };
  for (const auto& [alpha, window, gradient, next] :
       {Case{0.2, 3, -0.773333e-3, 1}, Case{0, 3, -0.8e-3, 1}, Case{0.9, 3, -0.68e-3, 0},
        Case{1, 3, -0.666667e-3, 0}, Case{0.9, 1, -0.08e-3, 1}, Case{0.9, 4, -1.43e-3, 0}}) {
    SCOPED_TRACE(alpha);
    SCOPED_TRACE(window);
    TaskScheduler s =
        Make({{.weight = 1}, {.weight = 2}}, {.alpha = alpha, .backward_window = window});
    Rounds(s, 0, {10e-3, 6e-3, 5e-3, 4e-3, 4.5e-3});
    Rounds(s, 1, {3e-3, 3.5e-3});
    EXPECT_NEAR(s.GradientOf(0).gradient, gradient, 1e-9);
    EXPECT_EQ(s.Next(), next);
  }
}

// Task 1 has a speed of 5e8 FLOPs a second, its peer one of 1e9. With beta 2 task 1 is as fast as
// expected, so optimism alone counts. With beta 1 it may become twice as fast.
TEST(TaskScheduler, BetaSaysHowFarATaskMayStayBehindItsPeers) {
  const std::string tag = SimilarityTag("conv2d", 4e6);
  for (const auto& [beta, forward, next] :
       {std::tuple{2.0, -2e-3, 0}, std::tuple{1.0, -4e-3, 1}, std::tuple{0.5, -6e-3, 1}}) {
    SCOPED_TRACE(beta);
    TaskScheduler s = Make({{3, 1e6, tag}, {1, 4e6, tag}}, {.beta = beta});
    Rounds(s, 0, {1e-3});
    Rounds(s, 1, {9e-3, 9e-3, 9e-3, 8e-3});
    EXPECT_NEAR(s.GradientOf(1).forward, forward, 1e-12);
    EXPECT_EQ(s.Next(), next);
  }
}

//   peers {0, 1}, beta 2: C = 1e6 and 4e6, g = 1 and 8 ms; speeds 1e9 and 5e8.
//     task 1: t = 4: optimist = 8 - 2 = 6; similar = 2 * 4e6 / 1e9 = 8 ms -> forward = 6 - 8 = -2
//     with g = 40 ms, t = 40: optimist 39, similar 8 -> forward = -32
TEST(TaskScheduler, AlikeTasksShowWhatIsPossible) {
  const std::string tag = SimilarityTag("conv2d", 4e6);
  EXPECT_EQ(tag, "conv2d31");  // log(4e6 + 1) / log(1.618) = 31.59
  EXPECT_EQ(SimilarityTag("", 4e6), "");
  {
    TaskScheduler s = Make({{1, 1e6, tag}, {1, 4e6, tag}});
    Rounds(s, 0, {1e-3});
    Rounds(s, 1, {9e-3, 9e-3, 9e-3, 8e-3});
    EXPECT_NEAR(s.GradientOf(1).forward, -2e-3, 1e-12);
    EXPECT_NEAR(s.GradientOf(1).backward, -1e-3 / 3, 1e-12);
  }
  {
    TaskScheduler s = Make({{1, 1e6, tag}, {1, 4e6, tag}});
    for (int i = 0; i < 40; ++i) Rounds(s, 0, {1e-3});
    for (int i = 0; i < 40; ++i) Rounds(s, 1, {40e-3});
    EXPECT_NEAR(s.GradientOf(1).forward, -32e-3, 1e-12);
    // Task 1 is far behind and soon more than five rounds ahead: it leaves its peers, and its
    // forward is the optimist's.
    for (int i = 0; i < 6; ++i) Rounds(s, 1, {40e-3});
    EXPECT_NEAR(s.GradientOf(1).forward, -40e-3 / 46, 1e-12);
  }
}

TEST(TaskScheduler, RoundRobin) {
  TaskScheduler s = Make({{}, {}, {}}, {.strategy = TaskStrategy::kRoundRobin});
  std::vector<int> order;
  for (int i = 0; i < 7; ++i) {
    order.push_back(*s.Next());
    Rounds(s, order.back(), {1e-3});
    if (i == 3) s.MarkExhausted(1);
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 0, 2, 0, 2}));
}

// A task whose peer is faster has its whole round: only the gradient knows followers.
TEST(TaskScheduler, RoundRobinHasNoFollowers) {
  TaskScheduler s =
      Make({{.sums = "a"}, {.sums = "a"}},
           {.strategy = TaskStrategy::kRoundRobin, .first_round_trials = 16, .opening_trials = 1});
  const auto cost_s = [](int task) { return task == 0 ? 1e-3 : 5e-3; };
  for (int i = 0; i < 3; ++i) NextRound(s, cost_s);
  ASSERT_EQ(s.rounds(0), 2);
  EXPECT_EQ(s.Next(), 1);
  EXPECT_EQ(s.RoundTrials(1), 6u);
  NextRound(s, cost_s);
  EXPECT_EQ(s.RoundTrials(1), 16u);
}

TEST(TaskScheduler, RoundsGrow) {
  TaskScheduler s = Make({{}}, {.round_trials = 64, .first_round_trials = 12});
  std::vector<uint32_t> sizes;
  for (int i = 0; i < 14; ++i) {
    sizes.push_back(s.RoundTrials(0));
    s.BeginRound(0);
  }
  EXPECT_EQ(sizes, (std::vector<uint32_t>{12, 12, 12, 12, 12, 15, 18, 23, 29, 36, 45, 56, 64, 64}));
  EXPECT_EQ(Make({{}}, {.round_trials = 5, .first_round_trials = 12}).RoundTrials(0), 5u);
}

TEST(TaskScheduler, TasksDie) {
  TaskScheduler s = Make({{}, {}, {}}, {.task_early_stopping = 3, .give_up_trials = 5});
  s.BeginRound(0);
  for (int i = 0; i < 4; ++i) s.AddResult(0, kFailed);
  EXPECT_FALSE(s.dead(0));
  s.AddResult(0, kFailed);
  EXPECT_TRUE(s.dead(0));  // five trials failed, none worked
  s.EndRound(0);
  EXPECT_EQ(s.GradientOf(0).gradient, 0);
  Rounds(s, 1, {1e-3, 2e-3, 2e-3, 2e-3});
  EXPECT_FALSE(s.dead(1));
  Rounds(s, 1, {2e-3});
  EXPECT_TRUE(s.dead(1));
  EXPECT_EQ(s.Next(), 2);
  s.MarkExhausted(2);
  EXPECT_EQ(s.Next(), std::nullopt);
}

TEST(TaskScheduler, AHeldTaskHasNoRoundsUntilItIsLetGo) {
  for (const TaskStrategy strategy : {TaskStrategy::kGradient, TaskStrategy::kRoundRobin}) {
    TaskScheduler s = Make({{.weight = 100}, {}}, {.strategy = strategy, .opening_trials = 1});
    s.Hold(0, true);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(s.Next(), 1) << i;
      Rounds(s, 1, {1e-3});
    }
    s.MarkExhausted(1);
    EXPECT_EQ(s.Next(), std::nullopt);
    s.Hold(0, false);
    ASSERT_EQ(s.Next(), 0);
    EXPECT_EQ(s.RoundTrials(0), 1u) << "its opening";
  }
}

TEST(TaskScheduler, TheCostsOfOtherSearchesCountInTheObjective) {
  TaskScheduler s = Make({{.weight = 2}, {}}, {.early_stopping = 3});
  s.Hold(0, true);
  Rounds(s, 1, {1e-3});
  EXPECT_EQ(s.Score(), std::nullopt);
  s.AddKnown(0, 5e-3);
  ASSERT_TRUE(s.Score().has_value());
  EXPECT_DOUBLE_EQ(*s.Score(), 2 * 5e-3 + 1e-3);
  s.AddKnown(0, 7e-3);
  EXPECT_DOUBLE_EQ(s.latency_s(0), 5e-3) << "the best one counts";
  EXPECT_EQ(s.trials(0), 0u);
  // They are improvements like others.
  Rounds(s, 1, {2e-3, 2e-3});
  s.AddKnown(0, 4e-3);
  Rounds(s, 1, {2e-3, 2e-3});
  EXPECT_EQ(s.Over(), std::nullopt);
  Rounds(s, 1, {2e-3});
  EXPECT_EQ(s.Over(), Ending::kNoImprovement);
}

TEST(TaskScheduler, StopsWhenNothingImproves) {
  TaskScheduler s = Make({{}, {}}, {.early_stopping = 4});
  Rounds(s, 0, {1e-3, 2e-3, 2e-3, 2e-3, 2e-3, 2e-3});
  EXPECT_EQ(s.Next(), 1);  // task 1 has no result yet
  Rounds(s, 1, {5e-3, 4e-3});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(s.Next().has_value()) << i;
    Rounds(s, *s.Next(), {9e-3});
  }
  EXPECT_EQ(s.Next(), std::nullopt);
}

TEST(TaskScheduler, ALatencyTargetEndsTheJobWhenReached) {
  TaskScheduler s = Make({{.weight = 1}, {.weight = 2}},
                         {.objective = MakeObjective(ObjectiveKind::kWeightedSum,
                                                     {{.weight = 1}, {.weight = 2}}, 5e-3)});
  Rounds(s, 0, {2e-3});
  Rounds(s, 1, {2e-3});
  EXPECT_NEAR(s.GradientOf(0).chain, 1, 1e-6);
  EXPECT_NEAR(s.GradientOf(1).chain, 2, 1e-6);
  EXPECT_EQ(s.Next(), 1);
  Rounds(s, 1, {1.4e-3});  // 2 + 2.8 < 5
  EXPECT_EQ(s.Next(), std::nullopt);
  EXPECT_NEAR(*s.Score(), 5e-3, 1e-12);
}

TEST(TaskScheduler, AlternativesAreOneGroup) {
  const std::vector<ScheduledTask> tasks = {
      {.weight = 2}, {.weight = 3}, {.weight = 1, .alternative_of = 0}, {.weight = 1}};
  EXPECT_EQ(VariantGroupsOf(tasks), (std::vector<int>{0, 1, 0, 2}));
  TaskScheduler s = Make(tasks);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(s.Next(), i);  // each has its first round
    Rounds(s, i, {1e-3 * (3 - i)});
  }
  EXPECT_EQ(s.Score(), std::nullopt);
  Rounds(s, 3, {4e-3});
  EXPECT_NEAR(*s.Score(), 2 * 1e-3 + 3 * 2e-3 + 4e-3, 1e-12);
  EXPECT_EQ(s.fastest(0), 2);
  EXPECT_EQ(s.fastest(2), 2);
  EXPECT_EQ(s.fastest(1), 1);
  EXPECT_EQ(s.GradientOf(2).chain, 2);  // the weight of its group
}

// Worked out by hand: the fastest has g = 1 ms. Task 1 has g = 1.5 ms after 4 rounds, from 2.1.
//   backward = (1.5 - 2.1) / 3 = -0.2   forward = -1.5 / 4 = -0.375
//   expected_gain = 1 / 1.5 * (0.2 * -0.2 + 0.8 * -0.375) + (1.5 - 1) / 3 = -0.226667 + 0.166667
//                 = -0.06
TEST(TaskScheduler, TheExpectedGainIsTheFormula) {
  TaskScheduler s = Make({{.weight = 5}, {.alternative_of = 0}}, {.catch_up_rounds = 3});
  Rounds(s, 0, {2e-3, 1e-3});
  Rounds(s, 1, {2.1e-3, 1.9e-3, 1.7e-3, 1.5e-3});
  EXPECT_NEAR(s.GradientOf(1).expected_gain, -0.06e-3, 1e-12);
  EXPECT_NEAR(s.GradientOf(1).gradient, -0.3e-3, 1e-12);
  EXPECT_NEAR(s.GradientOf(0).expected_gain, 0.8 * -0.5e-3, 1e-12);  // the plain rule
  // At 2.1 ms the alternative would promise nothing: 1 / 2.1 * 0.8 * -0.525 + 0.366667 > 0.
  TaskScheduler behind = Make({{}, {.alternative_of = 0}}, {.catch_up_rounds = 3});
  Rounds(behind, 0, {1e-3});
  Rounds(behind, 1, {2.1e-3, 2.1e-3, 2.1e-3, 2.1e-3});
  EXPECT_EQ(behind.GradientOf(1).gradient, 0);
}

// Returns the rounds of each task, of `rounds` in all. curves_s[i](t) is the best cost of task i
// after t rounds.
using Curve = std::function<double(int)>;
std::vector<int> RoundsOf(std::vector<ScheduledTask> tasks, const std::vector<Curve>& curves_s,
                          int rounds) {
  TaskScheduler s = Make(std::move(tasks));
  for (int i = 0; i < rounds; ++i) {
    const int task = *s.Next();
    Rounds(s, task, {curves_s[task](s.rounds(task) + 1)});
  }
  std::vector<int> counts;
  for (int i = 0; i < s.num_tasks(); ++i) counts.push_back(s.rounds(i));
  return counts;
}

TEST(TaskScheduler, ASlowAlternativeLosesItsTrials) {
  const std::vector<ScheduledTask> two = {{}, {.alternative_of = 0}};
  // Both costs level off in the same way, one of them at 10, 3, 2 or 1.1 times the other's value.
  const auto levels_off = [](double end_s) {
    return [end_s](int t) { return end_s * (1 + 1.0 / t); };
  };
  EXPECT_EQ(RoundsOf(two, {levels_off(1e-3), levels_off(10e-3)}, 20), (std::vector<int>{19, 1}));
  EXPECT_EQ(RoundsOf(two, {levels_off(3e-3), levels_off(1e-3)}, 20)[0], 1);  // the first one too
  EXPECT_LE(RoundsOf(two, {levels_off(1e-3), levels_off(3e-3)}, 20)[1], 2);
  EXPECT_LE(RoundsOf(two, {levels_off(1e-3), levels_off(2e-3)}, 20)[1], 3);
  const std::vector<int> near = RoundsOf(two, {levels_off(1e-3), levels_off(1.1e-3)}, 20);
  EXPECT_GE(near[1], 6);
  EXPECT_LE(near[1], 10);
  // The alternative does not cost other groups their trials.
  const std::vector<int> three = RoundsOf(
      {{}, {.alternative_of = 0}, {}}, {levels_off(1e-3), levels_off(5e-3), levels_off(1e-3)}, 21);
  EXPECT_EQ(three[1], 1);
  EXPECT_NEAR(three[0], three[2], 1);
}

// The direct variant reaches 1 ms soon, and gets no better. The other one begins at 1.6 ms and
// gains 8% a round: it is as fast after seven rounds, and ends at half the time.
TEST(TaskScheduler, AnAlternativeThatCrossesLateGetsThere) {
  const Curve direct = [](int t) { return 1e-3 * (1 + 0.5 / (t * t)); };
  const Curve late = [](int t) { return std::max(0.5e-3, 1.6e-3 * std::pow(0.92, t - 1)); };
  const std::vector<int> counts = RoundsOf({{}, {.alternative_of = 0}}, {direct, late}, 30);
  EXPECT_GE(counts[1], 15) << "the winner has the most";
  EXPECT_LE(counts[0], 15);
  // The same run gives the same result again.
  EXPECT_EQ(RoundsOf({{}, {.alternative_of = 0}}, {direct, late}, 30), counts);
}

TEST(TaskScheduler, AnAlternativeThatFailsLeavesTheOtherAlone) {
  TaskScheduler s = Make({{}, {.alternative_of = 0}});
  Rounds(s, 0, {1e-3});
  Rounds(s, 1, {kFailed});
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(s.Next(), 0);
    Rounds(s, 0, {1e-3});
  }
  EXPECT_TRUE(s.Score().has_value());
  // The alternative has more rounds when nothing else can be tuned.
  s.MarkExhausted(0);
  EXPECT_EQ(s.Next(), 1);
}

TEST(TaskScheduler, TheLargestIsTunedAlone) {
  const std::vector<VariantGroup> groups(3);
  TaskScheduler s = Make({{}, {}, {}}, {.objective = MakeObjective(ObjectiveKind::kMax, groups)});
  Rounds(s, 0, {1e-3});
  Rounds(s, 1, {5e-3});
  Rounds(s, 2, {2e-3});
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(s.Next(), 1);
    Rounds(s, 1, {5e-3});
  }
  Rounds(s, 1, {2e-3});
  EXPECT_EQ(*s.Score(), 2e-3);
  // Both have to become shorter. Task 2 has had fewer rounds.
  EXPECT_EQ(s.Next(), 2);
  // If the largest can't become shorter, there is nothing to gain.
  Rounds(s, 2, {1e-3});
  s.MarkExhausted(1);
  EXPECT_EQ(s.Next(), std::nullopt);
}

TEST(TaskScheduler, OpenRoundsCountAsSpent) {
  TaskScheduler s = Make({{}, {}});
  Rounds(s, 0, {4e-3});
  s.BeginRound(1);  // in flight, without a result: task 0 goes on meanwhile
  EXPECT_EQ(s.Next(), 0);
  s.AddResult(1, 3e-3);
  EXPECT_EQ(s.Next(), 0);  // 4 against 3
  s.BeginRound(0);
  EXPECT_EQ(s.Next(), 1);  // 4 / 2 against 3
  EXPECT_EQ(s.history_s(1).size(), 0u);
  s.EndRound(1);
  EXPECT_EQ(s.history_s(1), (std::vector<double>{3e-3}));
}

// A resumed job decides like a job that was never stopped.
TEST(TaskScheduler, RestoreGivesTheSameState) {
  const TaskSchedulerOptions options{.round_trials = 4, .first_round_trials = 2};
  const std::vector<std::optional<double>> costs_s = {
      9e-3, kFailed, 8e-3, 7e-3, 7e-3, 9e-3, 6e-3, kFailed, 6e-3,
      5e-3, 5e-3,    6e-3, 4e-3, 4e-3, 4e-3, 3e-3, 3e-3,    3e-3};  // 6 * 2 + 3 + 3
  TaskScheduler lived = Make({{}, {}}, options), restored = Make({{}, {}}, options);
  size_t at = 0;
  while (at < costs_s.size()) {
    const uint32_t round = lived.RoundTrials(0);
    lived.BeginRound(0);
    for (uint32_t i = 0; i < round; ++i) lived.AddResult(0, costs_s[at++]);
    lived.EndRound(0);
  }
  restored.Restore(0, costs_s);
  EXPECT_EQ(restored.history_s(0),
            (std::vector<double>{9e-3, 7e-3, 7e-3, 6e-3, 5e-3, 5e-3, 4e-3, 3e-3}));
  EXPECT_EQ(restored.history_s(0), lived.history_s(0));
  EXPECT_EQ(restored.rounds(0), 8);
  EXPECT_EQ(restored.trials(0), 18u);
  EXPECT_EQ(restored.GradientOf(0).gradient, lived.GradientOf(0).gradient);
  EXPECT_LT(restored.GradientOf(0).backward, 0);
}

// A task that was told of another one's results before the job stopped has whole rounds after that,
// in whatever order the tasks are restored.
TEST(TaskScheduler, ARestoredTaskDoesNotFollowAgain) {
  const std::vector<ScheduledTask> tasks = {{.sums = "a"}, {.sums = "a"}};
  TaskScheduler lived = Make(tasks, kOpened);
  for (int i = 0; i < 2; ++i) NextRound(lived, [](int) { return 5e-3; });
  std::vector<std::vector<std::optional<double>>> costs_s(2, {5e-3});
  for (int i = 0; i < 4; ++i) {
    const int task = *lived.Next();
    const double cost_s = task == 0 ? 1e-3 : 4e-3;
    costs_s[task].insert(costs_s[task].end(), lived.RoundTrials(task), cost_s);
    NextRound(lived, [&](int) { return cost_s; });
  }
  for (const int first : {0, 1}) {
    TaskScheduler restored = Make(tasks, kOpened);
    for (const int task : {first, 1 - first}) restored.Restore(task, costs_s[task]);
    for (const int task : {0, 1}) {
      EXPECT_EQ(lived.RoundTrials(task), 16u);
      EXPECT_EQ(restored.RoundTrials(task), lived.RoundTrials(task)) << first << " " << task;
    }
  }
}

// A restored task still follows what it has not been told of yet.
TEST(TaskScheduler, ARestoredTaskFollowsWhatIsFoundLater) {
  TaskScheduler s = Make({{.sums = "a"}, {.sums = "a"}}, kOpened);
  const std::vector<std::optional<double>> costs_s(7, 5e-3);
  for (const int task : {0, 1}) s.Restore(task, costs_s);
  Rounds(s, 1, {1e-3});
  EXPECT_EQ(s.Next(), 0);
  EXPECT_EQ(s.RoundTrials(0), 2u);
}

TEST(TaskScheduler, EqualsAreChosenByChanceOfTheSeed) {
  const auto order = [](uint64_t seed) {
    TaskScheduler s = Make({{}, {}, {}}, {.seed = seed});
    for (int i = 0; i < 3; ++i) Rounds(s, i, {1e-3});
    return *s.Next();
  };
  EXPECT_EQ(order(5), order(5));
  std::vector<int> seen(3);
  for (uint64_t seed = 0; seed < 30; ++seed) ++seen[order(seed)];
  for (const int n : seen) EXPECT_GT(n, 0);
}

}  // namespace
}  // namespace kiln::search
