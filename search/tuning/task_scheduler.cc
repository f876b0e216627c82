#include "search/tuning/task_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace kiln::search {
namespace {

constexpr double kAlone = 1e30;
// An alternative that is slower by this factor after its first round was never the fastest in the
// end.
constexpr double kFarSlower = 1.4;
// A round has one trial for each so many that were asked for before.
constexpr uint32_t kShareOfKnown = 4;
// If time is short, first rounds are cut: to one of kShareOfExpected trials of each task, but not
// below kMinRound.
constexpr uint32_t kMinRound = 4;
constexpr double kShareOfExpected = 2;
// The round after the opening is short, so that many tasks gain early.
constexpr uint32_t kSecondRound = 6;
// Trials of a round that takes over what another task has found.
constexpr uint32_t kFollowingRound = 2;
// A task follows another one that is faster by this factor. A smaller difference is found in the
// task's own rounds, too.
constexpr double kFollowedSpeed = 1.05;
// The second round finds most of the possible gain, so it counts as so many rounds.
constexpr int kRoundsInSecond = 3;
// So many trials of an alternative, its opening and its second round, tell how fast it is.
constexpr uint32_t kTellingTrials = 7;
// A task that is slower by kFarSlower by its opening waits until the faster one has had so many
// trials. A task that is slower still waits for longer in proportion, but not beyond kMaxPatience.
constexpr uint32_t kRivalTrials = 24;
constexpr double kMaxPatience = 4;
// A task leaves its peers if it has had so many more rounds than the others and is still slow.
constexpr int kRoundsAhead = 5;
// Tasks of about one size differ by at most this factor.
constexpr double kSizeBase = 1.618;

bool Contains(std::span<const int> tasks, int task) {
  return std::ranges::find(tasks, task) != tasks.end();
}

// Lists the tasks with the same key. Tasks with the key "" are in no list.
class KeyedLists {
 public:
  explicit KeyedLists(std::vector<std::vector<int>>& lists) : lists_(lists) {}

  // Returns the number of the list, or none.
  std::optional<int> Add(const std::string& key, int task) {
    if (key.empty()) return std::nullopt;
    const auto [at, is_new] = numbers_.emplace(key, static_cast<int>(lists_.size()));
    if (is_new) lists_.emplace_back();
    lists_[at->second].push_back(task);
    return at->second;
  }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::vector<std::vector<int>>& lists_;
};

}  // namespace

std::vector<int> VariantGroupsOf(std::span<const ScheduledTask> tasks) {
  std::vector<int> groups;
  int next = 0;
  for (const ScheduledTask& task : tasks) {
    groups.push_back(task.alternative_of.has_value() ? groups[*task.alternative_of] : next++);
  }
  return groups;
}

std::string SimilarityTag(std::string_view tags, double flop_count) {
  if (tags.empty()) return "";
  const double size = std::log(std::max(flop_count, 0.0) + 1) / std::log(kSizeBase);
  return fmt::format("{}{}", tags, static_cast<int>(size));
}

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks, TaskSchedulerOptions options)
    : options_(std::move(options)), objective_(options_.objective), rng_(options_.seed) {
  const std::vector<int> groups = VariantGroupsOf(tasks);
  std::vector<VariantGroup> weights;
  KeyedLists peers(peers_), equal_sums(equal_sums_);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int number = static_cast<int>(i);
    if (!tasks[i].alternative_of.has_value()) weights.push_back({.weight = tasks[i].weight});
    members_.resize(weights.size());
    members_[groups[i]].push_back(number);
    TaskState state;
    state.group = groups[i];
    state.peers = peers.Add(tasks[i].similarity_tag, number);
    state.sums = equal_sums.Add(tasks[i].sums, number);
    state.facts = std::move(tasks[i]);
    tasks_.push_back(std::move(state));
  }
  latencies_s_.resize(weights.size(), kNoResult_s);
  if (objective_.value == nullptr) {
    objective_ = MakeObjective(ObjectiveKind::kWeightedSum, std::move(weights));
  }
}

// ---- results --------------------------------------------------------------------------------

void TaskScheduler::Restore(int task, std::span<const std::optional<double>> costs_s) {
  while (!costs_s.empty()) {
    const size_t round = std::min<size_t>(RoundTrials(task), costs_s.size());
    BeginRound(task);
    for (const std::optional<double>& cost_s : costs_s.first(round)) AddResult(task, cost_s);
    EndRound(task);
    costs_s = costs_s.subspan(round);
  }
  if (tasks_[task].begun <= 1) return;
  // Tasks that were restored before have been told of these results by the earlier run.
  for (const int i : EqualSums(task)) {
    if (i != task) tasks_[i].told_s = std::min(tasks_[i].told_s, tasks_[task].best_s);
  }
}

