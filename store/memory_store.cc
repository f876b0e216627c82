#include "store/memory_store.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/hash/unique_id.h"
#include "store/record_order.h"

namespace kiln::store {
namespace {

class MemoryStore final : public Store {
 public:
  using Store::AddJob;
  using Store::AddModel;
  using Store::AddRecords;

  Status AddJob(const JobRow& job, std::span<const TaskRow> tasks) override {
    std::lock_guard lock(mutex_);
    if (job.id.empty()) return InvalidArgument("a job needs an id, found none");
    if (FindJob(job.id) != nullptr) return AlreadyExists("job {} exists already", job.id);
    jobs_.push_back(job);
    Status status = InsertTasks(job.id, tasks);
    if (!status.ok()) jobs_.pop_back();
    return status;
  }

  Status UpdateJobState(std::string_view job_id, JobState state, std::string_view message,
                        int64_t now_ms) override {
    std::lock_guard lock(mutex_);
    JobRow* job = FindJob(job_id);
    if (job == nullptr) return NotFound("no job {}", job_id);
    return ApplyJobState(*job, state, message, now_ms).status();
  }

  Status ReopenJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    JobRow* job = FindJob(job_id);
    if (job == nullptr) return NotFound("no job {}", job_id);
    return ApplyReopen(*job);
  }

  Status SetProgress(std::string_view job_id, const JobProgress& progress) override {
    std::lock_guard lock(mutex_);
    JobRow* job = FindJob(job_id);
    if (job == nullptr) return NotFound("no job {}", job_id);
    job->progress = progress;
    return OkStatus();
  }

  StatusOr<JobRow> GetJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    const JobRow* job = FindJob(job_id);
    if (job == nullptr) return NotFound("no job {}", job_id);
    return *job;
  }

  StatusOr<std::vector<JobRow>> ListJobs(std::optional<uint32_t> limit) override {
    std::lock_guard lock(mutex_);
    const size_t count = std::min<size_t>(limit.value_or(UINT32_MAX), jobs_.size());
    return std::vector<JobRow>(jobs_.rbegin(), jobs_.rbegin() + count);
  }

  StatusOr<std::vector<JobRow>> LoadUnfinishedJobs() override {
    std::lock_guard lock(mutex_);
    std::vector<JobRow> unfinished;
    std::copy_if(jobs_.begin(), jobs_.end(), std::back_inserter(unfinished),
                 [](const JobRow& job) { return !IsFinal(job.state); });
    return unfinished;
  }

