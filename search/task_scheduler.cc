#include "search/task_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln::search {
namespace {

// The step of the objective's derivative: absolute for long latencies, a part of short ones.
constexpr double kStep_s = 1e-4;
constexpr double kStepPart = 0.01;
constexpr double kAlone = 1e30;
// A task leaves its group when it was tuned so many rounds more than the others and still is slow.
constexpr int kRoundsAhead = 5;
// Of tasks of about one size, one is at most this many times larger.
constexpr double kSizeBase = 1.618;

}  // namespace

Objective LatencyTarget(std::vector<double> weights, double target_s) {
  return [weights = std::move(weights), target_s](std::span<const double> latencies_s) {
    double sum = 0;
    for (size_t i = 0; i < latencies_s.size(); ++i) sum += weights[i] * latencies_s[i];
    return std::max(sum, target_s);
  };
}

std::string SimilarityTag(std::string_view tags, double flop_count) {
  if (tags.empty()) return "";
  const double size = std::log(std::max(flop_count, 0.0) + 1) / std::log(kSizeBase);
  return fmt::format("{}{}", tags, static_cast<int>(size));
}

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks, TaskSchedulerOptions options)
    : options_(std::move(options)), rng_(options_.seed) {
  for (ScheduledTask& task : tasks) {
    TaskState state;
    state.group = task.similarity_tag;
    state.facts = std::move(task);
    tasks_.push_back(std::move(state));
  }
}

// ---- results --------------------------------------------------------------------------------

void TaskScheduler::Restore(int task, std::span<const double> costs_s) {
  while (!costs_s.empty()) {
    const size_t round = std::min<size_t>(RoundTrials(task), costs_s.size());
    BeginRound(task);
    for (const double cost_s : costs_s.first(round)) AddResult(task, cost_s);
    EndRound(task);
    costs_s = costs_s.subspan(round);
  }
}

uint32_t TaskScheduler::RoundTrials(int task) const {
  if (options_.first_round_trials == 0) return std::max(1u, options_.round_trials);
  const int doublings = std::min(tasks_[task].begun, 20);
  const uint64_t trials = uint64_t{options_.first_round_trials} << doublings;
  return static_cast<uint32_t>(std::clamp<uint64_t>(options_.round_trials, 1, trials));
}

void TaskScheduler::BeginRound(int task) { ++tasks_[task].begun; }

bool TaskScheduler::AddResult(int task, double cost_s) {
  TaskState& state = tasks_[task];
  ++state.trials;
  ++trials_;
  const bool better = cost_s > 0 && cost_s < state.best_s;
  if (better) {
    state.best_s = cost_s;
    state.best_trials = state.trials;
    improved_trials_ = trials_;
  }
  return better;
}

void TaskScheduler::EndRound(int task) {
  tasks_[task].history_s.push_back(tasks_[task].best_s);
  LeaveGroupIfFarBehind(task);
}

void TaskScheduler::MarkExhausted(int task) { tasks_[task].exhausted = true; }

bool TaskScheduler::Stopped(const TaskState& task) const {
  if (task.best_s >= kNoResult_s) {
    return options_.hopeless_trials > 0 && task.trials >= options_.hopeless_trials;
  }
  return options_.task_early_stopping > 0 &&
         task.trials - task.best_trials > options_.task_early_stopping;
}

// Its first results are on their way.
bool TaskScheduler::Awaited(const TaskState& task) const {
  return task.best_s >= kNoResult_s && task.begun > static_cast<int>(task.history_s.size());
}

bool TaskScheduler::Over() const {
  if (options_.early_stopping == 0) return false;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].best_s >= kNoResult_s && !dead(static_cast<int>(i))) return false;
  }
  return trials_ - improved_trials_ >= options_.early_stopping;
}

// ---- the objective --------------------------------------------------------------------------

std::vector<double> TaskScheduler::Latencies() const {
  std::vector<double> latencies_s;
  for (const TaskState& task : tasks_) latencies_s.push_back(task.best_s);
  return latencies_s;
}

double TaskScheduler::Evaluate(std::span<const double> latencies_s) const {
  if (options_.objective != nullptr) return options_.objective(latencies_s);
  double sum = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) sum += tasks_[i].facts.weight * latencies_s[i];
  return sum;
}

std::optional<double> TaskScheduler::Score() const {
  const std::vector<double> latencies_s = Latencies();
  for (const double latency_s : latencies_s) {
    if (latency_s >= kNoResult_s) return std::nullopt;
  }
  return Evaluate(latencies_s);
}

