#include "scheduler/jobs/shared_search.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "compiler/target/target.h"
#include "scheduler/jobs/known_tasks.h"
#include "store/task_results.h"

namespace kiln::scheduler {

SharedSearch::SharedSearch(Job job, const WarmStart& start, store::Store& store, Show show)
    : job_(std::move(job)),
      store_(store),
      show_(std::move(show)),
      rows_(job_.rows),
      tasks_(job_.tasks.size()),
      known_(KnownStatesOf(start)) {
  std::ranges::sort(rows_, {}, &store::TaskRow::index);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const training::TaskResults& of_task = start.of_tasks[i];
    std::unordered_set<uint64_t>& known = tasks_[i].known;
    known.insert(of_task.avoid.begin(), of_task.avoid.end());
    known.insert(of_task.measured.begin(), of_task.measured.end());
    for (const search::Observation& o : of_task.observations) known.insert(o.candidate.hash);
  }
}

StatusOr<search::NewsOfOthers> SharedSearch::Take() {
  search::NewsOfOthers news;
  std::vector<std::string> tuners = job_.tuners->Get();
  tuners.resize(tasks_.size());
  if (!begun_) {
    KILN_RETURN_IF_ERROR(TakeEndedBeforeBegin(tuners));
    KILN_RETURN_IF_ERROR(AddBestOfKnown(news.results));
  }
  const auto has_changed = [&](size_t i) {
    const std::optional<JobResults>& other = tasks_[i].other;
    return tuners[i] != (other.has_value() ? other->job_id() : "");
  };
  bool changed = !begun_;
  for (size_t i = 0; i < tasks_.size(); ++i) changed = changed || has_changed(i);
  begun_ = true;
  if (changed) KILN_RETURN_IF_ERROR(Change(std::move(tuners), news.results));
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].other.has_value()) KILN_RETURN_IF_ERROR(Read(i, news.results));
  }
  if (changed || !news.results.empty()) ShowNow();
  news.tuned_by = TunedByNow();
  news.trials = TrialsNow();
  return news;
}

Status SharedSearch::TakeEndedBeforeBegin(const std::vector<std::string>& tuners) {
  std::vector<bool> ended(tasks_.size());
  const size_t count = std::min(ended.size(), job_.tuners_before.size());
  for (size_t i = 0; i < count; ++i)
    ended[i] = !job_.tuners_before[i].empty() && tuners[i] != job_.tuners_before[i];
  return std::ranges::find(ended, true) == ended.end() ? OkStatus() : TakeEnded(ended);
}

Status SharedSearch::Change(std::vector<std::string> tuners,
                            std::vector<search::KnownResult>& results) {
  std::vector<bool> ended(tasks_.size());
  for (size_t i = 0; i < tasks_.size(); ++i) {
    std::optional<JobResults>& other = tasks_[i].other;
    if (!other.has_value() || other->job_id() == tuners[i]) continue;
    KILN_RETURN_IF_ERROR(Read(i, results));
    LogInfo("job {}: job {} tunes task {} no more", job_.id, other->job_id(), i);
    ended[i] = true;
    other.reset();
  }
  if (std::find(ended.begin(), ended.end(), true) != ended.end())
    KILN_RETURN_IF_ERROR(TakeEnded(ended));
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!tuners[i].empty() && !tasks_[i].other.has_value())
      KILN_RETURN_IF_ERROR(Begin(i, tuners[i]));
  }
  return OkStatus();
}

Status SharedSearch::Begin(size_t task, const std::string& tuner) {
  store::TaskRow& row = rows_[task];
  LogInfo("job {}: job {} tunes task {}", job_.id, tuner, task);
  tasks_[task].other.emplace(tuner, row.workload_id, target::PrintTarget(job_.tasks[task].target));
  tasks_[task].results = 0;
  // Trials that count already stay.
  if (row.known_trials > 0 || row.known_job == tuner) return OkStatus();
  KILN_RETURN_IF_ERROR(store_.SetKnownTask(job_.id, row.index, tuner, 0));
  row.known_job = tuner;
  return OkStatus();
}

Status SharedSearch::Read(size_t task, std::vector<search::KnownResult>& results) {
  SharedTask& shared = tasks_[task];
  KILN_ASSIGN_OR_RETURN(std::vector<JobResults::Result> read,
                        shared.other->ReadNew(store_, job_.device));
  LiveStatus::Known& known = known_[task];
  for (JobResults::Result& result : read) {
    ++shared.results;
    const search::Observation& o = result.observation;
    if (o.valid && !result.stopped_early && (!known.best || o.cost_s < known.best->cost_s))
      known.best = {o.record, o.cost_s};
    const bool is_new = shared.known.insert(o.candidate.hash).second;
    results.push_back({static_cast<int>(task), std::move(result.observation), is_new});
  }
  known.states = std::max(known.states, shared.results);
  return OkStatus();
}

Status SharedSearch::TakeEnded(const std::vector<bool>& ended) {
  KILN_ASSIGN_OR_RETURN(std::vector<KnownTask> known,
                        FindKnownTasks(job_.id, *job_.job, job_.tasks, job_.device, store_));
  for (size_t i = 0; i < known.size(); ++i) {
    if (!ended[i]) {
      known[i] = {};
    } else if (known[i].trials > rows_[i].known_trials) {
      rows_[i].known_trials = 0;  // these are more
    }
  }
  return KeepKnownTasks(known, rows_, store_);
}

Status SharedSearch::AddBestOfKnown(std::vector<search::KnownResult>& results) {
  store::TaskResults of_tasks(store_);
  for (const store::TaskRow& row : rows_) {
    KILN_ASSIGN_OR_RETURN(const std::optional<store::Record> best, of_tasks.Known(row));
    if (!best.has_value()) continue;
    search::KnownResult result{.task = static_cast<int>(row.index)};
    result.observation.valid = true;
    result.observation.cost_s = store::Cost(*best);
    results.push_back(std::move(result));
  }
  return OkStatus();
}

std::vector<bool> SharedSearch::held() const {
  std::vector<bool> held;
  for (const SharedTask& task : tasks_) held.push_back(task.other.has_value());
  return held;
}

std::vector<search::TunedBy> SharedSearch::TunedByNow() const {
  const uint32_t share = ShareOfTask(job_.job->spec);
  std::vector<search::TunedBy> tuned_by;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const bool is_enough = rows_[i].known_trials >= share;
    tuned_by.push_back(tasks_[i].other.has_value() ? search::TunedBy::kOthers
                       : is_enough                 ? search::TunedBy::kNobody
                                                   : search::TunedBy::kThisSearch);
  }
  // If enough of all is known, trials that are left are for any of them.
  const bool all = std::ranges::all_of(
      tuned_by, [](search::TunedBy by) { return by == search::TunedBy::kNobody; });
  if (all) std::ranges::fill(tuned_by, search::TunedBy::kThisSearch);
  return tuned_by;
}

uint32_t SharedSearch::TrialsNow() const {
  const uint32_t share = ShareOfTask(job_.job->spec);
  uint64_t others = KnownTrials(rows_);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].other.has_value()) others += share - std::min(share, rows_[i].known_trials);
  }
  const uint32_t trials = job_.job->spec.options().trials();
  return trials - static_cast<uint32_t>(std::min<uint64_t>(trials, others));
}

void SharedSearch::ShowNow() const {
  std::vector<std::string> tuned_by;
  for (const SharedTask& task : tasks_)
    tuned_by.push_back(task.other.has_value() ? task.other->job_id() : "");
  show_(known_, std::move(tuned_by));
}

}  // namespace kiln::scheduler