uint32_t TaskScheduler::RoundTrials(int task) const {
  if (tasks_[task].begun == 0 && options_.opening_trials)
    return std::max(1u, std::min(*options_.opening_trials, options_.round_trials));
  if (!options_.first_round_trials) return std::max(1u, options_.round_trials);
  if (FollowedLatency(task).has_value())
    return std::clamp(options_.round_trials, 1u, kFollowingRound);
  uint32_t first = *options_.first_round_trials;
  if (options_.opening_trials && tasks_[task].begun == 1) first = std::min(first, kSecondRound);
  const double each = expected_trials_ / (kShareOfExpected * num_tasks());
  if (each < first) first = std::min(first, std::max(kMinRound, static_cast<uint32_t>(each)));
  const uint32_t known = std::max(first, tasks_[task].asked / kShareOfKnown);
  return std::clamp(options_.round_trials, 1u, known);
}

void TaskScheduler::BeginRound(int task) {
  tasks_[task].asked += RoundTrials(task);
  ++tasks_[task].begun;
  tasks_[task].told_s = LatencyOfEqualSums(task);
}

bool TaskScheduler::AddResult(int task, std::optional<double> cost_s) {
  TaskState& state = tasks_[task];
  ++state.trials;
  ++trials_;
  return cost_s.has_value() && Improve(state, *cost_s);
}

void TaskScheduler::AddKnown(int task, double cost_s) { Improve(tasks_[task], cost_s); }

bool TaskScheduler::Improve(TaskState& state, double cost_s) {
  if (cost_s >= state.best_s) return false;
  state.best_s = cost_s;
  if (cost_s < latencies_s_[state.group]) {
    latencies_s_[state.group] = cost_s;
    slopes_.clear();
  }
  state.best_trials = state.trials;
  improved_trials_ = trials_;
  return true;
}

void TaskScheduler::EndRound(int task) {
  tasks_[task].history_s.push_back(tasks_[task].best_s);
  LeaveGroupIfMuchSlower(task);
}

void TaskScheduler::MarkExhausted(int task) { tasks_[task].exhausted = true; }

bool TaskScheduler::Stopped(const TaskState& task) const {
  if (task.best_s >= kNoResult_s) {
    return task.trials >= options_.give_up_trials;
  }
  return options_.task_early_stopping.has_value() &&
         task.trials - task.best_trials > *options_.task_early_stopping;
}

// Tells whether the task's first results are on their way.
bool TaskScheduler::Awaited(const TaskState& task) const {
  return task.best_s >= kNoResult_s && task.begun > static_cast<int>(task.history_s.size());
}

std::optional<Ending> TaskScheduler::Over() const {
  bool useful = false;
  for (int i = 0; i < num_tasks() && !useful; ++i) useful = Chain(i) > 0;
  if (!useful) return Ending::kTargetReached;
  if (!options_.early_stopping) return std::nullopt;
  for (int i = 0; i < num_tasks(); ++i) {
    if (latencies_s_[tasks_[i].group] >= kNoResult_s && !dead(i)) return std::nullopt;
  }
  if (trials_ - improved_trials_ < *options_.early_stopping) return std::nullopt;
  return Ending::kNoImprovement;
}

// ---- the objective --------------------------------------------------------------------------

int TaskScheduler::fastest(int task) const {
  int fastest = task;
  for (const int i : Members(task)) {
    if (tasks_[i].best_s < tasks_[fastest].best_s) fastest = i;
  }
  return fastest;
}

std::optional<double> TaskScheduler::Score() const {
  for (const double latency_s : latencies_s_) {
    if (latency_s >= kNoResult_s) return std::nullopt;
  }
  return objective_.value(latencies_s_);
}

