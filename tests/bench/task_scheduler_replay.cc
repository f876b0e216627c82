// Replays the trials of jobs through the task scheduler, with the pace of a machine, and prints the
// total latency over time. It compares rules of the task scheduler without a device.
//
//   bazel run //tests/bench:task_scheduler_replay -- job.db other.db --builders 16 --shuffles 20
//
// Each database is of `kiln tune network:X`, its newest job is replayed. The model of a job:
//
//   * The first round of a task is the trial of its heuristic schedule.
//   * Tasks with the same sums share one sequence of costs: their other trials, as they were
//     measured. Each candidate of the search takes the next cost. If a job ended early, the
//     sequences of the first database go on behind its own.
//   * A task takes over results of other tasks with the same sums, as search/policies does: a large
//     share of a round while it has few results and a small one later, at least one. The cost there
//     is the cost here with some noise.
//   * Candidates by chance are left out while a task has few results (kResultsForAllStates).
//   * A build takes as long as it took, `builders` at once. One trial is measured at a time. One
//     search runs at a time, as far ahead as that of a job (search/tuning/pace.h).
//
// --shuffles: the sequences are shuffled in windows of growing length, so that the finds of one job
// do not decide. Seconds are simulated: a job of three minutes takes some milliseconds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/dag/text.h"
#include "search/evolution/transfer.h"
#include "search/policies/sketch_policy.h"
#include "search/space/parameters.h"
#include "search/tuning/pace.h"
#include "search/tuning/task_scheduler.h"
#include "store/sqlite_store.h"

namespace kiln {
namespace {

constexpr double kPlaces_s[] = {5, 7.5, 10, 15, 20, 25, 30, 45, 60, 90, 120, 170};

struct Options {
  std::vector<std::string> databases;
  int builders = 16, shuffles = 0;
  uint32_t round_trials = 64, first_round_trials = 8;
  double search_s = 0.06, search_of_candidate_s = 0.035, begin_s = 0.35, noise = 0.01;
};

struct Cost {
  std::optional<double> cost_s = {};  // none: failed
  double build_s = 0, run_s = 0;
  bool by_chance = false;
};

using Costs = std::map<std::string, std::vector<Cost>>;  // key: the sums, or the task

struct Job {
  std::vector<search::ScheduledTask> tasks;
  std::vector<std::string> keys;
  std::vector<Cost> openings;
  Costs explored;
};

// ---- what a job measured

StatusOr<Job> TasksOf(std::span<const store::TaskRow> rows) {
  Job job;
  for (const store::TaskRow& row : rows) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(row.dag));
    search::ScheduledTask task{.weight = row.weight, .flop_count = row.flop_count};
    task.sums = search::SumsKey(*dag);
    if (row.alternative_of.has_value()) task.alternative_of = static_cast<int>(*row.alternative_of);
    job.keys.push_back(task.sums.empty() ? fmt::format("task {}", row.index) : task.sums);
    job.tasks.push_back(std::move(task));
  }
  job.openings.resize(rows.size());
  return job;
}

Cost CostOf(const store::Record& record) {
  Cost cost{.build_s = record.build_s, .run_s = record.run_s};
  if (record.error == store::kNoError) cost.cost_s = store::MeanCost(record);
  cost.by_chance = record.origin.ends_with(", random");
  return cost;
}

// A task that was never begun has the opening of one with the same sums.
void CompleteOpenings(Job& job) {
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    for (size_t other = 0; other < job.tasks.size() && !job.openings[i].cost_s; ++other) {
      if (job.keys[other] != job.keys[i]) continue;
      job.openings[i] = job.openings[other];
      job.tasks[i].estimate_s = job.tasks[other].estimate_s;
    }
  }
}

StatusOr<Job> Load(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(
      const auto store,
      store::OpenSqliteStore(path, {.mode = store::sqlite::OpenOptions::Mode::kReadOnly}));
  KILN_ASSIGN_OR_RETURN(const std::vector<store::JobRow> jobs, store->ListJobs(1));
  if (jobs.empty()) return InvalidArgument("{} has no job", path);
  KILN_ASSIGN_OR_RETURN(const std::vector<store::TaskRow> rows, store->TasksOfJob(jobs[0].id));
  KILN_ASSIGN_OR_RETURN(Job job, TasksOf(rows));
  KILN_ASSIGN_OR_RETURN(const auto records, store->RecordsOfJob(jobs[0].id, 0));
  std::set<uint32_t> opened;
  for (const store::Record& record : records) {
    const uint32_t task = record.task_index;
    if (task >= job.tasks.size())
      return DataLoss("{}: a record is of task {}, and its job has {}", path, task,
                      job.tasks.size());
    if (record.origin.starts_with("heuristic schedule")) {
      if (!opened.insert(task).second) continue;
      job.openings[task] = CostOf(record);
      job.tasks[task].estimate_s = std::max(0.0, -record.score.value_or(0));
    } else if (!record.origin.ends_with("of another task")) {
      job.explored[job.keys[task]].push_back(CostOf(record));
    }
  }
  CompleteOpenings(job);
  return job;
}

