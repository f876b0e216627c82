#include "store/store.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

namespace kiln::store {

namespace {

// Merges records of further names into the best record of each target and way of measuring: a
// record replaces the one of its group that it beats, or is inserted if there is none.
void Merge(std::vector<Record> others, std::vector<Record>& best) {
  const auto is_before = [](const Record& a, const Record& b) {
    return std::tie(a.target, b.measured_as) < std::tie(b.target, a.measured_as);
  };
  for (Record& other : others) {
    const auto at = std::lower_bound(best.begin(), best.end(), other, is_before);
    if (at == best.end() || is_before(other, *at)) {
      best.insert(at, std::move(other));
    } else if (BetterThan(other, *at)) {
      *at = std::move(other);
    }
  }
}

}  // namespace

// Returns the computation's own name, and the names of those of its keys that no other computation
// has. Computations that share one key share all keys: then a key that the store does not know may
// belong to another computation too.
StatusOr<Store::Names> Store::NamesOfComputation(Snapshot& snapshot, const WorkloadRef& workload) {
  KILN_ASSIGN_OR_RETURN(std::vector<std::string> keys, snapshot.KeysOfId(workload.id));
  const size_t known = keys.size();
  for (const std::string& key : workload.keys) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  Names names = {workload.id};
  bool shared = false;
  for (size_t i = 0; i < keys.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const KeyBinding bearers, snapshot.KeyBindingOf(keys[i]));
    const bool alone = std::all_of(bearers.ids.begin(), bearers.ids.end(),
                                   [&](const std::string& id) { return id == workload.id; });
    shared = shared || !alone;
    const bool counts = i < known ? alone : !shared;
    if (counts && !bearers.bound) names.push_back(UnboundName(keys[i]));
  }
  return names;
}

// Returns the names of each computation that the query means. The last names may stand for no
// computation: they are those of records whose computation is not known.
StatusOr<std::vector<Store::Names>> Store::NamesOfEach(Snapshot& snapshot,
                                                       const WorkloadRef& workload) {
  std::vector<Names> each;
  if (!workload.id.empty()) {
    KILN_ASSIGN_OR_RETURN(each.emplace_back(), NamesOfComputation(snapshot, workload));
    return each;
  }
  std::set<std::string> ids;
  Names unbound;
  for (const std::string& key : workload.keys) {
    KILN_ASSIGN_OR_RETURN(const KeyBinding bearers, snapshot.KeyBindingOf(key));
    ids.insert(bearers.ids.begin(), bearers.ids.end());
    if (bearers.ids.size() != 1 || bearers.bound) unbound.push_back(UnboundName(key));
  }
  for (const std::string& id : ids) {
    KILN_ASSIGN_OR_RETURN(each.emplace_back(), NamesOfComputation(snapshot, {.id = id}));
  }
  if (!unbound.empty()) each.push_back(std::move(unbound));
  return each;
}

StatusOr<Store::Names> Store::NamesOfAll(Snapshot& snapshot, const WorkloadRef& workload) {
  Names all;
  if (workload.empty()) return all;
  KILN_ASSIGN_OR_RETURN(const std::vector<Names> each, NamesOfEach(snapshot, workload));
  for (const Names& names : each) all.insert(all.end(), names.begin(), names.end());
  return all;
}

StatusOr<std::vector<Record>> Store::BestRecords(const WorkloadRef& workload,
                                                 std::string_view target) {
  std::vector<Record> all;
  KILN_RETURN_IF_ERROR(Read([&](Snapshot& snapshot) -> Status {
    all.clear();
    KILN_ASSIGN_OR_RETURN(const std::vector<Names> each, NamesOfEach(snapshot, workload));
    for (const Names& names : each) {
      std::vector<Record> best;
      for (const std::string& name : names) {
        KILN_ASSIGN_OR_RETURN(std::vector<Record> named, snapshot.BestNamed(name, target));
        Merge(std::move(named), best);
      }
      const bool known = !names.front().starts_with(UnboundName(""));
      for (Record& record : best) {
        if (known && record.workload_id.empty()) record.workload_id = names.front();
      }
      std::move(best.begin(), best.end(), std::back_inserter(all));
    }
    return OkStatus();
  }));
  return all;
}