std::optional<TaskScheduler::Expected> TaskScheduler::ExpectedScore() const {
  std::vector<double> ratios;
  std::vector<double> predicted_s(latencies_s_.size(), kNoResult_s);
  for (const TaskState& task : tasks_) {
    if (task.facts.estimate_s <= 0) continue;
    predicted_s[task.group] = std::min(predicted_s[task.group], task.facts.estimate_s);
    if (task.best_s < kNoResult_s) ratios.push_back(task.best_s / task.facts.estimate_s);
  }
  std::ranges::sort(ratios);
  const double ratio = ratios.empty() ? 1 : ratios[ratios.size() / 2];
  Expected expected;
  expected.groups = static_cast<int>(latencies_s_.size());
  std::vector<double> latencies_s = latencies_s_;
  for (size_t i = 0; i < latencies_s.size(); ++i) {
    if (latencies_s[i] < kNoResult_s) continue;
    if (predicted_s[i] >= kNoResult_s) return std::nullopt;
    latencies_s[i] = ratio * predicted_s[i];
    ++expected.estimated;
  }
  expected.value = objective_.value(latencies_s);
  return expected;
}

double TaskScheduler::Chain(int task) const {
  if (slopes_.empty()) slopes_ = objective_.slopes(latencies_s_);
  return slopes_[tasks_[task].group];
}

// ---- the gradient ---------------------------------------------------------------------------

// Returns the task and its alternatives.
std::span<const int> TaskScheduler::Members(int task) const { return members_[tasks_[task].group]; }

// Returns the task and its peers, or nothing if it has no peers.
std::span<const int> TaskScheduler::Peers(int task) const {
  const std::optional<int> peers = tasks_[task].peers;
  return peers.has_value() ? std::span<const int>(peers_[*peers]) : std::span<const int>();
}

// Returns the task and the others with the same sums, or nothing if its sums are not known.
std::span<const int> TaskScheduler::EqualSums(int task) const {
  const std::optional<int> sums = tasks_[task].sums;
  return sums.has_value() ? std::span<const int>(equal_sums_[*sums]) : std::span<const int>();
}

double TaskScheduler::BestSpeed(std::span<const int> peers) const {
  double best = 0;
  for (const int i : peers) best = std::max(best, tasks_[i].facts.flop_count / tasks_[i].best_s);
  return best;
}

double TaskScheduler::Backward(const TaskState& task) const {
  const int last = static_cast<int>(task.history_s.size()) - 1;
  const int before = last - options_.backward_window;
  // The gain of the first round after the opening says nothing about the next rounds.
  if (before < (options_.opening_trials ? 1 : 0)) return 0;
  return (task.history_s[last] - task.history_s[before]) / options_.backward_window;
}

double TaskScheduler::Forward(int task) const {
  const TaskState& state = tasks_[task];
  const int more = options_.opening_trials && state.begun > 1 ? kRoundsInSecond - 1 : 0;
  const double optimist_s = state.best_s - state.best_s / (std::max(1, state.begun) + more);
  double similar_s = options_.beta * kAlone;
  const std::span<const int> peers = Peers(task);
  const double speed = BestSpeed(peers);
  if (peers.size() > 1 && speed > 0) {
    similar_s = options_.beta * state.facts.flop_count / speed;
  }
  return std::min(optimist_s, similar_s) - state.best_s;
}

double TaskScheduler::ExpectedGain(int task, const Gradient& of) const {
  const double best_s = latencies_s_[tasks_[task].group];
  const double gain_s = options_.alpha * of.backward + (1 - options_.alpha) * of.forward;
  const double lag_s = latency_s(task) - best_s;
  // The part for catching up may be larger than the gain. Then the variant is worth nothing.
  return std::min(gain_s * best_s / latency_s(task) + lag_s / options_.catch_up_rounds, 0.0);
}

TaskScheduler::Gradient TaskScheduler::GradientOf(int task) const {
  Gradient g;
  if (dead(task)) return g;
  g.chain = Chain(task);
  g.backward = Backward(tasks_[task]);
  g.forward = Forward(task);
  g.expected_gain = ExpectedGain(task, g);
  g.gradient = g.chain * g.expected_gain;
  return g;
}

void TaskScheduler::LeaveGroupIfMuchSlower(int task) {
  TaskState& state = tasks_[task];
  const std::span<const int> peers = Peers(task);
  if (peers.size() < 2) return;
  int others = 0;
  for (const int i : peers) {
    if (i != task) others = std::max(others, tasks_[i].begun);
  }
  const double speed = state.facts.flop_count / state.best_s;
  if (speed < BestSpeed(peers) / options_.beta && state.begun > kRoundsAhead + others) {
    std::erase(peers_[*state.peers], task);
    state.peers.reset();
  }
}

// ---- the choice -----------------------------------------------------------------------------

