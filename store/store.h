// The store: jobs, tasks and records, kept for ever.
//
// Implementations: OpenSqliteStore (sqlite_store.h) and NewMemoryStore (memory_store.h);
// store_testing.h begins one suite that both pass. All methods are thread-safe. Writes wait for
// each other (one of the SQLite store lasts an fsync), reads of the SQLite store for nothing. A
// read sees what was written before it began. Values are copied in and out; nothing returned refers
// to the store.
//
// Durability: when a method that writes returns OK, the change is committed: it survives kill -9
// and, in the SQLite store, a loss of power. When it returns an error, nothing was changed.
//
// "Best" is BetterThan() of record.h: smallest Cost(); a record that was stopped early
// only wins where no complete one exists; records with an error never win.
//
// Of which computation a record is: of that whose identity it has. One without an identity, that of
// an imported line, counts as one of the computation that bears its key, as long as the store knows
// one such computation only; from the second one on it is of none of them. Known are the
// computations of all tasks and records, and those of AddComputations. Where BindKey has said for
// which computation a key stands, records without an identity count for none, and BindRecords gives
// those that fit their identity (bind.h).
//
// Errors: NotFound for a job, task or record that is not there; AlreadyExists for a second one of
// the same identity; InvalidArgument for what ValidateRecord refuses; the rest is of the medium
// (sqlite.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/autotvm_record.h"
#include "store/record.h"

namespace kiln::store {

// Trials of a job, counted.
struct TrialCounts {
  int64_t total = 0;
  std::array<int64_t, kNumErrorKinds> by_error{};
  std::map<uint32_t, int64_t> by_task;  // tasks without trials are absent
  uint32_t next_trial = 0;      // one past the largest number used: where a resumed job goes on
  double run_s = 0;             // sum over all: what the devices were busy with
  double remeasured_run_s = 0;  // likewise, with further readings of the best
  int64_t runners = 0;          // that measured them
};

// What further readings said of a record: fields of the same names in record.h, or with an error
// that it does not hold up (its costs go then).
struct Remeasurement {
  int64_t id = 0;
  std::vector<double> costs_s = {};
  std::optional<double> confidence_s = {};
  uint32_t readings = 0;
  double run_s = 0;  // of all of them so far
  std::string device = {};
  int error = kNoError;
  std::string message = {};
};

// What the unscheduled loops of a task cost.
struct ReferenceCost {
  std::string job_id;
  uint32_t task_index = 0;
  double cost_s = 0;
};

// Who opened the database for writing, to others: the same id each time, and a number that grows.
struct SchedulerIdentity {
  std::string id;
  int64_t incarnation = 0;
};

// All set conditions must hold.
struct RecordFilter {
  std::string job_id = {};                                // "" = all jobs
  WorkloadRef workload = {};                              // both empty = all workloads
  std::string target = {};                                // only targets that start so
  std::string device = {};                                // "" = all devices
  int64_t since_s = std::numeric_limits<int64_t>::min();  // timestamps from here on
  int64_t until_s = std::numeric_limits<int64_t>::max();  // and up to here, it included
  std::string key_prefix = {};                            // only workload keys that start so
  bool include_errors = false;
  int64_t after_id = 0;              // only records with a larger id
  std::optional<uint32_t> top = {};  // only so many, the best ones, best first; none: all
};

class Store {
 public:
  virtual ~Store() = default;

  // ---- jobs
  // The job and its tasks, all or nothing. A new job has made no progress. Each task's job_id must
  // be the job's, or "" for it.
  virtual Status AddJob(const JobRow& job, std::span<const TaskRow> tasks) = 0;
  Status AddJob(const JobRow& job) { return AddJob(job, {}); }
  // Sets started_ms on the first change to running and finished_ms on the change to a final state.
  // A final state stays: another one is refused with FailedPrecondition (of cancel and success, the
  // first wins); the same one again is OK and changes nothing. Each change to running counts
  // JobRow::fruitless_runs up; one back to queued, by a run that is left in order, ends the count.
  virtual Status UpdateJobState(std::string_view job_id, JobState state, std::string_view message,
                                int64_t now_ms) = 0;
  // A job that failed or was cancelled is queued again, with all that it has; one that is not final
  // too. FailedPrecondition when it succeeded.
  virtual Status ReopenJob(std::string_view job_id) = 0;
  virtual Status SetProgress(std::string_view job_id, const JobProgress& progress) = 0;
  virtual StatusOr<JobRow> GetJob(std::string_view job_id) = 0;
  // Newest first. No limit: all.
  virtual StatusOr<std::vector<JobRow>> ListJobs(std::optional<uint32_t> limit) = 0;
  // Queued and running ones in the order they were added.
  virtual StatusOr<std::vector<JobRow>> LoadUnfinishedJobs() = 0;

