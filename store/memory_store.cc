#include "store/memory_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/unique_id.h"

namespace kiln::store {
namespace {

class MemoryStore final : public Store {
 public:
  using Store::AddJob;

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

  StatusOr<JobRow> GetJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    const JobRow* job = FindJob(job_id);
    if (job == nullptr) return NotFound("no job {}", job_id);
    return *job;
  }

  StatusOr<std::vector<JobRow>> ListJobs(uint32_t limit) override {
    std::lock_guard lock(mutex_);
    const size_t count = limit == 0 ? jobs_.size() : std::min<size_t>(limit, jobs_.size());
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

  StatusOr<int64_t> AddRecord(const Record& record) override {
    KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, AddRecords({&record, 1}));
    return ids.front();
  }

  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records) override {
    std::lock_guard lock(mutex_);
    std::set<TrialKey> added;
    for (const Record& record : records) {
      KILN_RETURN_IF_ERROR(ValidateRecord(record));
      if (FindJob(record.job_id) == nullptr) return NotFound("no job {}", record.job_id);
      TrialKey key(record.job_id, record.trial);
      if (trials_.contains(key) || !added.insert(std::move(key)).second) {
        return AlreadyExists("job {} has a record of trial {} already", record.job_id,
                             record.trial);
      }
    }
    std::vector<int64_t> ids;
    for (const Record& record : records) {
      records_.push_back(record);
      records_.back().id = static_cast<int64_t>(records_.size());
      ids.push_back(records_.back().id);
    }
    trials_.merge(added);
    return ids;
  }

  StatusOr<Record> GetRecord(int64_t id) override {
    std::lock_guard lock(mutex_);
    if (id < 1 || id > static_cast<int64_t>(records_.size())) return NotFound("no record {}", id);
    return records_[id - 1];
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

  StatusOr<std::vector<Record>> RecordsOfWorkload(std::string_view workload_key,
                                                  std::string_view target) override {
    std::lock_guard lock(mutex_);
    return Select([&](const Record& r) {
      return r.workload_key == workload_key && (target.empty() || r.target == target);
    });
  }

  StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) override {
    std::lock_guard lock(mutex_);
    std::vector<Record> records = Select([&](const Record& r) { return r.target == target; });
    if (records.size() > limit) records.erase(records.begin(), records.end() - limit);
    return records;
  }

  StatusOr<std::optional<Record>> BestRecord(std::string_view workload_key,
                                             std::string_view target) override {
    std::lock_guard lock(mutex_);
    return Best([&](const Record& r) {
      return r.workload_key == workload_key && (target.empty() || r.target == target);
    });
  }

  StatusOr<std::vector<Record>> BestPerTarget(std::string_view workload_key) override {
    std::lock_guard lock(mutex_);
    std::map<std::string, Record> best;
    for (const Record& record : records_) {
      if (record.workload_key != workload_key || record.error != kNoError) continue;
      auto [it, inserted] = best.try_emplace(record.target, record);
      if (!inserted && BetterThan(record, it->second)) it->second = record;
    }
    std::vector<Record> result;
    for (auto& [target, record] : best) result.push_back(std::move(record));
    return result;
  }

  StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id, uint32_t task_index) override {
    std::lock_guard lock(mutex_);
    return Best([&](const Record& r) { return r.job_id == job_id && r.task_index == task_index; });
  }

  StatusOr<TrialCounts> CountTrials(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    TrialCounts counts;
    std::set<std::string> runners;
    for (const Record& record : records_) {
      if (record.job_id != job_id) continue;
      counts.run_s += record.run_s;
      counts.final_run_s += record.final_run_s;
      if (!record.runner.empty()) runners.insert(record.runner);
      ++counts.total;
      ++counts.by_error[record.error];
      ++counts.by_task[record.task_index];
      counts.next_trial = std::max(counts.next_trial, record.trial + 1);
    }
    counts.runners = static_cast<int64_t>(runners.size());
    return counts;
  }

  Status SetFinals(std::span<const Finals> finals) override {
    std::lock_guard lock(mutex_);
    std::vector<Record> records;
    for (const Finals& f : finals) {
      if (f.id < 1 || f.id > static_cast<int64_t>(records_.size())) {
        return NotFound("no record {}", f.id);
      }
      KILN_ASSIGN_OR_RETURN(Record record, WithFinals(records_[f.id - 1], f));
      records.push_back(std::move(record));
    }
    for (Record& record : records) records_[record.id - 1] = std::move(record);
    return OkStatus();
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

  StatusOr<SchedulerIdentity> NextIncarnation() override {
    std::lock_guard lock(mutex_);
    if (identity_.id.empty()) identity_.id = UniqueId();
    ++identity_.incarnation;
    return identity_;
  }

  StatusOr<bool> HasMeasurement(const Record& record) override {
    std::lock_guard lock(mutex_);
    return std::any_of(records_.begin(), records_.end(), [&](const Record& r) {
      return r.workload_key == record.workload_key && r.target == record.target &&
             r.steps == record.steps && r.error == record.error &&
             r.timestamp_s == record.timestamp_s;
    });
  }

 protected:
  StatusOr<std::vector<Record>> Page(const RecordFilter& filter, uint32_t limit) override {
    std::lock_guard lock(mutex_);
    std::vector<Record> page;
    for (const Record& r : records_) {
      if (page.size() == limit) break;
      if (r.id > filter.after_id && (filter.include_errors || r.error == kNoError) &&
          (filter.job_id.empty() || r.job_id == filter.job_id) &&
          (filter.workload_key.empty() || r.workload_key == filter.workload_key) &&
          (filter.target.empty() || r.target == filter.target)) {
        page.push_back(r);
      }
    }
    return page;
  }

 private:
  using TrialKey = std::pair<std::string, uint32_t>;

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
    tasks_.merge(added);
    return OkStatus();
  }

  template <typename Predicate>
  std::vector<Record> Select(Predicate matches) {
    std::vector<Record> found;
    std::copy_if(records_.begin(), records_.end(), std::back_inserter(found), matches);
    return found;
  }

  template <typename Predicate>
  std::optional<Record> Best(Predicate matches) {
    const Record* best = nullptr;
    for (const Record& record : records_) {
      if (record.error != kNoError || !matches(record)) continue;
      if (best == nullptr || BetterThan(record, *best)) best = &record;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  std::mutex mutex_;
  std::vector<JobRow> jobs_;  // in the order they were added
  std::map<std::pair<std::string, uint32_t>, TaskRow> tasks_;
  std::vector<Record> records_;  // id = index + 1
  std::set<TrialKey> trials_;
  std::map<std::string, std::vector<RoundRow>> rounds_;  // by job
  SchedulerIdentity identity_;
};

}  // namespace

std::unique_ptr<Store> NewMemoryStore() { return std::make_unique<MemoryStore>(); }

}  // namespace kiln::store