// Tells whether the alternative was far slower in another task with the same sums.
bool TaskScheduler::IsPruned(int task) const {
  const ScheduledTask& facts = tasks_[task].facts;
  if (options_.strategy != TaskStrategy::kGradient) return false;
  if (!facts.alternative_of.has_value()) return false;
  return std::ranges::any_of(EqualSums(task), [&](int i) {
    const TaskState& other = tasks_[i];
    return other.facts.alternative_of.has_value() &&
           (!options_.opening_trials || other.trials >= kTellingTrials) &&
           other.best_s < kNoResult_s && !other.history_s.empty() &&
           other.best_s > kFarSlower * RivalLatency(i);
  });
}

// Returns the latency of the task's group, or the smaller latency of a task with the same sums as a
// rival in the group: the rival will soon be as fast.
double TaskScheduler::RivalLatency(int task) const {
  double latency_s = latencies_s_[tasks_[task].group];
  for (const int rival : Members(task)) {
    if (rival == task) continue;
    for (const int alike : EqualSums(rival)) latency_s = std::min(latency_s, tasks_[alike].best_s);
  }
  return latency_s;
}

// Tells whether another alternative with the same sums was begun in its place and has not told
// enough yet.
bool TaskScheduler::IsRepresented(int task) const {
  const ScheduledTask& facts = tasks_[task].facts;
  if (options_.strategy != TaskStrategy::kGradient || !options_.opening_trials) return false;
  if (!facts.alternative_of.has_value()) return false;
  for (const int i : EqualSums(task)) {
    const TaskState& other = tasks_[i];
    const bool is_alternative = other.facts.alternative_of.has_value();
    if (i == task || !is_alternative || other.begun == 0 || dead(i)) continue;
    if (other.trials < kTellingTrials) return true;
  }
  return false;
}

// Tells whether the task has had only its opening while a task with the same sums is in its second
// round.
bool TaskScheduler::WaitsForEqualSums(int task) const {
  if (!options_.opening_trials || IsOpened(task)) return false;
  return std::ranges::any_of(EqualSums(task), [&](int i) {
    const bool is_in_second = tasks_[i].begun > 1 && tasks_[i].history_s.size() < 2;
    return i != task && is_in_second && !dead(i);
  });
}

// Returns the smallest latency of other tasks with the same sums that were tuned.
double TaskScheduler::LatencyOfEqualSums(int task) const {
  double latency_s = kNoResult_s;
  for (const int i : EqualSums(task)) {
    if (i != task && tasks_[i].begun > 1) latency_s = std::min(latency_s, tasks_[i].best_s);
  }
  return latency_s;
}

// Returns the latency of a task with the same sums that has become faster than this one since this
// one's last round began; none if there is no such task.
std::optional<double> TaskScheduler::FollowedLatency(int task) const {
  const TaskState& state = tasks_[task];
  // Tasks that take turns have whole rounds.
  if (options_.strategy != TaskStrategy::kGradient) return std::nullopt;
  if (!options_.opening_trials || state.begun == 0) return std::nullopt;
  const double latency_s = LatencyOfEqualSums(task);
  const bool is_behind = kFollowedSpeed * latency_s < std::min(state.best_s, state.told_s);
  return is_behind ? std::optional(latency_s) : std::nullopt;
}

// Returns the task that gains most by what another task with the same sums has found.
std::optional<int> TaskScheduler::NextFollower() const {
  std::optional<int> next;
  double most_s = 0;
  for (int i = 0; i < num_tasks(); ++i) {
    if (dead(i) || Awaited(tasks_[i])) continue;
    const std::optional<double> latency_s = FollowedLatency(i);
    if (!latency_s.has_value()) continue;
    const bool is_alternative = tasks_[i].facts.alternative_of.has_value();
    if (is_alternative && *latency_s > kFarSlower * RivalLatency(i)) continue;
    const double gain_s = Chain(i) * (tasks_[i].best_s - *latency_s);
    if (gain_s <= most_s) continue;
    most_s = gain_s;
    next = i;
  }
  return next;
}

// Tells whether the task is far slower than its rivals by its opening alone.
bool TaskScheduler::IsFarSlowerInOpening(int task) const {
  const TaskState& state = tasks_[task];
  return options_.opening_trials.has_value() && state.begun == 1 && state.best_s < kNoResult_s &&
         state.best_s > kFarSlower * RivalLatency(task);
}

bool TaskScheduler::IsRivalWellMeasured(int task) const {
  const int rival = fastest(task);
  const double lag = tasks_[task].best_s / RivalLatency(task);
  const double patience = std::clamp(lag / kFarSlower, 1.0, kMaxPatience);
  return tasks_[rival].trials >= patience * kRivalTrials || dead(rival);
}

