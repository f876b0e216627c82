// Chooses the task of a job that is tuned next: by the gradient of the objective, or in turns.
//
// Pure logic: no policy, no clock, no thread. A round is a number of candidates of one task. The
// owner asks Next for a task, calls BeginRound, and calls EndRound once all trials of the round
// have results. Rounds may overlap: an open round counts for the rounds spent (t), and not yet for
// the gain (the history). If every round ends before the next begins, the rule is the classical
// one:
//
//   chain_i    = d objective / d latency of i's group          (the weight, for a weighted sum)
//   backward_i = (h_i[last] - h_i[last - window]) / window     0 while the history is shorter
//   optimist_i = g_i - g_i / t_i                               t rounds gave g: one more gives that
//   similar_i  = beta * C_i / max over its peers of C_j / g_j  what alike tasks have reached
//   forward_i  = min(optimist_i, similar_i) - g_i
//   expected_gain_i = alpha * backward_i + (1 - alpha) * forward_i
//   gradient_i = chain_i * expected_gain_i                     at most 0
//
// The task with the smallest gradient is next, or a random one if all are equal. g is the best
// latency so far, C the FLOPs, h the best latency after each round. A task's peers have the same
// similarity tag. A task that stays far behind its peers loses them.
//
// Variants. Tasks may compute the same by different algorithms, of which the fastest will be used.
// Such tasks form a group. The latency of the group is the smallest of theirs, and the objective is
// a function of groups. By the plain derivative, a variant that is not the fastest would be worth
// nothing. Its worth is what it gains on the way to become the fastest. With g as the smallest
// latency of the group:
//
//   expected_gain_i = g / g_i * (alpha * backward_i + (1 - alpha) * forward_i)
//                     + (g_i - g) / catch_up_rounds
//
// This is the gain of each round, in proportion to the variant's latency, less the distance that it
// must make up for in each of the next `catch_up_rounds` to draw level; at most 0. For the fastest
// variant this is the rule above. A variant that stays three times slower has its second round
// after seven rounds of the fastest. A variant that stays a third slower has eight rounds at most.
// A variant that draws near has more and more rounds. All variants have a first round, except
// alternatives that were far slower in a task with the same sums. An alternative without a result
// after that round gets no more while another variant has a result, unless nothing else can be
// tuned.
//
// Opening. With opening_trials, each task first has a round of so few trials, the heaviest by
// estimates first, and alternatives after all others. Then all tasks have a measured schedule
// before any is tuned, and a small budget misses only the tasks that matter least. From then on the
// gradient decides, with these exceptions, because one trial says little and trials are few:
//
//   * One of the tasks with the same sums has its second round first. The others wait for its
//     results.
//   * When a task becomes faster by 5% than another one with the same sums, the other one has a
//     round of two trials before all rounds of the gradient: it is told of the results, and one
//     trial takes over most of the gain.
//   * The second round is short. The gradient is divided by the trials of the round, up to
//     first_round_trials, so a short round needs less gain than a long one.
//   * The second round finds most of the possible gain, so it counts as three (t). Light tasks have
//     theirs before heavy tasks have many rounds.
//   * One of the alternatives with the same sums is opened. The others wait until seven trials of
//     it say whether they are pruned.
//   * If an alternative is far slower by its opening alone than its rival, or than tasks with the
//     rival's sums, it waits until the rival has had some rounds, the more the slower it is. Then
//     it has a second round in any case. So has a task that is far slower than its alternative.
//
// Held tasks. Another search may tune a task meanwhile. Such a task is held: it has no rounds, like
// a dead one, until it is let go. The costs that the other search finds count in the objective.
//
// A group without a result has the latency 1e10 s, so it comes first until it is dead; only while
// its rounds are open, others are preferred. Latencies in seconds. Cost of a round: each task looks
// at its peers, its alternatives and the tasks with the same sums, and the objective is asked once
// for its slopes. Not thread-safe, not even the const functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/rng.h"
#include "search/tuning/objective.h"

