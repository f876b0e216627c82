// The store keeps jobs, tasks and records for ever.
//
// Implementations: OpenSqliteStore (sqlite_store.h) and NewMemoryStore (memory_store.h); both pass
// the suite that begins with store_testing.h. All methods are thread-safe. Writes wait for each
// other (a write of the SQLite store lasts an fsync), reads of the SQLite store wait for nothing. A
// read sees everything that was written before it began. Values are copied in and out; nothing
// returned refers to the store.
//
// Durability: when a method that writes returns OK, the change is committed. It survives kill -9
// and, in the SQLite store, a loss of power. When the method returns an error, nothing was changed.
//
// "Best" means BetterThan() of record.h: the smallest Cost(). A record that was stopped early only
// wins if there is no complete one; records with an error never win.
//
// A record belongs to the computation whose identity it has. A record of an imported line has no
// identity: it counts for the computation with its key, as long as the store knows only one such
// computation; as soon as it knows a second one, the record counts for neither. The store knows the
// computations of all tasks and records, and those of AddComputations. If BindKey has said for
// which computation a key stands, records without an identity count for no computation, and
// BindRecords gives an identity to those that fit (bind.h).
//
// Errors: NotFound for a job, task or record that does not exist; AlreadyExists for a second one of
// the same identity; InvalidArgument for what ValidateRecord refuses; all others come from the
// medium (sqlite.h).
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

// Counts of a job's trials.
struct TrialCounts {
  int64_t total = 0;
  std::array<int64_t, kNumErrorKinds> by_error{};
  // Tasks without trials are absent.
  std::map<uint32_t, int64_t> by_task;
  // One past the largest number used: a resumed job continues here.
  uint32_t next_trial = 0;
  // Seconds that the devices spent on all trials.
  double run_s = 0;
  // Seconds that the devices spent on further readings of the best.
  double remeasured_run_s = 0;
  // Number of runners that measured the trials.
  int64_t runners = 0;
};

// Result of further readings of a record: fields of the same names in record.h. An error says that
// the record does not hold up; its costs are dropped then.
struct Remeasurement {
  int64_t id = 0;
  std::vector<double> costs_s = {};
  std::optional<double> confidence_s = {};
  uint32_t readings = 0;
  // Sum over all readings so far.
  double run_s = 0;
  std::string device = {};
  int error = kNoError;
  std::string message = {};
};

// A span of time in which the device of a runner was slower than usual.
struct SlowSpan {
  // Id of the worker.
  std::string runner = {};
  // Unix time; both ends are included.
  int64_t from_s = 0;
  int64_t to_s = std::numeric_limits<int64_t>::max();
  // The mark: "the canary took 1.31 ms; 0.98 to 1.02 ms are usual".
  std::string reason = {};
};

// Cost of the unscheduled loops of a task.
struct ReferenceCost {
  std::string job_id;
  uint32_t task_index = 0;
  double cost_s = 0;
};

// Names the process that opened the database for writing: the same id each time, and a number that
// grows.
struct SchedulerIdentity {
  std::string id;
  int64_t incarnation = 0;
};

// A record matches if it meets all conditions that are set.
struct RecordFilter {
  // "" selects all jobs.
  std::string job_id = {};
  // Both members empty: all workloads.
  WorkloadRef workload = {};
  // Selects the targets that start with this text.
  std::string target = {};
  // "" selects all devices.
  std::string device = {};
  // Earliest timestamp.
  int64_t since_s = std::numeric_limits<int64_t>::min();
  // Latest timestamp; it is included.
  int64_t until_s = std::numeric_limits<int64_t>::max();
  // Selects the workload keys that start with this text.
  std::string key_prefix = {};
  bool include_errors = false;
  // Selects the records with a larger id.
  int64_t after_id = 0;
  // Number of records to select, the best ones, best first; none: all records.
  std::optional<uint32_t> top = {};
};

class Store {
 public:
  virtual ~Store() = default;

  // ---- jobs
  // Adds the job and its tasks, all or nothing. A new job has made no progress. Each task's job_id
  // must be the job's or "".
  virtual Status AddJob(const JobRow& job, std::span<const TaskRow> tasks) = 0;
  Status AddJob(const JobRow& job) { return AddJob(job, {}); }
  // Sets started_ms on the first change to running and finished_ms on the change to a final state.
  // A final state stays: a change to another state is FailedPrecondition (of cancel and success,
  // the first wins), a change to the same state is OK and changes nothing. Each change to running
  // increments JobRow::fruitless_runs; a change back to queued or to paused, after an orderly end
  // of a run, resets it. A paused job can only become cancelled; ReopenJob queues it again.
  virtual Status UpdateJobState(std::string_view job_id, JobState state, std::string_view message,
                                int64_t now_ms) = 0;
  // Queues a job again that failed, was cancelled or is paused, with all its tasks and records. A
  // job that has not ended is queued too. FailedPrecondition if the job succeeded.
  virtual Status ReopenJob(std::string_view job_id) = 0;
  virtual Status SetProgress(std::string_view job_id, const JobProgress& progress) = 0;
  virtual StatusOr<JobRow> GetJob(std::string_view job_id) = 0;
  // Returns the newest jobs first. No limit: all jobs.
  virtual StatusOr<std::vector<JobRow>> ListJobs(std::optional<uint32_t> limit) = 0;
  // Returns queued, running and paused jobs in the order in which they were added.
  virtual StatusOr<std::vector<JobRow>> LoadUnfinishedJobs() = 0;