// Returns a task that is far slower by its opening alone and whose rival is well known. The
// gradient of such a task may be 0.
std::optional<int> TaskScheduler::NextMandatoryTask(std::span<const int> in_search) const {
  for (int i = 0; i < num_tasks(); ++i) {
    if (Contains(in_search, i) || dead(i) || Chain(i) <= 0 || !IsFarSlowerInOpening(i) ||
        IsPruned(i))
      continue;
    if (IsRivalWellMeasured(i) && !WaitsForEqualSums(i)) return i;
  }
  return std::nullopt;
}

// Tells whether the task has had more than its opening round.
bool TaskScheduler::IsOpened(int task) const {
  return tasks_[task].begun > (options_.opening_trials.has_value() ? 1 : 0);
}

double TaskScheduler::EstimateOf(int task) const {
  const TaskState& state = tasks_[task];
  const double seconds = state.facts.estimate_s > 0 ? state.facts.estimate_s : 0;
  return seconds * state.facts.weight;
}

// Returns the heaviest task that has had no round. Alternatives come after all other tasks, and one
// alternative stands for all alternatives with the same sums.
std::optional<int> TaskScheduler::HeaviestUnopened() const {
  std::optional<int> heaviest;
  const auto rank = [&](int task) {
    return std::pair(!tasks_[task].facts.alternative_of.has_value(), EstimateOf(task));
  };
  for (int i = 0; i < num_tasks(); ++i) {
    if (tasks_[i].begun > 0 || dead(i) || IsPruned(i) || IsRepresented(i)) continue;
    if (!heaviest.has_value() || rank(i) > rank(*heaviest)) heaviest = i;
  }
  return heaviest;
}

std::optional<int> TaskScheduler::Next(std::span<const int> in_search) {
  if (Over().has_value()) return std::nullopt;
  if (options_.opening_trials) {
    const std::optional<int> unopened = HeaviestUnopened();
    if (unopened.has_value()) return unopened;
  }
  for (int i = 0; i < num_tasks(); ++i) {
    if (tasks_[i].begun == 0 && !dead(i) && !IsPruned(i) && !IsRepresented(i)) return i;
  }
  if (options_.strategy == TaskStrategy::kGradient) {
    if (const std::optional<int> follower = NextFollower()) return follower;
    if (const std::optional<int> due = NextMandatoryTask(in_search)) return due;
  }
  return options_.strategy == TaskStrategy::kRoundRobin ? InTurn(in_search) : ByGradient(in_search);
}

// Returns the first of the tasks with the fewest rounds.
std::optional<int> TaskScheduler::InTurn(std::span<const int> in_search) const {
  std::optional<int> next;
  for (int i = 0; i < num_tasks(); ++i) {
    if (Contains(in_search, i) || dead(i)) continue;
    if (!next.has_value() || tasks_[i].begun < tasks_[*next].begun) next = i;
  }
  return next;
}

// Returns what the task's next round costs, in trials. After an opening, rounds of few trials
// compete with rounds of many. Rounds beyond first_round_trials count alike: they grow with what
// was asked for before, and so does what they find.
double TaskScheduler::CostOfRound(int task) const {
  if (!options_.opening_trials || !options_.first_round_trials) return 1;
  return std::min(RoundTrials(task), std::max(1u, *options_.first_round_trials));
}

std::optional<int> TaskScheduler::ByGradient(std::span<const int> in_search) {
  std::vector<int> alive, awaited;
  for (int i = 0; i < num_tasks(); ++i) {
    // A task that can't improve the objective is left alone, however much it may improve itself.
    if (Contains(in_search, i) || dead(i) || Chain(i) <= 0) continue;
    const bool is_alternative = tasks_[i].facts.alternative_of.has_value();
    const bool waits = Awaited(tasks_[i]) || WaitsForEqualSums(i) || IsRepresented(i) ||
                       (!IsOpened(i) && IsPruned(i)) ||
                       (is_alternative && IsFarSlowerInOpening(i) && !IsRivalWellMeasured(i));
    (waits ? awaited : alive).push_back(i);
  }
  if (alive.empty()) alive = std::move(awaited);
  if (alive.empty()) return std::nullopt;
  std::vector<double> gradients;
  for (const int i : alive) gradients.push_back(GradientOf(i).gradient / CostOfRound(i));
  const auto [least, most] = std::minmax_element(gradients.begin(), gradients.end());
  if (*least == *most) return PickFrom(rng_, alive);
  return alive[least - gradients.begin()];
}

}  // namespace kiln::search