// Lengthens the sequences of a job that ended early.
void Continue(Costs& explored, const Costs& by) {
  for (const auto& [key, costs] : by) {
    std::vector<Cost>& own = explored[key];
    if (own.size() < costs.size())
      own.insert(own.end(), costs.begin() + static_cast<std::ptrdiff_t>(own.size()), costs.end());
  }
}

// Keeps costs about where they were: early ones are those of a search that knew little.
void ShuffleInWindows(Costs& explored, Rng& rng) {
  constexpr size_t kFirst = 24, kLongest = 400;
  for (auto& [key, costs] : explored) {
    for (size_t at = kFirst, length = kFirst; at < costs.size(); at += length) {
      if (at > kFirst) length = std::min(2 * length, kLongest);
      const auto begin = costs.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end =
          costs.begin() + static_cast<std::ptrdiff_t>(std::min(costs.size(), at + length));
      std::vector<Cost> window(begin, end);
      Shuffle(rng, window);
      std::ranges::copy(window, begin);
    }
  }
}

// ---- the replay

class Replay {
 public:
  Replay(const Job& job, const Options& options, uint64_t seed)
      : job_(job),
        options_(options),
        rng_(seed),
        scheduler_(job.tasks, {.round_trials = options.round_trials,
                               .first_round_trials = options.first_round_trials,
                               .opening_trials = 1,
                               .seed = seed}),
        told_(job.tasks.size()) {}

  // Returns the total latency at kPlaces_s. 0: a task had no result.
  std::vector<double> Run() {
    std::vector<double> totals_s;
    Pump();
    while (!events_.empty() && totals_s.size() < std::size(kPlaces_s)) {
      const auto [at_s, kind, trial] = events_.top();
      events_.pop();
      while (totals_s.size() < std::size(kPlaces_s) && kPlaces_s[totals_s.size()] < at_s)
        totals_s.push_back(scheduler_.Score().value_or(0));
      now_s_ = at_s;
      if (kind == Kind::kSearched) TakeProposals();
      if (kind == Kind::kBuilt) --building_, built_.push_back(trial);
      if (kind == Kind::kMeasured) TakeResult(trial);
      Pump();
    }
    totals_s.resize(std::size(kPlaces_s), scheduler_.Score().value_or(0));
    return totals_s;
  }

 private:
  enum class Kind { kSearched, kBuilt, kMeasured };
  struct Trial {
    int task = 0;
    size_t round = 0;
    Cost cost;
    size_t schedule = 0;  // the first trial that had the same schedule
  };
  struct Result {
    double cost_s = 0;
    size_t schedule = 0;
    int task = 0;
  };

  int capacity() const { return options_.builders + 5; }  // those being built, one run, four more

  void Pump() {
    while (!ready_.empty() && in_hand_ < capacity()) {
      to_build_.push_back(ready_.front());
      ready_.pop_front();
      ++in_hand_;
    }
    while (!to_build_.empty() && building_ < options_.builders) {
      const size_t trial = to_build_.front();
      to_build_.pop_front();
      ++building_;
      events_.emplace(now_s_ + trials_[trial].cost.build_s, Kind::kBuilt, trial);
    }
    if (!measuring_ && !built_.empty()) {
      measuring_ = true;
      events_.emplace(now_s_ + trials_[built_.front()].cost.run_s, Kind::kMeasured, built_.front());
      built_.pop_front();
    }
    if (proposed_.empty()) Search();
  }

  void Search() {
    const size_t ahead = pace_.Ahead(options_.round_trials);
    if (static_cast<size_t>(in_hand_) + ready_.size() > static_cast<size_t>(capacity()) + ahead)
      return;
    const std::optional<int> task = scheduler_.Next();
    if (!task.has_value()) return;
    const bool is_opening = scheduler_.rounds(*task) == 0;
    const auto candidates = static_cast<int>(scheduler_.RoundTrials(*task));
    scheduler_.BeginRound(*task);
    if (is_opening) {
      Propose(*task, job_.openings[*task]);
    } else {
      TakeOver(*task, candidates);
      Explore(*task, candidates);
    }
    rounds_.push_back(proposed_.size());
    const double search_s =
        is_opening ? 0.002 : options_.search_s + options_.search_of_candidate_s * candidates;
    pace_.NoteSearch(search_s);
    events_.emplace(now_s_ + search_s, Kind::kSearched, 0);
  }

  void Propose(int task, const Cost& cost, std::optional<size_t> schedule = {}) {
    proposed_.push_back(trials_.size());
    trials_.push_back({task, rounds_.size(), cost, schedule.value_or(trials_.size())});
  }