  // ---- tasks
  // Adds all tasks or none.
  virtual Status AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) = 0;
  virtual StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) = 0;
  virtual Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) = 0;
  // Counts so many trials of another job as trials of the task (TaskRow::known_job).
  virtual Status SetKnownTask(std::string_view job_id, uint32_t task_index,
                              std::string_view known_job, uint32_t trials) = 0;

  // ---- records
  // Returns the new id (`record.id` is ignored). A result that is delivered twice counts once: the
  // same result of (job_id, trial) (SameTrial) gets the id of the first, another result is
  // AlreadyExists.
  StatusOr<int64_t> AddRecord(const Record& record);
  // Adds all records or none, in one commit. Returns the ids in the order of the records. Resets
  // JobRow::fruitless_runs of the jobs.
  virtual StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records,
                                                    std::span<const ReferenceCost> costs) = 0;
  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records) {
    return AddRecords(records, {});
  }
  // Adds the records for which HasMeasurement is false, as trials of `job_id` after its last one,
  // in one commit. Returns their number. The records' own job and trial are ignored.
  virtual StatusOr<int64_t> ImportRecords(std::string_view job_id,
                                          std::span<const Record> records) = 0;
  virtual StatusOr<Record> GetRecord(int64_t id) = 0;
  // Returns records ordered by trial, errors included. An unknown job has no records.
  virtual StatusOr<std::vector<Record>> RecordsOfJob(std::string_view job_id,
                                                     uint32_t from_trial) = 0;
  // Returns records ordered by id, errors included. target "" = any.
  StatusOr<std::vector<Record>> RecordsOfWorkload(const WorkloadRef& workload,
                                                  std::string_view target);
  // Returns the newest `limit` records of the target, whatever their workload, ordered by id,
  // errors included. Reads no more records than it returns if the newest ones are of this target.
  virtual StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) = 0;
  // Returns the best record over all jobs for each computation of `workload` and each target that
  // has one, ordered by both. Each record has the identity of the computation for which it counts.
  // target "" = any. Cost: a look-up for each computation and target, however many records they
  // have.
  StatusOr<std::vector<Record>> BestRecords(const WorkloadRef& workload, std::string_view target);
  virtual StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id,
                                                    uint32_t task_index) = 0;
  // Returns the newest correct record of the task's program without a schedule: steps "[]".
  virtual StatusOr<std::optional<Record>> UnscheduledOfJob(std::string_view job_id,
                                                           uint32_t task_index) = 0;
  virtual StatusOr<TrialCounts> CountTrials(std::string_view job_id) = 0;
  // Changes all records or none, in one commit. A record that failed before stays failed.
  virtual Status SetRemeasurements(std::span<const Remeasurement> remeasured) = 0;
  // Marks the records that the runner measured in the span and that have no mark. Records whose
  // cost comes from re-measurements stay as they are, and a later re-measurement of a record takes
  // its mark away. Returns the number of records that were marked. Cost: reads the records of the
  // span; marking again what is marked writes nothing.
  virtual StatusOr<int64_t> MarkRecords(const SlowSpan& span) = 0;
  // Returns whether some job has a record of the same workload, target, steps, error and timestamp.
  // Such an imported line is a duplicate; its costs are rounded and cannot tell. If one of the two
  // records has no identity, the same key is enough.
  StatusOr<bool> HasMeasurement(const Record& record);

  // Deletes the records that exist, in one commit, all or nothing. Returns their number. A job
  // counts only its remaining records. The number of a deleted trial is not given again while the
  // job has later trials.
  virtual StatusOr<int64_t> DeleteRecords(std::span<const int64_t> ids) = 0;

  // ---- autotvm's records
  // Adds the records that the store does not have, in one commit. Returns their number. The store
  // has a record if target, task, arguments, configuration, error and timestamp are equal: two runs
  // never have all of these in common.
  virtual StatusOr<int64_t> ImportAutotvmRecords(std::span<const AutotvmRecord> records) = 0;
  // Deletes the records that exist, in one commit, all or nothing. Returns their number. The ids
  // are not given again.
  virtual StatusOr<int64_t> DeleteAutotvmRecords(std::span<const int64_t> ids) = 0;

  // ---- computations
  // Makes the computations known. All or nothing; a known computation changes nothing.
  virtual Status AddComputations(std::span<const Computation> computations) = 0;
  // Returns all computations with the key, ordered by id.
  virtual StatusOr<std::vector<Computation>> ComputationsOfKey(std::string_view key) = 0;
  // Makes the key of imported records stand for this computation, which becomes known under that
  // key. A key stands for one computation at most: imported records that were bound to another
  // computation by this key lose their identity.
  virtual Status BindKey(const Computation& computation) = 0;
  // None: the key is not bound.
  virtual StatusOr<std::optional<Computation>> BoundTo(std::string_view key) = 0;
  // Gives the computation's identity to those of the records that have its key and no identity.
  // Returns their number. All or nothing, in one commit.
  virtual StatusOr<int64_t> BindRecords(const Computation& computation,
                                        std::span<const int64_t> ids) = 0;

  // ---- rounds
  // Returns the round's number; row.number is ignored.
  virtual StatusOr<uint32_t> AddRound(const RoundRow& row) = 0;
  // Returns the rounds from number `from` on, in order. An unknown job has no rounds.
  virtual StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) = 0;

  // ---- calibrations
  // Replaces the calibration of the same device and capability.
  virtual Status SetCalibration(const CalibrationRow& row) = 0;
  // Returns the calibrations ordered by device and capability.
  virtual StatusOr<std::vector<CalibrationRow>> Calibrations() = 0;

  // ---- trained cost models
  // Uses the name, the time, the info and the file of `row`. Adding the same file again is OK and
  // changes nothing. Another model of this name is replaced if `replace`, otherwise it is
  // AlreadyExists.
  virtual Status AddModel(const ModelRow& row, bool replace) = 0;
  Status AddModel(const ModelRow& row) { return AddModel(row, /*replace=*/false); }
  // Returns the model with its file.
  virtual StatusOr<ModelRow> GetModel(std::string_view name) = 0;
  // Returns the models without their files, ordered by name.
  virtual StatusOr<std::vector<ModelRow>> Models() = 0;
  virtual Status DeleteModel(std::string_view name) = 0;

  // ---- schedules that somebody has set
  // Replaces the schedule of the same computation and target text.
  virtual Status PinSchedule(const PinnedSchedule& pinned) = 0;
  // Returns the schedules of a computation, "" = all; ordered by computation and target.
  virtual StatusOr<std::vector<PinnedSchedule>> PinnedSchedules(std::string_view workload_id) = 0;
  // Returns whether there was such a schedule.
  virtual StatusOr<bool> UnpinSchedule(std::string_view workload_id, std::string_view target) = 0;

  // ---- users
  // Sets the limits of a user. The user's use stays.
  virtual Status SetUserLimits(std::string_view name, const UserLimits& limits) = 0;
  // Sets the use of all these users or of none. Their limits stay.
  virtual Status SetUserUses(std::span<const UserUse> uses) = 0;
  // Returns the users that have limits or have used a device, ordered by name.
  virtual StatusOr<std::vector<UserRow>> Users() = 0;
  // Trials count from `since_s`, Unix time. Cost: reads the keys of the user's records; with_bytes
  // also reads their texts, and without it stored_bytes is 0.
  virtual StatusOr<UserTotals> TotalsOfUser(std::string_view name, int64_t since_s,
                                            bool with_bytes) = 0;

  // ---- who did what
  // Adds the entry (`entry.id` is ignored), and drops the oldest entries if there are more than
  // `keep`.
  virtual Status AddAudit(const AuditRow& entry, int64_t keep) = 0;
  // Deletes the entries from before `before_ms`, Unix time. Returns their number.
  virtual StatusOr<int64_t> PruneAudit(int64_t before_ms) = 0;
  // Returns the newest `limit` entries from `since_ms` on, the newest first. user "" = all users.
  virtual StatusOr<std::vector<AuditRow>> Audit(std::string_view user, int64_t since_ms,
                                                uint32_t limit) = 0;

  // ---- the scheduler
  // Returns a new incarnation, larger than all before.
  virtual StatusOr<SchedulerIdentity> NextIncarnation() = 0;

  // Calls `visit` for each matching record, by ascending id (with filter.top the best first), until
  // `visit` returns an error, which is then returned. Reads in pages of bounded memory and holds no
  // lock while `visit` runs: `visit` may take its time and call the store. Records that are added
  // meanwhile may be seen, records that are deleted meanwhile may be missed.
  Status ForEachRecord(const RecordFilter& filter,
                       const std::function<Status(const Record&)>& visit);

  // Does the same for autotvm's records.
  Status ForEachAutotvmRecord(const AutotvmFilter& filter,
                              const std::function<Status(const AutotvmRecord&)>& visit);

  // ---- below the rest: for implementations
  // WorkloadName of the records that a query wants; no names: the query does not ask for them.
  using Names = std::vector<std::string>;
  // The computations that have a key, ordered by id.
  struct KeyBinding {
    std::vector<std::string> ids;
    // True: BindKey has bound the key.
    bool bound = false;
  };

  // Queries that see one state of the store.
  class Snapshot {
   public:
    virtual ~Snapshot() = default;

    // Returns the first `limit` matching records, in the order of ForEachRecord. `names` replaces
    // the filter's workload.
    virtual StatusOr<std::vector<int64_t>> Ids(const RecordFilter& filter, const Names& names,
                                               uint32_t limit) = 0;
    // Returns an id below those of the first `most` records of the job from the trial on, counted
    // by trial: the one before the smallest of them. No such record: the largest id of the job, 0
    // if it has none. Cost: reads `most` entries of an index at most, however many records there
    // are.
    virtual StatusOr<int64_t> IdBeforeTrial(std::string_view job_id, uint32_t from_trial,
                                            uint32_t most) = 0;
    // Returns the records in the order of the ids. Ids without a record are left out.
    virtual StatusOr<std::vector<Record>> Records(std::span<const int64_t> ids) = 0;
    // Like RecordsOfWorkload. There is at least one name.
    virtual StatusOr<std::vector<Record>> RecordsNamed(const Names& names,
                                                       std::string_view target) = 0;
    // Returns the best record for each target, ordered by target.
    virtual StatusOr<std::vector<Record>> BestNamed(std::string_view name,
                                                    std::string_view target) = 0;
    virtual StatusOr<bool> HasMeasurementNamed(std::string_view name, const Record& record) = 0;
    virtual StatusOr<KeyBinding> KeyBindingOf(std::string_view key) = 0;
    virtual StatusOr<std::vector<std::string>> KeysOfId(std::string_view workload_id) = 0;
    // Returns the first `limit` matching records with a larger id, ordered by id.
    virtual StatusOr<std::vector<AutotvmRecord>> AutotvmRecords(const AutotvmFilter& filter,
                                                                int64_t after_id,
                                                                uint32_t limit) = 0;
  };

  // Calls `read` once, unless the medium fails, and returns its result. `read` must not call the
  // store otherwise.
  virtual Status Read(const std::function<Status(Snapshot&)>& read) = 0;

 protected:
  // Answers HasMeasurement for one record after another, while new ones are added. It reads the
  // computations of a key once: between two calls only the records asked for can make one known.
  class Measurements {
   public:
    explicit Measurements(Snapshot& snapshot) : snapshot_(snapshot) {}
    StatusOr<bool> Has(const Record& record);

   private:
    StatusOr<const Names*> NamesOfKey(const std::string& key);

    Snapshot& snapshot_;
    // Cache by key, for records without an identity.
    std::map<std::string, Names> names_;
  };

 private:
  static StatusOr<Names> NamesOfComputation(Snapshot& snapshot, const WorkloadRef& workload);
  static StatusOr<std::vector<Names>> NamesOfEach(Snapshot& snapshot, const WorkloadRef& workload);
  static StatusOr<Names> NamesOfAll(Snapshot& snapshot, const WorkloadRef& workload);
};

