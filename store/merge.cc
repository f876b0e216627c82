#include "store/merge.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "store/import_log.h"

namespace kiln::store {
namespace {

constexpr size_t kBatchRecords = 8192;
constexpr size_t kBatchBytes = size_t{16} << 20;

size_t BytesOf(const Record& record) {
  return sizeof(record) + record.steps.size() + record.dag.size() + record.workload_key.size() +
         record.message.size() + record.times.size() + record.device_state.size();
}

class Merge {
 public:
  Merge(Store& from, Store& into, int64_t now_ms) : from_(from), into_(into), now_ms_(now_ms) {}

  StatusOr<MergeResult> Run() {
    KILN_ASSIGN_OR_RETURN(std::vector<JobRow> jobs, from_.ListJobs(std::nullopt));
    // Oldest jobs first, in the order in which they were added.
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      KILN_RETURN_IF_ERROR(TakeJob(*job));
    }
    const RecordFilter all = {.include_errors = true};
    KILN_RETURN_IF_ERROR(
        from_.ForEachRecord(all, [&](const Record& record) { return TakeRecord(record); }));
    KILN_RETURN_IF_ERROR(Flush());
    KILN_RETURN_IF_ERROR(CountNew());
    KILN_RETURN_IF_ERROR(TakeAutotvm());
    KILN_RETURN_IF_ERROR(TakeCalibrations());
    KILN_RETURN_IF_ERROR(TakeModels());
    KILN_RETURN_IF_ERROR(TakePinnedSchedules());
    return std::move(result_);
  }

 private:
  void Conflict(std::string what) {
    if (++result_.conflicts == 1) result_.first_conflict = std::move(what);
  }

  Status TakeJob(const JobRow& job) {
    const StatusOr<JobRow> there = into_.GetJob(job.id);
    if (there.ok()) {
      const bool same = there->spec == job.spec && there->created_ms == job.created_ms;
      // Imports of both stores go into one job.
      if (job.id == kImportJob) return OkStatus();
      if (same) {
        KILN_ASSIGN_OR_RETURN(const TrialCounts counts, into_.CountTrials(job.id));
        shared_jobs_.insert(job.id);
        trials_before_ += counts.total;
        return OkStatus();
      }
      others_.insert(job.id);
      Conflict(fmt::format("there is another job {}", job.id));
      return OkStatus();
    }
    if (there.status().code() != StatusCode::kNotFound) return there.status();
    JobRow ended = job;
    if (!IsFinal(job.state)) {
      ended.state = JobState::kCancelled;
      ended.message = "had not ended when its database was merged";
      ended.finished_ms = now_ms_;
    }
    KILN_ASSIGN_OR_RETURN(std::vector<TaskRow> tasks, from_.TasksOfJob(job.id));
    KILN_RETURN_IF_ERROR(into_.AddJob(ended, tasks));
    KILN_RETURN_IF_ERROR(into_.SetProgress(job.id, job.progress));
    KILN_ASSIGN_OR_RETURN(const std::vector<RoundRow> rounds, from_.RoundsOfJob(job.id, 0));
    for (const RoundRow& round : rounds) KILN_RETURN_IF_ERROR(into_.AddRound(round).status());
    ++result_.jobs;
    return OkStatus();
  }

  Status TakeRecord(const Record& record) {
    if (others_.contains(record.job_id)) {
      Conflict(
          fmt::format("trial {}/{} belongs to a job that differs from the one with its id there",
                      record.job_id, record.trial));
      return OkStatus();
    }
    KILN_RETURN_IF_ERROR(TakeBinding(record));
    (record.job_id == kImportJob ? imported_ : measured_).push_back(record);
    batch_bytes_ += BytesOf(record);
    const size_t records = imported_.size() + measured_.size();
    return records < kBatchRecords && batch_bytes_ < kBatchBytes ? OkStatus() : Flush();
  }