double TaskScheduler::Chain(int task) const {
  if (options_.objective == nullptr) return tasks_[task].facts.weight;
  std::vector<double> latencies_s = Latencies();
  const double now = Evaluate(latencies_s);
  const double step_s = std::min(kStep_s, kStepPart * latencies_s[task]);
  latencies_s[task] -= step_s;
  return (now - Evaluate(latencies_s)) / step_s;
}

// ---- the gradient ---------------------------------------------------------------------------

// The task's group with itself; only itself when it has none.
std::vector<int> TaskScheduler::Group(int task) const {
  std::vector<int> group;
  for (int i = 0; i < num_tasks(); ++i) {
    const bool alike = !tasks_[task].group.empty() && tasks_[i].group == tasks_[task].group;
    if (alike || i == task) group.push_back(i);
  }
  return group;
}

double TaskScheduler::BestSpeed(std::span<const int> group) const {
  double best = 0;
  for (const int i : group) best = std::max(best, tasks_[i].facts.flop_count / tasks_[i].best_s);
  return best;
}

double TaskScheduler::Backward(const TaskState& task) const {
  const int last = static_cast<int>(task.history_s.size()) - 1;
  const int before = last - options_.backward_window;
  if (before < 0) return 0;
  return (task.history_s[last] - task.history_s[before]) / options_.backward_window;
}

double TaskScheduler::Forward(int task) const {
  const TaskState& state = tasks_[task];
  const double optimist_s = state.best_s - state.best_s / std::max(1, state.begun);
  double similar_s = options_.beta * kAlone;
  const std::vector<int> group = Group(task);
  const double speed = BestSpeed(group);
  if (group.size() > 1 && speed > 0) {
    similar_s = options_.beta * state.facts.flop_count / speed;
  }
  return std::min(optimist_s, similar_s) - state.best_s;
}

TaskScheduler::Gradient TaskScheduler::GradientOf(int task) const {
  Gradient g;
  if (dead(task)) return g;
  g.chain = Chain(task);
  g.backward = Backward(tasks_[task]);
  g.forward = Forward(task);
  g.gradient = g.chain * (options_.alpha * g.backward + (1 - options_.alpha) * g.forward);
  // The optimist's gain is never negative; beta below 1 can make the similar one so.
  g.gradient = std::min(g.gradient, 0.0);
  return g;
}

void TaskScheduler::LeaveGroupIfFarBehind(int task) {
  TaskState& state = tasks_[task];
  const std::vector<int> group = Group(task);
  if (group.size() < 2) return;
  int others = 0;
  for (const int i : group) {
    if (i != task) others = std::max(others, tasks_[i].begun);
  }
  const double speed = state.facts.flop_count / state.best_s;
  if (speed < BestSpeed(group) / options_.beta && state.begun > kRoundsAhead + others) {
    state.group.clear();
  }
}

// ---- the choice -----------------------------------------------------------------------------

std::optional<int> TaskScheduler::Next() {
  if (Over()) return std::nullopt;
  for (int i = 0; i < num_tasks(); ++i) {
    if (tasks_[i].begun == 0 && !dead(i)) return i;
  }
  return options_.strategy == TaskStrategy::kRoundRobin ? InTurn() : ByGradient();
}

// The one with the fewest rounds; the first of those.
std::optional<int> TaskScheduler::InTurn() const {
  std::optional<int> next;
  for (int i = 0; i < num_tasks(); ++i) {
    if (!dead(i) && (!next.has_value() || tasks_[i].begun < tasks_[*next].begun)) next = i;
  }
  return next;
}

std::optional<int> TaskScheduler::ByGradient() {
  std::vector<int> alive, awaited;
  for (int i = 0; i < num_tasks(); ++i) {
    if (!dead(i)) (Awaited(tasks_[i]) ? awaited : alive).push_back(i);
  }
  if (alive.empty()) alive = std::move(awaited);
  if (alive.empty()) return std::nullopt;
  std::vector<double> gradients;
  for (const int i : alive) gradients.push_back(GradientOf(i).gradient);
  const auto [least, most] = std::minmax_element(gradients.begin(), gradients.end());
  if (*least == *most) {
    // No task can improve the objective: a target was reached.
    if (*least == 0 && options_.objective != nullptr && Score().has_value()) return std::nullopt;
    return PickFrom(rng_, alive);
  }
  return alive[least - gradients.begin()];
}

}  // namespace kiln::search
