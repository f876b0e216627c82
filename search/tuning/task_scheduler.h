// Which task of a job is tuned next: by the gradient of the objective, or in turns.
//
// Pure logic: no policy, no clock, no thread. A round is a number of candidates of one task. The
// owner asks Next for a task, calls BeginRound, and EndRound once all trials of the round have
// results. Rounds may overlap: one that is not over counts for what was spent (t), not yet for what
// was gained (the history). One that is over before the next begins gives the classical rule:
//
//   chain_i    = d objective / d latency of i's group          (the weight, for a weighted sum)
//   backward_i = (h_i[last] - h_i[last - window]) / window     0 while the history is shorter
//   optimist_i = g_i - g_i / t_i                               t rounds gave g: one more gives that
//   similar_i  = beta * C_i / max over its peers of C_j / g_j  what alike tasks have reached
//   forward_i  = min(optimist_i, similar_i) - g_i
//   expected_gain_i = alpha * backward_i + (1 - alpha) * forward_i
//   gradient_i = chain_i * expected_gain_i                     at most 0
//
// and the smallest gradient is next; by chance when all are equal. g is the best latency so far, C
// the FLOPs, h the best latency after each round. A task's peers have the same similarity tag; one
// that stays far behind the others has no peers any more.
//
// Variants. Tasks may compute the same by different algorithms; the fastest one will be used. Such
// tasks form a group. Its latency is the smallest of theirs, and the objective is one of groups. To
// the plain derivative a variant that is not the fastest is worth nothing. It is worth what it
// takes to become the fastest: with g the smallest latency of the group,
//
//   expected_gain_i = g / g_i * (alpha * backward_i + (1 - alpha) * forward_i) + (g_i - g) / catch_up
//
// What it gains each round, in proportion to its latency, less what it must make up for in each of
// the next `catch_up_rounds` to draw level; at most 0. For the fastest one this is the rule above.
// One that stays three times slower has a second round after seven of the fastest's, one that stays
// a third slower eight at most; one that draws near has more and more. All have their first round
// in any case, but for alternatives that were far slower in a task with the same sums; without a
// result after that an alternative gets no more while another has one, except when nothing else can
// be tuned.
//
// Opening. With opening_trials each task has a round of so few first, the heaviest by estimates
// first, and alternatives after all others: so all have a measured schedule before any is tuned,
// and what a small budget does not reach is what matters least. From then on the gradient decides,
// but for these, as one trial says little and trials are few:
//
//   * Of tasks with the same sums one has its second round first. The others wait for it, are told
//     what it has found, and have a smaller one.
//   * The second round finds most of what there is to find, so it counts as three (t). Light tasks
//     have theirs before heavy ones have many.
//   * Of alternatives with the same sums one is opened. The others wait until eight trials of it
//     say whether they are hopeless.
//   * An alternative that is far slower than its rival by its opening alone, or than tasks with the
//     same sums as that, waits until the rival has had some rounds. Then it has a second round in
//     any case, and so has who is far slower than its alternative.
//
// A group without a result has the latency 1e10 s, so it comes first, until it is dead; only while
// its rounds are open others are preferred. Latencies in seconds. Cost: O(tasks^2) per round. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "search/tuning/objective.h"

namespace kiln::search {

enum class TaskStrategy { kGradient, kRoundRobin };

// Why a search ended.
enum class Ending {
  kTrialsUsedUp,
  kTargetReached,   // the objective need not be smaller
  kNoImprovement,   // early stopping, of the job or of its last tasks
  kSpaceExhausted,  // no task has candidates left that would be of use
  kTimeUsedUp,
};

struct ScheduledTask {
  double weight = 1;  // of its group: that of the first alternative counts
  double flop_count = 0;
  std::string similarity_tag = {};  // "": alone
  // What it sums up (search/evolution/transfer.h); "": nothing, or not known. Tasks with the same
  // sums are fast in the same ways.
  std::string sums = {};
  // Its untuned time, as a model predicts it; 0: not known.
  double estimate_s = 0;
  // The earlier task whose group it does in another way; none: it has a group of its own.
  std::optional<int> alternative_of = {};
};

// By task: the number of its group. Groups are counted by their first tasks.
std::vector<int> VariantGroupsOf(std::span<const ScheduledTask> tasks);

// Of a DAG's tags and FLOPs: tasks of one kind and about one size. "" when there are no tags.
std::string SimilarityTag(std::string_view tags, double flop_count);

struct TaskSchedulerOptions {
  TaskStrategy strategy = TaskStrategy::kGradient;
  double alpha = 0.2;
  double beta = 2;
  int backward_window = 3;   // rounds
  int catch_up_rounds = 6;   // that an alternative has to become the fastest
  Objective objective = {};  // of groups, in their order; empty: the sum of weight * latency
  uint32_t round_trials = 64;
  // Of a task's first rounds. Later ones have a quarter of the trials asked for before, up to
  // round_trials: each knows four fifths of what there is to know. None: all have round_trials.
  std::optional<uint32_t> first_round_trials = {};
  // The trials of a round of each task before all others. None: there is no such round.
  std::optional<uint32_t> opening_trials = {};
  // Trials of one task without improvement, after which it is dead; none: never.
  std::optional<uint32_t> task_early_stopping = {};
  // Trials of the job without an improvement of any task, once every task that is not dead has a
  // result, after which all is over; none: never.
  std::optional<uint32_t> early_stopping = {};
  // Trials of one task that all failed, after which it is dead.
  uint32_t give_up_trials = 256;
  uint64_t seed = 0;  // of choices among equals
};

class TaskScheduler {
 public:
  static constexpr double kNoResult_s = 1e10;