  void TakeOver(int task, int candidates) {
    const double share = scheduler_.trials(task) < search::kFewOwnResults
                             ? parameters_.transferred_share_of_first_round
                             : parameters_.transferred_share;
    const auto most = static_cast<size_t>(std::max(1.0, std::floor(candidates * share + 0.5)));
    std::vector<Result>& results = results_[job_.keys[task]];
    std::ranges::stable_sort(results, {}, &Result::cost_s);
    for (const Result& result : results) {
      if (proposed_.size() == most || result.cost_s >= scheduler_.latency_s(task)) return;
      if (!told_[task].insert(result.schedule).second) continue;
      Cost cost = job_.openings[task];
      cost.cost_s = result.cost_s * (1 + options_.noise * (2 * UniformReal(rng_) - 1));
      Propose(task, cost, result.schedule);
    }
  }

  void Explore(int task, int candidates) {
    const auto found = job_.explored.find(job_.keys[task]);
    size_t& next = explored_[job_.keys[task]];
    const bool is_early = scheduler_.trials(task) < search::kResultsForAllStates;
    while (std::ssize(proposed_) < candidates) {
      const bool is_left = found != job_.explored.end() && next < found->second.size();
      if (is_left && is_early && found->second[next].by_chance) {
        ++next;
      } else {
        Propose(task, is_left ? found->second[next++] : job_.openings[task]);
      }
    }
  }

  void TakeProposals() {
    ready_.insert(ready_.end(), proposed_.begin(), proposed_.end());
    proposed_.clear();
  }

  void TakeResult(size_t number) {
    measuring_ = false;
    --in_hand_;
    pace_.NoteResult(now_s_);
    const Trial& trial = trials_[number];
    scheduler_.AddResult(trial.task, trial.cost.cost_s);
    told_[trial.task].insert(trial.schedule);
    if (trial.cost.cost_s.has_value())
      results_[job_.keys[trial.task]].push_back({*trial.cost.cost_s, trial.schedule, trial.task});
    if (--rounds_[trial.round] == 0) scheduler_.EndRound(trial.task);
  }

  const Job& job_;
  const Options& options_;
  const search::Parameters parameters_ = {};
  Rng rng_;
  search::TaskScheduler scheduler_;
  std::vector<std::set<size_t>> told_;  // per task: schedules that it has tried
  std::vector<Trial> trials_;
  std::vector<size_t> rounds_;    // trials left of each round
  std::vector<size_t> proposed_;  // by the search that runs; empty: none runs
  std::deque<size_t> ready_, to_build_, built_;
  std::map<std::string, std::vector<Result>> results_;
  std::map<std::string, size_t> explored_;
  std::priority_queue<std::tuple<double, Kind, size_t>,
                      std::vector<std::tuple<double, Kind, size_t>>, std::greater<>>
      events_;
  int in_hand_ = 0, building_ = 0;
  bool measuring_ = false;
  double now_s_ = options_.begin_s;
  search::Pace pace_;
};

// ---- the table

void PrintRow(std::string_view name, std::span<const double> totals_s, double share) {
  std::string row = fmt::format("| {} |", name);
  for (const double total_s : totals_s) row += fmt::format(" {:.1f} |", total_s * share * 1e6);
  fmt::print("{}\n", row);
}

Status Run(const Options& options) {
  std::vector<Job> jobs;
  for (const std::string& path : options.databases) {
    KILN_ASSIGN_OR_RETURN(jobs.emplace_back(), Load(path));
    Continue(jobs.back().explored, jobs.front().explored);
  }
  std::string header = "| total latency, us, after |", line = "|---|";
  for (const double place_s : kPlaces_s) {
    header += fmt::format(" {:g} s |", place_s);
    line += "---|";
  }
  fmt::print("{}\n{}\n", header, line);
  std::vector<double> sums_s(std::size(kPlaces_s));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int runs = std::max(1, options.shuffles);
    std::vector<double> sums_of_job_s(std::size(kPlaces_s));
    for (int run = 0; run < runs; ++run) {
      Job job = jobs[i];
      Rng rng(SplitSeed(1, static_cast<uint64_t>(run)));
      if (options.shuffles > 0) ShuffleInWindows(job.explored, rng);
      const std::vector<double> totals_s = Replay(job, options, rng()).Run();
      for (size_t k = 0; k < totals_s.size(); ++k) sums_of_job_s[k] += totals_s[k];
    }
    PrintRow(options.databases[i], sums_of_job_s, 1.0 / runs);
    for (size_t k = 0; k < sums_s.size(); ++k) sums_s[k] += sums_of_job_s[k] / runs;
  }
  PrintRow("mean", sums_s, 1.0 / static_cast<double>(jobs.size()));
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Replay of a job's trials through the task scheduler");
  kiln::Options o;
  app.add_option("databases", o.databases, "of jobs of one network, the longest first")->required();
  app.add_option("--builders", o.builders, "builds at once")->capture_default_str();
  app.add_option("--shuffles", o.shuffles, "replays of each job")->capture_default_str();
  app.add_option("--first-round", o.first_round_trials, "trials")->capture_default_str();
  app.add_option("--search", o.search_s, "seconds of each search")->capture_default_str();
  app.add_option("--search-of-candidate", o.search_of_candidate_s, "seconds for each candidate")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