  // ---- tasks
  // All or nothing.
  virtual Status AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) = 0;
  virtual StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) = 0;
  virtual Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) = 0;

  // ---- records
  // Returns the new id (`record.id` is ignored). A result that is delivered twice counts once: the
  // same one of (job_id, trial) again (SameTrial) has the id of the first, another one is
  // AlreadyExists.
  StatusOr<int64_t> AddRecord(const Record& record);
  // All or nothing, in one commit. Ids in the order given. The count of the jobs' fruitless runs
  // ends.
  virtual StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records,
                                                    std::span<const ReferenceCost> costs) = 0;
  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records) {
    return AddRecords(records, {});
  }
  // Those that are no HasMeasurement yet, as trials of `job_id` after its last one, in one commit.
  // Returns how many they were. What the records say of job and trial is ignored.
  virtual StatusOr<int64_t> ImportRecords(std::string_view job_id,
                                          std::span<const Record> records) = 0;
  virtual StatusOr<Record> GetRecord(int64_t id) = 0;
  // Errors included, ordered by trial. No records for an unknown job.
  virtual StatusOr<std::vector<Record>> RecordsOfJob(std::string_view job_id,
                                                     uint32_t from_trial) = 0;
  // Errors included, ordered by id. target "" = any.
  StatusOr<std::vector<Record>> RecordsOfWorkload(const WorkloadRef& workload,
                                                  std::string_view target);
  // The newest `limit` records of the target, whatever their workload; errors included, ordered by
  // id. Reads no more than it returns where the newest records are of this target.
  virtual StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) = 0;
  // Over all jobs, for each computation that is meant and each target that has one the best record,
  // ordered by both. Each has the identity of the computation as one of which it counts. target ""
  // = any. Cost: a look-up for each of them, however many records there are.
  StatusOr<std::vector<Record>> BestRecords(const WorkloadRef& workload, std::string_view target);
  virtual StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id,
                                                    uint32_t task_index) = 0;
  // The newest right record of the task's program without a schedule: steps "[]".
  virtual StatusOr<std::optional<Record>> UnscheduledOfJob(std::string_view job_id,
                                                           uint32_t task_index) = 0;
  virtual StatusOr<TrialCounts> CountTrials(std::string_view job_id) = 0;
  // All or nothing, in one commit. A record that failed before stays failed.
  virtual Status SetRemeasurements(std::span<const Remeasurement> remeasured) = 0;
  // Is there a record of the same workload, target, steps, error and timestamp, in whatever job?
  // What makes an imported line a duplicate (its costs are rounded, so they can't tell). Where one
  // of the two has no identity, the same key is enough.
  StatusOr<bool> HasMeasurement(const Record& record);

  // Those that are there. Returns how many there were. All or nothing, in one commit. A job keeps
  // its counts of what is left; the numbers of its trials are not given again while it has later
  // ones.
  virtual StatusOr<int64_t> DeleteRecords(std::span<const int64_t> ids) = 0;

  // ---- autotvm's records
  // Those that are not there, in one commit. Returns how many they were. There is what is equal in
  // all but what a log of another run of the same measurement could not have in common: target,
  // task, arguments, configuration, error and timestamp.
  virtual StatusOr<int64_t> ImportAutotvmRecords(std::span<const AutotvmRecord> records) = 0;
  // Those that are there. Returns how many there were. All or nothing, in one commit. Their numbers
  // are not given again.
  virtual StatusOr<int64_t> DeleteAutotvmRecords(std::span<const int64_t> ids) = 0;

  // ---- computations
  // From now on these are known. All or nothing; what is known already changes nothing.
  virtual Status AddComputations(std::span<const Computation> computations) = 0;
  // All that bear the key, ordered by id.
  virtual StatusOr<std::vector<Computation>> ComputationsOfKey(std::string_view key) = 0;
  // From now on the key, in what is imported, stands for this computation, which is known under it.
  // A key stands for one at most: imported records that were bound to another one by their key have
  // no identity again.
  virtual Status BindKey(const Computation& computation) = 0;
  // None: nobody has said.
  virtual StatusOr<std::optional<Computation>> BoundTo(std::string_view key) = 0;
  // Those of the records that have the computation's key and no identity are of this computation.
  // Returns how many there were. All or nothing, in one commit.
  virtual StatusOr<int64_t> BindRecords(const Computation& computation,
                                        std::span<const int64_t> ids) = 0;

  // ---- rounds
  // Returns its number; row.number is ignored.
  virtual StatusOr<uint32_t> AddRound(const RoundRow& row) = 0;
  // Numbers from `from` on, in order. None for an unknown job.
  virtual StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) = 0;

  // ---- calibrations
  // Replaces that of the same device and capability.
  virtual Status SetCalibration(const CalibrationRow& row) = 0;
  // Ordered by device and capability.
  virtual StatusOr<std::vector<CalibrationRow>> Calibrations() = 0;

  // ---- trained cost models
  // Of `row` the name, the time, the info and the file count. The same file again is OK and changes
  // nothing. Another one of this name is replaced if `replace`, else it is AlreadyExists.
  virtual Status AddModel(const ModelRow& row, bool replace) = 0;
  Status AddModel(const ModelRow& row) { return AddModel(row, /*replace=*/false); }
  // With its file.
  virtual StatusOr<ModelRow> GetModel(std::string_view name) = 0;
  // Without their files, ordered by name.
  virtual StatusOr<std::vector<ModelRow>> Models() = 0;
  virtual Status DeleteModel(std::string_view name) = 0;

  // ---- schedules that somebody has set
  // Replaces that of the same computation and text of a target.
  virtual Status PinSchedule(const PinnedSchedule& pinned) = 0;
  // Of a computation, "" = of all; ordered by computation and target.
  virtual StatusOr<std::vector<PinnedSchedule>> PinnedSchedules(std::string_view workload_id) = 0;
  // Returns whether there was one.
  virtual StatusOr<bool> UnpinSchedule(std::string_view workload_id, std::string_view target) = 0;

  // ---- the scheduler
  // A new incarnation, larger than all before.
  virtual StatusOr<SchedulerIdentity> NextIncarnation() = 0;

  // Calls `visit` for each record that matches, by ascending id (with filter.top the best first),
  // until it returns an error, which is then returned. Reads in pages of bounded memory and holds
  // no lock while `visit` runs: it may take its time and call the store. Records added meanwhile
  // may be seen, records deleted meanwhile may not.
  Status ForEachRecord(const RecordFilter& filter,
                       const std::function<Status(const Record&)>& visit);

  // The same for autotvm's records.
  Status ForEachAutotvmRecord(const AutotvmFilter& filter,
                              const std::function<Status(const AutotvmRecord&)>& visit);

  // ---- below the rest: for implementations
  // WorkloadName of the records that are meant; none: it is not asked.
  using Names = std::vector<std::string>;
  // The computations that bear a key, ordered by id.
  struct Bearers {
    std::vector<std::string> ids;
    bool bound = false;  // by BindKey
  };

  // What is found in one state of the store.
  class Snapshot {
   public:
    virtual ~Snapshot() = default;

    // The first `limit` that match, in the order of ForEachRecord; their workload is one of
    // `names`, whatever the filter says of it.
    virtual StatusOr<std::vector<int64_t>> Ids(const RecordFilter& filter, const Names& names,
                                               uint32_t limit) = 0;
    // In the order of the ids; those that are not there are left out.
    virtual StatusOr<std::vector<Record>> Records(std::span<const int64_t> ids) = 0;
    // At least one name; as RecordsOfWorkload.
    virtual StatusOr<std::vector<Record>> RecordsNamed(const Names& names,
                                                       std::string_view target) = 0;
    // The best for each target, ordered by target.
    virtual StatusOr<std::vector<Record>> BestNamed(std::string_view name,
                                                    std::string_view target) = 0;
    virtual StatusOr<bool> HasMeasurementNamed(std::string_view name, const Record& record) = 0;
    virtual StatusOr<Bearers> BearersOf(std::string_view key) = 0;
    virtual StatusOr<std::vector<std::string>> KeysOfId(std::string_view workload_id) = 0;
    // The first `limit` with a larger id that match, by id.
    virtual StatusOr<std::vector<AutotvmRecord>> AutotvmRecords(const AutotvmFilter& filter,
                                                                int64_t after_id,
                                                                uint32_t limit) = 0;
  };

  // Calls `read` once, unless the medium fails, and returns what it returns. `read` calls nothing
  // else of the store.
  virtual Status Read(const std::function<Status(Snapshot&)>& read) = 0;

 protected:
  // HasMeasurement of one record after another, while those that it has not are added. Which
  // computations bear a key is asked once: between two calls none becomes known but by a record
  // that was asked for.
  class Measurements {
   public:
    explicit Measurements(Snapshot& snapshot) : snapshot_(snapshot) {}
    StatusOr<bool> Has(const Record& record);

   private:
    StatusOr<const Names*> NamesOfKey(const std::string& key);

    Snapshot& snapshot_;
    std::map<std::string, Names> names_;  // by key, for records without an identity
  };

 private:
  static StatusOr<Names> NamesOfComputation(Snapshot& snapshot, const WorkloadRef& workload);
  static StatusOr<std::vector<Names>> NamesOfEach(Snapshot& snapshot, const WorkloadRef& workload);
  static StatusOr<Names> NamesOfAll(Snapshot& snapshot, const WorkloadRef& workload);
};

// A job that goes on would measure again what it misses: FailedPrecondition where a record's job
// has not ended.
StatusOr<int64_t> DeleteRecordsOfEndedJobs(Store& store, std::span<const int64_t> ids);

// The task as a row of `job_id`; refused when it names another job.
StatusOr<TaskRow> TaskOfJob(const TaskRow& task, std::string_view job_id);

// InvalidArgument: it has no identity, no key or no DAG.
Status CheckComputation(const Computation& computation);

// The shared rules of AddRecords: each may be kept, and no trial is there twice.
Status CheckBatch(std::span<const Record> records);
// `a` and `b`, of one (job, trial), are one result.
bool SameTrial(const Record& a, const Record& b);

// The shared rule of SetRemeasurements.
StatusOr<Record> WithRemeasurement(Record record, const Remeasurement& remeasured);

// The shared rule of UpdateJobState: false when nothing is to change.
StatusOr<bool> ApplyJobState(JobRow& job, JobState state, std::string_view message, int64_t now_ms);

// The shared rule of ReopenJob.
Status ApplyReopen(JobRow& job);

}  // namespace kiln::store