StatusOr<std::vector<Record>> Store::RecordsOfWorkload(const WorkloadRef& workload,
                                                       std::string_view target) {
  std::vector<Record> records;
  KILN_RETURN_IF_ERROR(Read([&](Snapshot& snapshot) -> Status {
    KILN_ASSIGN_OR_RETURN(const Names names, NamesOfAll(snapshot, workload));
    KILN_ASSIGN_OR_RETURN(records, snapshot.RecordsNamed(names, target));
    return OkStatus();
  }));
  return records;
}

StatusOr<const Store::Names*> Store::Measurements::NamesOfKey(const std::string& key) {
  if (const auto known = names_.find(key); known != names_.end()) return &known->second;
  KILN_ASSIGN_OR_RETURN(const KeyBinding bearers, snapshot_.KeyBindingOf(key));
  Names names = {UnboundName(key)};
  names.insert(names.end(), bearers.ids.begin(), bearers.ids.end());
  return &names_.emplace(key, std::move(names)).first->second;
}

StatusOr<bool> Store::Measurements::Has(const Record& record) {
  Names own;
  const Names* names = &own;
  if (record.workload_id.empty()) {
    KILN_ASSIGN_OR_RETURN(names, NamesOfKey(record.workload_key));
  } else {
    own = {UnboundName(record.workload_key), record.workload_id};
    // The record may be the first of its computation.
    names_.erase(record.workload_key);
  }
  for (const std::string& name : *names) {
    KILN_ASSIGN_OR_RETURN(const bool has, snapshot_.HasMeasurementNamed(name, record));
    if (has) return true;
  }
  return false;
}

StatusOr<bool> Store::HasMeasurement(const Record& record) {
  bool has = false;
  KILN_RETURN_IF_ERROR(Read([&](Snapshot& snapshot) -> Status {
    KILN_ASSIGN_OR_RETURN(has, Measurements(snapshot).Has(record));
    return OkStatus();
  }));
  return has;
}

StatusOr<int64_t> Store::AddRecord(const Record& record) {
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, AddRecords({&record, 1}));
  return ids.front();
}

Status CheckBatch(std::span<const Record> records) {
  std::set<std::pair<std::string_view, uint32_t>> trials;
  for (const Record& record : records) {
    KILN_RETURN_IF_ERROR(ValidateRecord(record));
    if (trials.emplace(record.job_id, record.trial).second) continue;
    return AlreadyExists("a batch has two records of trial {} of job {}", record.trial,
                         record.job_id);
  }
  return OkStatus();
}

bool SameTrial(const Record& a, const Record& b) {
  return a.task_index == b.task_index && a.steps == b.steps && a.timestamp_s == b.timestamp_s &&
         a.runner == b.runner && a.error == b.error && a.costs_s == b.costs_s;
}

Status Store::ForEachRecord(const RecordFilter& filter,
                            const std::function<Status(const Record&)>& visit) {
  constexpr uint32_t kMaxIds = 65'536, kFirstIds = 256, kGrowth = 16;
  constexpr size_t kFirstPage = 32, kPageSize = 256;
  RecordFilter rest = filter;
  // The ids of a job are read from an index in their order. Few are read at first, so that the
  // first record does not wait for the ids of all. Other queries sort ids, each time all of them.
  uint32_t limit = filter.top.value_or(filter.job_id.empty() ? kMaxIds : kFirstIds);
  size_t page_size = kFirstPage;
  while (true) {
    std::vector<int64_t> ids;
    KILN_RETURN_IF_ERROR(Read([&](Snapshot& snapshot) -> Status {
      KILN_ASSIGN_OR_RETURN(const Names names, NamesOfAll(snapshot, filter.workload));
      KILN_ASSIGN_OR_RETURN(ids, snapshot.Ids(rest, names, limit));
      return OkStatus();
    }));
    for (std::span<const int64_t> left = ids; !left.empty();) {
      const std::span<const int64_t> page = left.first(std::min(page_size, left.size()));
      std::vector<Record> records;
      KILN_RETURN_IF_ERROR(Read([&](Snapshot& snapshot) -> Status {
        KILN_ASSIGN_OR_RETURN(records, snapshot.Records(page));
        return OkStatus();
      }));
      for (const Record& record : records) KILN_RETURN_IF_ERROR(visit(record));
      left = left.subspan(page.size());
      page_size = kPageSize;
    }
    if (filter.top.has_value() || ids.size() < limit) return OkStatus();
    rest.after_id = ids.back();
    limit = std::min(kMaxIds, limit * kGrowth);
  }
}