  Status AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) override {
    std::lock_guard lock(mutex_);
    if (FindJob(job_id) == nullptr) return NotFound("no job {}", job_id);
    return InsertTasks(job_id, tasks);
  }

  StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    std::vector<TaskRow> tasks;
    for (auto it = tasks_.lower_bound({std::string(job_id), 0});
         it != tasks_.end() && it->first.first == job_id; ++it) {
      tasks.push_back(it->second);
    }
    return tasks;
  }

  Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) override {
    std::lock_guard lock(mutex_);
    auto it = tasks_.find({std::string(job_id), task_index});
    if (it == tasks_.end()) return NotFound("no task {} in job {}", task_index, job_id);
    it->second.reference_cost_s = cost_s;
    return OkStatus();
  }

  Status SetKnownTask(std::string_view job_id, uint32_t task_index, std::string_view known_job,
                      uint32_t trials) override {
    std::lock_guard lock(mutex_);
    auto it = tasks_.find({std::string(job_id), task_index});
    if (it == tasks_.end()) return NotFound("no task {} in job {}", task_index, job_id);
    it->second.known_job = known_job;
    it->second.known_trials = trials;
    return OkStatus();
  }

  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records,
                                            std::span<const ReferenceCost> costs) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(std::vector<int64_t> ids, KnownTrials(records));
    for (const ReferenceCost& cost : costs) {
      if (!tasks_.contains({cost.job_id, cost.task_index})) {
        return NotFound("no task {} in job {}", cost.task_index, cost.job_id);
      }
    }
    for (size_t i = 0; i < records.size(); ++i) {
      if (ids[i] == 0) ids[i] = Insert(records[i]);
      FindJob(records[i].job_id)->fruitless_runs = 0;
    }
    for (const ReferenceCost& cost : costs) {
      tasks_.find({cost.job_id, cost.task_index})->second.reference_cost_s = cost.cost_s;
    }
    return ids;
  }

  StatusOr<int64_t> ImportRecords(std::string_view job_id,
                                  std::span<const Record> records) override {
    std::lock_guard lock(mutex_);
    if (FindJob(job_id) == nullptr) return NotFound("no job {}", job_id);
    std::vector<Record> of_job(records.begin(), records.end());
    for (Record& record : of_job) {
      record.job_id = job_id;
      KILN_RETURN_IF_ERROR(ValidateRecord(record));
    }
    View view(*this);
    Measurements measurements(view);
    int64_t imported = 0;
    uint32_t next_trial = NextTrial(job_id);
    for (Record& record : of_job) {
      KILN_ASSIGN_OR_RETURN(const bool known, measurements.Has(record));
      if (known) continue;
      record.trial = next_trial++;
      Insert(std::move(record));
      ++imported;
    }
    return imported;
  }

  StatusOr<Record> GetRecord(int64_t id) override {
    std::lock_guard lock(mutex_);
    const Record* record = FindRecord(id);
    if (record == nullptr) return NotFound("no record {}", id);
    return *record;
  }

  StatusOr<std::vector<Record>> RecordsOfJob(std::string_view job_id,
                                             uint32_t from_trial) override {
    std::lock_guard lock(mutex_);
    std::vector<Record> found =
        Select([&](const Record& r) { return r.job_id == job_id && r.trial >= from_trial; });
    std::sort(found.begin(), found.end(),
              [](const Record& a, const Record& b) { return a.trial < b.trial; });
    return found;
  }

  StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) override {
    std::lock_guard lock(mutex_);
    std::vector<Record> records = Select([&](const Record& r) { return r.target == target; });
    if (records.size() > limit) records.erase(records.begin(), records.end() - limit);
    return records;
  }

  StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id, uint32_t task_index) override {
    std::lock_guard lock(mutex_);
    return Best([&](const Record& r) { return r.job_id == job_id && r.task_index == task_index; });
  }

  StatusOr<std::optional<Record>> UnscheduledOfJob(std::string_view job_id,
                                                   uint32_t task_index) override {
    std::lock_guard lock(mutex_);
    const std::vector<Record> found = Select([&](const Record& r) {
      return r.job_id == job_id && r.task_index == task_index && r.steps == kNoSteps &&
             r.error == kNoError;
    });
    const auto newest = std::ranges::max_element(found, {}, &Record::trial);
    return newest == found.end() ? std::nullopt : std::optional(*newest);
  }

  StatusOr<TrialCounts> CountTrials(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    TrialCounts counts;
    std::set<std::string> runners;
    for (const Record& record : records_) {
      if (record.job_id != job_id) continue;
      counts.run_s += record.run_s;
      counts.remeasured_run_s += record.remeasured_run_s;
      if (!record.runner.empty()) runners.insert(record.runner);
      ++counts.total;
      ++counts.by_error[record.error];
      ++counts.by_task[record.task_index];
      counts.next_trial = std::max(counts.next_trial, record.trial + 1);
    }
    counts.runners = static_cast<int64_t>(runners.size());
    return counts;
  }

  Status SetRemeasurements(std::span<const Remeasurement> remeasured) override {
    std::lock_guard lock(mutex_);
    std::vector<Record> records;
    for (const Remeasurement& f : remeasured) {
      const Record* found = FindRecord(f.id);
      if (found == nullptr) return NotFound("no record {}", f.id);
      KILN_ASSIGN_OR_RETURN(Record record, WithRemeasurement(*found, f));
      records.push_back(std::move(record));
    }
    for (Record& record : records) {
      records_[static_cast<size_t>(FindRecord(record.id) - records_.data())] = std::move(record);
    }
    return OkStatus();
  }

  StatusOr<int64_t> MarkRecords(const SlowSpan& span) override {
    std::lock_guard lock(mutex_);
    int64_t marked = 0;
    for (Record& record : records_) {
      if (!IsToBeMarked(record, span)) continue;
      record.mark = span.reason;
      ++marked;
    }
    return marked;
  }

  StatusOr<uint32_t> AddRound(const RoundRow& row) override {
    std::lock_guard lock(mutex_);
    if (FindJob(row.job_id) == nullptr) return NotFound("no job {}", row.job_id);
    std::vector<RoundRow>& rounds = rounds_[row.job_id];
    rounds.push_back(row);
    rounds.back().number = static_cast<uint32_t>(rounds.size() - 1);
    return rounds.back().number;
  }

  StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) override {
    std::lock_guard lock(mutex_);
    const auto it = rounds_.find(std::string(job_id));
    if (it == rounds_.end() || from >= it->second.size()) return std::vector<RoundRow>();
    return std::vector<RoundRow>(it->second.begin() + from, it->second.end());
  }

  Status SetCalibration(const CalibrationRow& row) override {
    KILN_RETURN_IF_ERROR(CheckCalibration(row));
    std::lock_guard lock(mutex_);
    calibrations_[{row.device, row.compute_capability}] = row;
    return OkStatus();
  }

  StatusOr<std::vector<CalibrationRow>> Calibrations() override {
    std::lock_guard lock(mutex_);
    std::vector<CalibrationRow> rows;
    for (const auto& [device, row] : calibrations_) rows.push_back(row);
    return rows;
  }

  Status AddModel(const ModelRow& row, bool replace) override {
    KILN_RETURN_IF_ERROR(CheckModel(row));
    std::lock_guard lock(mutex_);
    const auto [at, is_new] = models_.try_emplace(row.name, row);
    if (!is_new && at->second.file == row.file) return OkStatus();
    if (!is_new && !replace) return AlreadyExists("there is another cost model '{}'", row.name);
    at->second = row;
    at->second.bytes = static_cast<int64_t>(row.file.size());
    return OkStatus();
  }

  StatusOr<ModelRow> GetModel(std::string_view name) override {
    std::lock_guard lock(mutex_);
    const auto at = models_.find(name);
    if (at == models_.end()) return NotFound("no cost model '{}'", name);
    return at->second;
  }

  StatusOr<std::vector<ModelRow>> Models() override {
    std::lock_guard lock(mutex_);
    std::vector<ModelRow> rows;
    for (const auto& [name, row] : models_) {
      rows.push_back(row);
      rows.back().file.clear();
    }
    return rows;
  }

  Status DeleteModel(std::string_view name) override {
    std::lock_guard lock(mutex_);
    const auto at = models_.find(name);
    if (at == models_.end()) return NotFound("no cost model '{}'", name);
    models_.erase(at);
    return OkStatus();
  }

  Status PinSchedule(const PinnedSchedule& pinned) override {
    KILN_RETURN_IF_ERROR(CheckPinnedSchedule(pinned));
    std::lock_guard lock(mutex_);
    pinned_[{pinned.workload_id, pinned.target}] = pinned;
    return OkStatus();
  }

  StatusOr<std::vector<PinnedSchedule>> PinnedSchedules(std::string_view workload_id) override {
    std::lock_guard lock(mutex_);
    std::vector<PinnedSchedule> found;
    for (const auto& [of, pinned] : pinned_) {
      if (workload_id.empty() || of.first == workload_id) found.push_back(pinned);
    }
    return found;
  }

  StatusOr<bool> UnpinSchedule(std::string_view workload_id, std::string_view target) override {
    std::lock_guard lock(mutex_);
    return pinned_.erase({std::string(workload_id), std::string(target)}) > 0;
  }

  Status SetUserLimits(std::string_view name, const UserLimits& limits) override {
    KILN_RETURN_IF_ERROR(CheckLimits(limits));
    std::lock_guard lock(mutex_);
    UserRow& user = users_[std::string(name)];
    user.use.name = name;
    user.limits = limits;
    return OkStatus();
  }

  Status SetUserUses(std::span<const UserUse> uses) override {
    std::lock_guard lock(mutex_);
    for (const UserUse& use : uses) users_[use.name].use = use;
    return OkStatus();
  }

  StatusOr<std::vector<UserRow>> Users() override {
    std::lock_guard lock(mutex_);
    std::vector<UserRow> rows;
    for (const auto& [name, row] : users_) rows.push_back(row);
    return rows;
  }

  StatusOr<UserTotals> TotalsOfUser(std::string_view name, int64_t since_s,
                                    bool with_bytes) override {
    std::lock_guard lock(mutex_);
    UserTotals totals;
    for (const JobRow& job : jobs_) {
      if (job.user != name) continue;
      uint64_t trials = 0;
      for (const Record& record : records_) {
        if (record.job_id != job.id) continue;
        ++trials;
        if (with_bytes) totals.stored_bytes += StoredBytes(record);
        const bool recent = !job.finished_ms.has_value() || *job.finished_ms >= since_s * 1000;
        totals.trials_since += recent && record.timestamp_s >= since_s;
      }
      if (IsFinal(job.state)) continue;
      ++totals.unfinished_jobs;
      totals.trials_to_come += job.trials > trials ? job.trials - trials : 0;
    }
    return totals;
  }

  Status AddAudit(const AuditRow& entry, int64_t keep) override {
    std::lock_guard lock(mutex_);
    audit_.push_back(entry);
    audit_.back().id = ++last_audit_id_;
    while (static_cast<int64_t>(audit_.size()) > keep) audit_.pop_front();
    return OkStatus();
  }

  StatusOr<int64_t> PruneAudit(int64_t before_ms) override {
    std::lock_guard lock(mutex_);
    return static_cast<int64_t>(
        std::erase_if(audit_, [&](const AuditRow& entry) { return entry.at_ms < before_ms; }));
  }

  StatusOr<std::vector<AuditRow>> Audit(std::string_view user, int64_t since_ms,
                                        uint32_t limit) override {
    std::lock_guard lock(mutex_);
    std::vector<AuditRow> found;
    for (auto entry = audit_.rbegin(); entry != audit_.rend() && found.size() < limit; ++entry) {
      const bool matches = (user.empty() || entry->user == user) && entry->at_ms >= since_ms;
      if (matches) found.push_back(*entry);
    }
    return found;
  }

  StatusOr<SchedulerIdentity> NextIncarnation() override {
    std::lock_guard lock(mutex_);
    if (identity_.id.empty()) identity_.id = UniqueId();
    ++identity_.incarnation;
    return identity_;
  }

  Status AddComputations(std::span<const Computation> computations) override {
    std::lock_guard lock(mutex_);
    for (const Computation& c : computations) KILN_RETURN_IF_ERROR(CheckComputation(c));
    for (const Computation& c : computations) Know(c);
    return OkStatus();
  }

  StatusOr<std::vector<Computation>> ComputationsOfKey(std::string_view key) override {
    std::lock_guard lock(mutex_);
    std::vector<Computation> found;
    for (const auto& [of, computation] : computations_) {
      if (of.first == key) found.push_back(computation);
    }
    return found;
  }

  StatusOr<int64_t> DeleteRecords(std::span<const int64_t> ids) override {
    std::lock_guard lock(mutex_);
    const std::set<int64_t> wanted(ids.begin(), ids.end());
    const auto is_wanted = [&](const Record& r) { return wanted.contains(r.id); };
    for (const Record& r : records_) {
      if (is_wanted(r)) trials_.erase({r.job_id, r.trial});
    }
    return static_cast<int64_t>(std::erase_if(records_, is_wanted));
  }

  StatusOr<int64_t> ImportAutotvmRecords(std::span<const AutotvmRecord> records) override {
    std::lock_guard lock(mutex_);
    for (const AutotvmRecord& record : records) {
      KILN_RETURN_IF_ERROR(ValidateAutotvmRecord(record));
    }
    int64_t imported = 0;
    for (const AutotvmRecord& record : records) {
      const bool known = std::ranges::any_of(
          autotvm_records_, [&](const AutotvmRecord& r) { return SameMeasurement(r, record); });
      if (known) continue;
      autotvm_records_.push_back(record);
      autotvm_records_.back().id = ++last_autotvm_id_;
      ++imported;
    }
    return imported;
  }

  StatusOr<int64_t> DeleteAutotvmRecords(std::span<const int64_t> ids) override {
    std::lock_guard lock(mutex_);
    const std::set<int64_t> wanted(ids.begin(), ids.end());
    return static_cast<int64_t>(std::erase_if(
        autotvm_records_, [&](const AutotvmRecord& r) { return wanted.contains(r.id); }));
  }

  Status BindKey(const Computation& computation) override {
    std::lock_guard lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckComputation(computation));
    std::string& bound = bindings_[computation.key];
    if (!bound.empty() && bound != computation.id) Unbind({computation.key, bound});
    bound = computation.id;
    Know(computation);
    return OkStatus();
  }

  StatusOr<std::optional<Computation>> BoundTo(std::string_view key) override {
    std::lock_guard lock(mutex_);
    const auto bound = bindings_.find(key);
    if (bound == bindings_.end()) return std::optional<Computation>();
    return std::optional(computations_.at({bound->first, bound->second}));
  }

  StatusOr<int64_t> BindRecords(const Computation& computation,
                                std::span<const int64_t> ids) override {
    std::lock_guard lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckComputation(computation));
    const std::set<int64_t> wanted(ids.begin(), ids.end());
    int64_t bound = 0;
    for (Record& record : records_) {
      if (!wanted.contains(record.id) || !record.workload_id.empty()) continue;
      if (record.workload_key != computation.key) continue;
      record.workload_id = computation.id;
      record.dag = computation.dag;
      record.flop_count = computation.flop_count;
      ++bound;
    }
    return bound;
  }

 protected:
  Status Read(const std::function<Status(Snapshot&)>& read) override {
    std::lock_guard lock(mutex_);
    View view(*this);
    return read(view);
  }

 private:
  // Lives while the lock is held.
  // Orders by target, then as RankOf() orders the ways of measuring.
  struct WayOrder {
    using Key = std::pair<std::string, std::string>;
    bool operator()(const Key& a, const Key& b) const {
      return std::tie(a.first, b.second) < std::tie(b.first, a.second);
    }
  };

  class View final : public Snapshot {
   public:
    explicit View(const MemoryStore& store) : store_(store) {}

    StatusOr<std::vector<int64_t>> Ids(const RecordFilter& filter, const Names& names,
                                       uint32_t limit) override {
      std::vector<const Record*> found;
      for (const Record& r : store_.records_) {
        if (Matches(r, filter) && (names.empty() || IsNamed(r, names))) found.push_back(&r);
      }
      if (filter.top.has_value()) {
        std::stable_sort(found.begin(), found.end(),
                         [](const Record* a, const Record* b) { return BetterThan(*a, *b); });
      }
      std::vector<int64_t> ids;
      for (const Record* r : found) {
        if (ids.size() < limit) ids.push_back(r->id);
      }
      return ids;
    }

    StatusOr<int64_t> IdBeforeTrial(std::string_view job_id, uint32_t from_trial,
                                    uint32_t most) override {
      std::optional<int64_t> smallest;
      auto at = store_.trials_.lower_bound({std::string(job_id), from_trial});
      for (uint32_t seen = 0; seen < most; ++seen, ++at) {
        if (at == store_.trials_.end() || at->first.first != job_id) break;
        smallest = std::min(smallest.value_or(at->second), at->second);
      }
      if (smallest.has_value()) return *smallest - 1;
      int64_t largest = 0;
      for (const Record& r : store_.records_) {
        if (r.job_id == job_id) largest = std::max(largest, r.id);
      }
      return largest;
    }

    StatusOr<std::vector<Record>> Records(std::span<const int64_t> ids) override {
      std::vector<Record> records;
      for (const int64_t id : ids) {
        if (const Record* record = store_.FindRecord(id)) records.push_back(*record);
      }
      return records;
    }

    StatusOr<std::vector<Record>> RecordsNamed(const Names& names,
                                               std::string_view target) override {
      return store_.Select([&](const Record& r) {
        return IsNamed(r, names) && (target.empty() || r.target == target);
      });
    }

    StatusOr<std::vector<Record>> BestNamed(std::string_view name,
                                            std::string_view target) override {
      // The records by target and way of measuring.
      std::map<std::pair<std::string, std::string>, std::vector<const Record*>, WayOrder> groups;
      for (const Record& record : store_.records_) {
        if (record.error != kNoError || WorkloadName(record) != name) continue;
        if (!target.empty() && record.target != target) continue;
        groups[{record.target, record.measured_as}].push_back(&record);
      }
      std::vector<Record> result;
      for (auto& [of, records] : groups) result.push_back(Chosen(std::move(records)));
      return result;
    }

    StatusOr<bool> HasMeasurementNamed(std::string_view name, const Record& record) override {
      return std::any_of(store_.records_.begin(), store_.records_.end(), [&](const Record& r) {
        return WorkloadName(r) == name && r.target == record.target && r.steps == record.steps &&
               r.error == record.error && r.timestamp_s == record.timestamp_s;
      });
    }

    StatusOr<KeyBinding> KeyBindingOf(std::string_view key) override {
      KeyBinding bearers;
      for (const auto& [of, computation] : store_.computations_) {
        if (of.first == key) bearers.ids.push_back(of.second);
      }
      bearers.bound = store_.bindings_.contains(key);
      return bearers;
    }

    StatusOr<std::vector<std::string>> KeysOfId(std::string_view workload_id) override {
      std::vector<std::string> keys;
      for (const auto& [of, computation] : store_.computations_) {
        if (of.second == workload_id) keys.push_back(of.first);
      }
      return keys;
    }

    StatusOr<std::vector<AutotvmRecord>> AutotvmRecords(const AutotvmFilter& filter,
                                                        int64_t after_id, uint32_t limit) override {
      std::vector<AutotvmRecord> found;
      for (const AutotvmRecord& r : store_.autotvm_records_) {
        const bool matches = r.id > after_id && (filter.include_errors || r.error == kNoError) &&
                             (filter.task.empty() || r.task == filter.task) &&
                             r.target.starts_with(filter.target);
        if (matches && found.size() < limit) found.push_back(r);
      }
      return found;
    }

   private:
    static bool Matches(const Record& r, const RecordFilter& filter) {
      return r.id > filter.after_id && (filter.include_errors || r.error == kNoError) &&
             (filter.job_id.empty() || r.job_id == filter.job_id) &&
             r.target.starts_with(filter.target) &&
             (filter.device.empty() || r.device == filter.device) &&
             r.timestamp_s >= filter.since_s && r.timestamp_s <= filter.until_s &&
             r.workload_key.starts_with(filter.key_prefix);
    }

    const MemoryStore& store_;
  };

  using TrialKey = std::pair<std::string, uint32_t>;

  // Returns the ids of the records that are known; 0 for a new record.
  StatusOr<std::vector<int64_t>> KnownTrials(std::span<const Record> records) {
    KILN_RETURN_IF_ERROR(CheckBatch(records));
    std::vector<int64_t> ids;
    for (const Record& record : records) {
      if (FindJob(record.job_id) == nullptr) return NotFound("no job {}", record.job_id);
      const auto there = trials_.find({record.job_id, record.trial});
      ids.push_back(there == trials_.end() ? 0 : there->second);
      if (ids.back() != 0 && !SameTrial(*FindRecord(ids.back()), record)) {
        return AlreadyExists("job {} has a record of trial {} already", record.job_id,
                             record.trial);
      }
    }
    return ids;
  }

  int64_t Insert(Record record) {
    record.id = ++last_id_;
    trials_[{record.job_id, record.trial}] = record.id;
    Know(ComputationOf(record));
    records_.push_back(std::move(record));
    return records_.back().id;
  }

  uint32_t NextTrial(std::string_view job_id) const {
    uint32_t next = 0;
    for (const Record& record : records_) {
      if (record.job_id == job_id) next = std::max(next, record.trial + 1);
    }
    return next;
  }

  // Returns nullptr if there is no such record.
  const Record* FindRecord(int64_t id) const {
    const auto at = std::lower_bound(records_.begin(), records_.end(), id,
                                     [](const Record& r, int64_t of) { return r.id < of; });
    return at == records_.end() || at->id != id ? nullptr : &*at;
  }

  static bool IsNamed(const Record& record, const Names& names) {
    return std::find(names.begin(), names.end(), WorkloadName(record)) != names.end();
  }

  void Know(const Computation& computation) {
    if (computation.id.empty()) return;
    computations_.try_emplace({computation.key, computation.id}, computation);
  }

  void Unbind(const std::pair<std::string, std::string>& key_and_id) {
    const auto is_of = [&](const auto& row) {
      return row.workload_key == key_and_id.first && row.workload_id == key_and_id.second;
    };
    bool borne = std::any_of(tasks_.begin(), tasks_.end(),
                             [&](const auto& task) { return is_of(task.second); });
    for (Record& record : records_) {
      if (!is_of(record)) continue;
      if (!IsImported(record)) {
        borne = true;
        continue;
      }
      record.workload_id.clear();
      record.dag.clear();
      record.flop_count = 0;
    }
    if (!borne) computations_.erase(key_and_id);
  }

  JobRow* FindJob(std::string_view job_id) {
    auto it = std::find_if(jobs_.begin(), jobs_.end(),
                           [&](const JobRow& job) { return job.id == job_id; });
    return it == jobs_.end() ? nullptr : &*it;
  }

  Status InsertTasks(std::string_view job_id, std::span<const TaskRow> tasks) {
    std::map<std::pair<std::string, uint32_t>, TaskRow> added;
    for (const TaskRow& task : tasks) {
      KILN_ASSIGN_OR_RETURN(TaskRow row, TaskOfJob(task, job_id));
      std::pair key(row.job_id, row.index);
      if (tasks_.contains(key) || !added.try_emplace(key, std::move(row)).second) {
        return AlreadyExists("job {} has a task {} already", job_id, task.index);
      }
    }
    for (const auto& [key, task] : added) {
      Know(ComputationOf(task));
    }
    tasks_.merge(added);
    return OkStatus();
  }

  template <typename Predicate>
  std::vector<Record> Select(Predicate matches) const {
    std::vector<Record> found;
    std::copy_if(records_.begin(), records_.end(), std::back_inserter(found), matches);
    return found;
  }

  // Returns the record that is chosen of at least one. Looks at as many as the SQLite store does.
  static Record Chosen(std::vector<const Record*> records) {
    const size_t looked_at = std::min(records.size(), kMostRivals);
    std::partial_sort(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(looked_at),
                      records.end(),
                      [](const Record* a, const Record* b) { return BetterThan(*a, *b); });
    records.resize(looked_at);
    std::vector<Rival> rivals;
    for (const Record* record : records) rivals.push_back(RivalOf(*record));
    ChosenRecord chosen = ChooseRecord(rivals);
    const auto at = std::ranges::find(records, chosen.id, &Record::id);
    Record record = **at;
    record.equal_ids = std::move(chosen.equal_ids);
    return record;
  }

  template <typename Predicate>
  std::optional<Record> Best(Predicate matches) {
    std::vector<const Record*> found;
    for (const Record& record : records_) {
      if (record.error == kNoError && matches(record)) found.push_back(&record);
    }
    return found.empty() ? std::nullopt : std::optional(Chosen(std::move(found)));
  }

  std::mutex mutex_;
  // In the order in which they were added.
  std::vector<JobRow> jobs_;
  std::map<std::pair<std::string, uint32_t>, TaskRow> tasks_;
  // Ordered by id.
  std::vector<Record> records_;
  // Ordered by id.
  std::vector<AutotvmRecord> autotvm_records_;
  int64_t last_id_ = 0, last_autotvm_id_ = 0;
  // Record ids by trial.
  std::map<TrialKey, int64_t> trials_;
  // Rounds by job.
  std::map<std::string, std::vector<RoundRow>> rounds_;
  // Computations by key and id.
  std::map<std::pair<std::string, std::string>, Computation> computations_;
  // Ids of computations by key.
  std::map<std::string, std::string, std::less<>> bindings_;
  std::map<std::pair<std::string, int32_t>, CalibrationRow> calibrations_;
  std::map<std::string, ModelRow, std::less<>> models_;
  std::map<std::pair<std::string, std::string>, PinnedSchedule> pinned_;
  std::map<std::string, UserRow> users_;
  // In the order in which they were added.
  std::deque<AuditRow> audit_;
  int64_t last_audit_id_ = 0;
  SchedulerIdentity identity_;
};

}  // namespace

std::unique_ptr<Store> NewMemoryStore() { return std::make_unique<MemoryStore>(); }

}  // namespace kiln::store