// Deletes the records unless a job has not ended. Such a job would measure the deleted trials
// again: FailedPrecondition.
StatusOr<int64_t> DeleteRecordsOfEndedJobs(Store& store, std::span<const int64_t> ids);

// Returns the task as a row of `job_id`; refused if it names another job.
StatusOr<TaskRow> TaskOfJob(const TaskRow& task, std::string_view job_id);

// InvalidArgument: the computation has no identity, no key or no DAG.
Status CheckComputation(const Computation& computation);

// Checks the batch of AddRecords for all stores: each record is valid, and no trial is there twice.
Status CheckBatch(std::span<const Record> records);
// Returns whether `a` and `b`, of the same (job, trial), are the same result.
bool SameTrial(const Record& a, const Record& b);

// Applies SetRemeasurements to a record, for all stores.
StatusOr<Record> WithRemeasurement(Record record, const Remeasurement& remeasured);

// Returns whether MarkRecords marks the record, for all stores.
bool IsToBeMarked(const Record& record, const SlowSpan& span);

// Applies UpdateJobState to a row, for all stores. Returns false if nothing is to change.
StatusOr<bool> ApplyJobState(JobRow& job, JobState state, std::string_view message, int64_t now_ms);

// Applies ReopenJob to a row, for all stores.
Status ApplyReopen(JobRow& job);

}  // namespace kiln::store