Status Store::ForEachAutotvmRecord(const AutotvmFilter& filter,
                                   const std::function<Status(const AutotvmRecord&)>& visit) {
  constexpr uint32_t kPageSize = 256;
  int64_t after_id = 0;
  while (true) {
    std::vector<AutotvmRecord> page;
    KILN_RETURN_IF_ERROR(Read([&](Snapshot& snapshot) -> Status {
      KILN_ASSIGN_OR_RETURN(page, snapshot.AutotvmRecords(filter, after_id, kPageSize));
      return OkStatus();
    }));
    for (const AutotvmRecord& record : page) KILN_RETURN_IF_ERROR(visit(record));
    if (page.size() < kPageSize) return OkStatus();
    after_id = page.back().id;
  }
}

StatusOr<int64_t> DeleteRecordsOfEndedJobs(Store& store, std::span<const int64_t> ids) {
  std::set<std::string> ended;
  for (const int64_t id : ids) {
    const StatusOr<Record> record = store.GetRecord(id);
    if (record.status().code() == StatusCode::kNotFound) continue;
    KILN_RETURN_IF_ERROR(record.status());
    if (ended.contains(record->job_id)) continue;
    KILN_ASSIGN_OR_RETURN(const JobRow job, store.GetJob(record->job_id));
    if (!IsFinal(job.state)) {
      return FailedPrecondition("record {} is of job {}, which is {}: cancel it, or wait", id,
                                job.id, JobStateName(job.state));
    }
    ended.insert(job.id);
  }
  return store.DeleteRecords(ids);
}

StatusOr<TaskRow> TaskOfJob(const TaskRow& task, std::string_view job_id) {
  if (!task.job_id.empty() && task.job_id != job_id) {
    return InvalidArgument("task {} names job {}, expected {}", task.index, task.job_id, job_id);
  }
  TaskRow row = task;
  row.job_id = job_id;
  return row;
}

Status CheckComputation(const Computation& computation) {
  if (!computation.id.empty() && !computation.key.empty() && !computation.dag.empty()) {
    return OkStatus();
  }
  return InvalidArgument("a computation needs an id, a key and a DAG, found '{}', '{}', '{}'",
                         computation.id, computation.key, computation.dag);
}

StatusOr<Record> WithRemeasurement(Record record, const Remeasurement& remeasured) {
  record.remeasured_run_s = remeasured.run_s;
  if (record.error != kNoError) return record;
  record.remeasured_costs_s = remeasured.costs_s;
  record.confidence_s = remeasured.confidence_s;
  record.remeasurements = remeasured.readings;
  record.remeasured_device = remeasured.device;
  record.error = remeasured.error;
  record.message = remeasured.message;
  if (!record.remeasured_costs_s.empty()) record.mark.clear();
  if (record.error != kNoError) record.costs_s.clear();
  KILN_RETURN_IF_ERROR(ValidateRecord(record));
  return record;
}

bool IsToBeMarked(const Record& record, const SlowSpan& span) {
  return record.runner == span.runner && !record.runner.empty() && record.mark.empty() &&
         record.remeasured_costs_s.empty() && record.timestamp_s >= span.from_s &&
         record.timestamp_s <= span.to_s;
}

StatusOr<bool> ApplyJobState(JobRow& job, JobState state, std::string_view message,
                             int64_t now_ms) {
  if (IsFinal(job.state)) {
    if (state == job.state) return false;
    return FailedPrecondition("job {} is already {}, it cannot become {}", job.id,
                              JobStateName(job.state), JobStateName(state));
  }
  if (job.state == JobState::kPaused && state == JobState::kPaused) return false;
  if (job.state == JobState::kPaused && state != JobState::kCancelled) {
    return FailedPrecondition("job {} is paused, it cannot become {} before it is resumed", job.id,
                              JobStateName(state));
  }
  job.state = state;
  job.message = message;
  if (state == JobState::kRunning) ++job.fruitless_runs;
  if (state == JobState::kQueued || state == JobState::kPaused) job.fruitless_runs = 0;
  if (state == JobState::kRunning && !job.started_ms.has_value()) job.started_ms = now_ms;
  if (IsFinal(state)) job.finished_ms = now_ms;
  return true;
}

Status ApplyReopen(JobRow& job) {
  if (job.state == JobState::kSucceeded) {
    return FailedPrecondition("job {} has succeeded: there is nothing to go on with", job.id);
  }
  job.state = JobState::kQueued;
  job.message.clear();
  job.finished_ms.reset();
  job.fruitless_runs = 0;
  return OkStatus();
}

}  // namespace kiln::store