namespace kiln::search {

enum class TaskStrategy { kGradient, kRoundRobin };

// The reason why a search ended.
enum class Ending {
  kTrialsUsedUp,
  kTargetReached,   // the objective need not be smaller
  kNoImprovement,   // early stopping, of the job or of its last tasks
  kSpaceExhausted,  // no task has candidates left that may help
  kTimeUsedUp,
  kLeftToOthers,  // the tasks that are left are tuned by other searches
};

struct ScheduledTask {
  double weight = 1;  // weight of its group: the first alternative's weight counts
  double flop_count = 0;
  std::string similarity_tag = {};  // "": it has no peers
  // A key of its sums (search/evolution/transfer.h); "" if there are none, or they are not known.
  // Tasks with the same sums are fast with the same schedules.
  std::string sums = {};
  // The time of its untuned schedule that a model predicts. 0: not known.
  double estimate_s = 0;
  // The earlier task that this one is an alternative of. None: the task has a group of its own.
  std::optional<int> alternative_of = {};
};

// Returns the number of each task's group. Groups are numbered in the order of their first tasks.
std::vector<int> VariantGroupsOf(std::span<const ScheduledTask> tasks);

// Returns a tag for tasks of one kind and about one size, from a DAG's tags and FLOPs. "" without
// tags.
std::string SimilarityTag(std::string_view tags, double flop_count);

struct TaskSchedulerOptions {
  TaskStrategy strategy = TaskStrategy::kGradient;
  double alpha = 0.2;
  double beta = 2;
  int backward_window = 3;   // in rounds
  int catch_up_rounds = 6;   // rounds that an alternative has to become the fastest
  Objective objective = {};  // takes groups in their order; empty: the sum of weight * latency
  uint32_t round_trials = 64;
  // Trials of a task's first rounds. Each later round has a quarter of the trials asked for before,
  // up to round_trials, so that it knows four fifths of all results. None: all rounds have
  // round_trials.
  std::optional<uint32_t> first_round_trials = {};
  // Trials of an opening round of each task, before all other rounds. None: there is no such round.
  std::optional<uint32_t> opening_trials = {};
  // A task is dead after so many of its trials without improvement. None: never.
  std::optional<uint32_t> task_early_stopping = {};
  // The job ends after so many trials without an improvement of any task, once every task that is
  // not dead has a result. None: never.
  std::optional<uint32_t> early_stopping = {};
  // A task is dead after so many trials that all failed.
  uint32_t give_up_trials = 256;
  uint64_t seed = 0;  // for choices among equals
};

class TaskScheduler {
 public:
  static constexpr double kNoResult_s = 1e10;

  TaskScheduler(std::vector<ScheduledTask> tasks, TaskSchedulerOptions options);

  // Announces that about so many trials will be measured from now on. First rounds are cut to each
  // task's share of them.
  void ExpectTrials(double trials) { expected_trials_ = trials; }

  // Adds results of an earlier run, in the order of their trials; none: failed. Call before the
  // first round. The history is the same as if the results had come in rounds, and each task knows
  // what tasks with the same sums have found.
  void Restore(int task, std::span<const std::optional<double>> costs_s);

  // Returns the task of the next round: first each task once, in order, and then by the strategy.
  // None if the job is over, if all tasks are dead or `in_search`, or if the others can't improve
  // the objective. `in_search`: tasks whose candidates are being found, which get no other round
  // meanwhile.
  std::optional<int> Next(std::span<const int> in_search = {});
  // Returns the ending if further results are of no use, including those on their way. None: they
  // are of use.
  std::optional<Ending> Over() const;
  uint32_t RoundTrials(int task) const;  // trials of its next round

  void BeginRound(int task);
  // Adds a result; none: failed. Returns true if it is the task's best so far.
  bool AddResult(int task, std::optional<double> cost_s);
  // Notes that all trials of the task's oldest open round are measured.
  void EndRound(int task);
  // Notes that the task has no candidates left.
  void MarkExhausted(int task);

  // Holds the task, or lets it go. Open rounds go on.
  void Hold(int task, bool held) { tasks_[task].held = held; }
  // Adds a cost that another search has measured. It counts in the objective, and is no trial.
  void AddKnown(int task, double cost_s);

  struct Gradient {
    double chain = 0, backward = 0, forward = 0, expected_gain = 0, gradient = 0;
  };
  Gradient GradientOf(int task) const;