  TaskScheduler(std::vector<ScheduledTask> tasks, TaskSchedulerOptions options);

  // About so many trials will be measured from now on: first rounds are cut to what that leaves for
  // each task.
  void ExpectTrials(double trials) { expected_trials_ = trials; }

  // Results of an earlier run in the order of their trials; none: failed. Call before the first
  // round. The history is as if they had come in rounds.
  void Restore(int task, std::span<const std::optional<double>> costs_s);

  // The task of the next round: each one once in order, then by the strategy. None: it is over, all
  // tasks are dead, or those that are not can't improve the objective.
  std::optional<int> Next();
  // Further results are of no use, those on their way included; none: they are.
  std::optional<Ending> Over() const;
  uint32_t RoundTrials(int task) const;  // of its next round

  void BeginRound(int task);
  // A result; none: it failed. True: the task's best so far.
  bool AddResult(int task, std::optional<double> cost_s);
  // All of the task's oldest open round is measured.
  void EndRound(int task);
  // Nothing is left to measure.
  void MarkExhausted(int task);

  struct Gradient {
    double chain = 0, backward = 0, forward = 0, expected_gain = 0, gradient = 0;
  };
  Gradient GradientOf(int task) const;

  bool dead(int task) const { return tasks_[task].exhausted || Stopped(tasks_[task]); }
  bool exhausted(int task) const { return tasks_[task].exhausted; }
  // Nothing came of its last trials, so that more of it are not worth having.
  bool stopped(int task) const { return Stopped(tasks_[task]); }
  double latency_s(int task) const { return tasks_[task].best_s; }  // kNoResult_s: none
  uint32_t trials(int task) const { return tasks_[task].trials; }   // with a result, failed or not
  int rounds(int task) const { return tasks_[task].begun; }
  const std::vector<double>& history_s(int task) const { return tasks_[task].history_s; }
  double weight(int task) const { return tasks_[task].facts.weight; }
  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  // The fastest of the task and its alternatives.
  int fastest(int task) const;

  // The objective; none while a group has no result.
  std::optional<double> Score() const;
  // The objective with estimates for groups without a result: what their tasks are predicted to
  // take, in the proportion that the measured ones have to their predictions. None: of one of them
  // nothing is predicted.
  struct Expected {
    double value = 0;
    int estimated = 0;  // groups
    int groups = 0;
  };
  std::optional<Expected> ExpectedScore() const;

 private:
  struct TaskState {
    ScheduledTask facts;
    int group = 0;
    std::string peers;   // "": alone
    int begun = 0;       // rounds
    uint32_t asked = 0;  // trials of these
    double best_s = kNoResult_s;
    uint32_t trials = 0;
    uint32_t best_trials = 0;       // `trials` when the best came
    std::vector<double> history_s;  // best_s after each round that ended
    bool exhausted = false;
  };

  bool Stopped(const TaskState& task) const;
  bool Awaited(const TaskState& task) const;
  bool IsHopeless(int task) const;
  bool IsRepresented(int task) const;
  bool WaitsForEqualSums(int task) const;
  double RivalLatency(const TaskState& task) const;
  bool IsFollower(int task) const;
  bool IsFarSlowerAtFirst(int task) const;
  bool IsRivalWellKnown(int task) const;
  std::optional<int> DueInAnyCase() const;
  bool IsOpened(int task) const;
  std::optional<int> HeaviestUnopened() const;
  double EstimateOf(int task) const;  // weighted
  std::vector<int> Peers(int task) const;
  double BestSpeed(std::span<const int> peers) const;
  double Chain(int task) const;
  double Backward(const TaskState& task) const;
  double Forward(int task) const;
  double ExpectedGain(int task, const Gradient& of) const;
  std::optional<int> ByGradient();
  std::optional<int> InTurn() const;
  void LeaveGroupIfFarBehind(int task);

  const TaskSchedulerOptions options_;
  Objective objective_;
  Rng rng_;
  std::vector<TaskState> tasks_;
  std::vector<double> latencies_s_;  // by group
  uint32_t trials_ = 0;              // of all tasks
  uint32_t improved_trials_ = 0;     // trials_ when a task last improved
  double expected_trials_ = std::numeric_limits<double>::infinity();
};

}  // namespace kiln::search