  // Takes the binding of a key, once for each key of imported records.
  Status TakeBinding(const Record& record) {
    if (!IsImported(record) || !keys_.insert(record.workload_key).second) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const auto bound, from_.BoundTo(record.workload_key));
    if (!bound.has_value()) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const auto there, into_.BoundTo(record.workload_key));
    if (!there.has_value()) return into_.BindKey(*bound);
    if (there->id != bound->id) {
      Conflict(fmt::format("{} is bound to another computation there", record.workload_key));
    }
    return OkStatus();
  }

  Status Flush() {
    batch_bytes_ = 0;
    if (!imported_.empty()) {
      KILN_ASSIGN_OR_RETURN(const int64_t added, into_.ImportRecords(kImportJob, imported_));
      result_.records += added;
      result_.duplicates += static_cast<int64_t>(imported_.size()) - added;
      imported_.clear();
    }
    KILN_RETURN_IF_ERROR(FlushMeasured());
    measured_.clear();
    return OkStatus();
  }

  Status FlushMeasured() {
    if (measured_.empty()) return OkStatus();
    const Status all = Add(measured_);
    if (all.code() != StatusCode::kAlreadyExists) return all;
    // The other store has another record of some trial: all records but such ones are taken.
    for (const Record& record : measured_) {
      const Status added = Add({&record, 1});
      if (added.code() == StatusCode::kAlreadyExists) {
        Conflict(std::string(Message(added)));
      } else {
        KILN_RETURN_IF_ERROR(added);
      }
    }
    return OkStatus();
  }

  Status Add(std::span<const Record> records) {
    KILN_RETURN_IF_ERROR(into_.AddRecords(records).status());
    for (const Record& record : records) {
      ++(shared_jobs_.contains(record.job_id) ? taken_of_shared_ : result_.records);
    }
    return OkStatus();
  }

  // Counts the new records of jobs that both stores have by the jobs' counts, since AddRecords does
  // not say which records are new.
  Status CountNew() {
    int64_t added = -trials_before_;
    for (const std::string& job : shared_jobs_) {
      KILN_ASSIGN_OR_RETURN(const TrialCounts counts, into_.CountTrials(job));
      added += counts.total;
    }
    result_.records += added;
    result_.duplicates += taken_of_shared_ - added;
    return OkStatus();
  }

  Status TakeAutotvm() {
    std::vector<AutotvmRecord> batch;
    const auto flush = [&]() -> Status {
      KILN_ASSIGN_OR_RETURN(const int64_t added, into_.ImportAutotvmRecords(batch));
      result_.autotvm += added;
      result_.duplicates += static_cast<int64_t>(batch.size()) - added;
      batch.clear();
      return OkStatus();
    };
    KILN_RETURN_IF_ERROR(
        from_.ForEachAutotvmRecord({.include_errors = true}, [&](const AutotvmRecord& record) {
          batch.push_back(record);
          return batch.size() < kBatchRecords ? OkStatus() : flush();
        }));
    return flush();
  }

  // Copies calibrations. If the other store has one of the same device, it keeps its own.
  Status TakeCalibrations() {
    KILN_ASSIGN_OR_RETURN(const std::vector<CalibrationRow> there, into_.Calibrations());
    KILN_ASSIGN_OR_RETURN(const std::vector<CalibrationRow> rows, from_.Calibrations());
    for (const CalibrationRow& row : rows) {
      const bool has = std::ranges::any_of(there, [&](const CalibrationRow& other) {
        return other.device == row.device && other.compute_capability == row.compute_capability;
      });
      if (!has) KILN_RETURN_IF_ERROR(into_.SetCalibration(row));
    }
    return OkStatus();
  }

  Status TakeModels() {
    KILN_ASSIGN_OR_RETURN(const std::vector<ModelRow> rows, from_.Models());
    for (const ModelRow& listed : rows) {
      KILN_ASSIGN_OR_RETURN(const ModelRow row, from_.GetModel(listed.name));
      const Status added = into_.AddModel(row);
      if (added.code() == StatusCode::kAlreadyExists) {
        Conflict(std::string(Message(added)));
      } else {
        KILN_RETURN_IF_ERROR(added);
      }
    }
    return OkStatus();
  }

  // Copies pinned schedules. If the other store has one for the same computation and target, it
  // keeps its own.
  Status TakePinnedSchedules() {
    KILN_ASSIGN_OR_RETURN(const std::vector<PinnedSchedule> rows, from_.PinnedSchedules(""));
    for (const PinnedSchedule& row : rows) {
      KILN_ASSIGN_OR_RETURN(const std::vector<PinnedSchedule> there,
                            into_.PinnedSchedules(row.workload_id));
      const auto same = std::ranges::find(there, row.target, &PinnedSchedule::target);
      if (same == there.end()) {
        KILN_RETURN_IF_ERROR(into_.PinSchedule(row));
      } else if (same->steps != row.steps) {
        Conflict(fmt::format("another schedule is set for {}", row.workload_id));
      }
    }
    return OkStatus();
  }

  Store& from_;
  Store& into_;
  const int64_t now_ms_;
  MergeResult result_;
  // Ids that stand for another job in `into`.
  std::set<std::string> others_;
  // Keys of imported records whose binding was taken.
  std::set<std::string> keys_;
  std::vector<Record> imported_, measured_;
  size_t batch_bytes_ = 0;
  // Jobs that both stores have, the number of their trials in `into` before, and the number of
  // records taken from them.
  std::set<std::string> shared_jobs_;
  int64_t trials_before_ = 0, taken_of_shared_ = 0;
};

}  // namespace

StatusOr<MergeResult> MergeStore(Store& from, Store& into, int64_t now_ms) {
  return Merge(from, into, now_ms).Run();
}

}  // namespace kiln::store