  // Tells whether the task gets no rounds. Only a held task may get some later.
  bool dead(int task) const {
    return tasks_[task].exhausted || tasks_[task].held || Stopped(tasks_[task]);
  }
  bool held(int task) const { return tasks_[task].held; }
  bool exhausted(int task) const { return tasks_[task].exhausted; }
  // Tells whether the task's last trials brought nothing, so that more of its trials are not
  // wanted.
  bool stopped(int task) const { return Stopped(tasks_[task]); }
  double latency_s(int task) const { return tasks_[task].best_s; }  // kNoResult_s: none
  uint32_t trials(int task) const { return tasks_[task].trials; }   // with a result, failed or not
  int rounds(int task) const { return tasks_[task].begun; }
  const std::vector<double>& history_s(int task) const { return tasks_[task].history_s; }
  double weight(int task) const { return tasks_[task].facts.weight; }
  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  // Returns the fastest of the task and its alternatives.
  int fastest(int task) const;

  // Returns the objective, or none while a group has no result.
  std::optional<double> Score() const;
  // Returns the objective with estimates for groups without a result: the predictions of their
  // tasks, scaled by the ratio of measured times to predictions in the other tasks. None if a group
  // without a result has no prediction.
  struct Expected {
    double value = 0;
    int estimated = 0;  // number of groups
    int groups = 0;
  };
  std::optional<Expected> ExpectedScore() const;

 private:
  struct TaskState {
    ScheduledTask facts;
    int group = 0;
    std::optional<int> peers;  // number of its list in peers_; none: it has no peers
    std::optional<int> sums;   // number of its list in equal_sums_; none: they are not known
    int begun = 0;             // number of rounds
    uint32_t asked = 0;        // trials of these rounds
    double best_s = kNoResult_s;
    // The smallest latency of others with the same sums when its last round began.
    double told_s = kNoResult_s;
    uint32_t trials = 0;
    uint32_t best_trials = 0;       // value of `trials` when the best came
    std::vector<double> history_s;  // best_s after each round that ended
    bool exhausted = false;
    bool held = false;
  };

  // Notes a cost of the task. Returns true if it is the best so far.
  bool Improve(TaskState& state, double cost_s);
  bool Stopped(const TaskState& task) const;
  bool Awaited(const TaskState& task) const;
  bool IsPruned(int task) const;
  bool IsRepresented(int task) const;
  bool WaitsForEqualSums(int task) const;
  double RivalLatency(int task) const;
  double LatencyOfEqualSums(int task) const;
  std::optional<double> FollowedLatency(int task) const;
  std::optional<int> NextFollower() const;
  bool IsFarSlowerInOpening(int task) const;
  bool IsRivalWellMeasured(int task) const;
  std::optional<int> NextMandatoryTask(std::span<const int> in_search) const;
  bool IsOpened(int task) const;
  std::optional<int> HeaviestUnopened() const;
  double EstimateOf(int task) const;  // weighted
  std::span<const int> Members(int task) const;
  std::span<const int> Peers(int task) const;
  std::span<const int> EqualSums(int task) const;
  double BestSpeed(std::span<const int> peers) const;
  double Chain(int task) const;
  double Backward(const TaskState& task) const;
  double Forward(int task) const;
  double ExpectedGain(int task, const Gradient& of) const;
  double CostOfRound(int task) const;
  std::optional<int> ByGradient(std::span<const int> in_search);
  std::optional<int> InTurn(std::span<const int> in_search) const;
  void LeaveGroupIfMuchSlower(int task);

  const TaskSchedulerOptions options_;
  Objective objective_;
  Rng rng_;
  std::vector<TaskState> tasks_;
  // Lists of tasks in ascending order: of each group, of each similarity tag, and of equal sums.
  std::vector<std::vector<int>> members_, peers_, equal_sums_;
  std::vector<double> latencies_s_;  // one for each group
  // Slopes of the objective at the latencies; empty: not asked for yet.
  mutable std::vector<double> slopes_;
  uint32_t trials_ = 0;           // trials of all tasks
  uint32_t improved_trials_ = 0;  // value of trials_ when a task last improved
  double expected_trials_ = std::numeric_limits<double>::infinity();
};

}  // namespace kiln::search
