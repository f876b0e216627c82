// The rows that the store keeps: jobs, their tasks, and one record per measured trial. Plain
// values; the only behaviour is the comparison that decides which record is "best".
//
// Compute DAGs, targets and steps are texts to the store: it never looks inside them.
//
// `workload_id` says which computation a record measures (compiler/dag/workload_id.h);
// `workload_key` is a label that several computations may share. A line of a log has the label
// alone. Times are unix time; names carry the units. A double may be NaN or infinite unless said
// otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "device/hardware_params.h"

namespace kiln::store {

// Numbers of proto/trial.proto, which are those of TVM's measure records.
inline constexpr int kNumErrorKinds = 9;
inline constexpr int kNoError = 0;
// Error kind of a trial whose workers failed, not its candidate.
inline constexpr int kUnknownError = 8;
// Steps of a program without a schedule.
inline constexpr std::string_view kNoSteps = "[]";

// One measured candidate. (job_id, trial) identifies it; the store gives `id`, ascending in the
// order of commit.
struct Record {
  int64_t id = 0;
  std::string job_id = {};
  uint32_t task_index = 0;
  // Number within the job, from 0.
  uint32_t trial = 0;
  // "" = not known (an imported line).
  std::string workload_id = {};
  std::string workload_key = {};
  // Text form; "" = not known.
  std::string dag = {};
  std::string target = {};
  // All 0: not known.
  HardwareRow hardware{};
  // Text form of the device that measured it (device/device_model.h); "" = not known.
  std::string device_model = {};
  // JSON array.
  std::string steps = {};
  // One cost per repeat, finite. On success there is at least one, and all are > 0.
  std::vector<double> costs_s = {};
  // 0 to 8.
  int error = kNoError;
  // First lines of the error's cause.
  std::string message = {};
  double build_s = 0;
  double run_s = 0;
  int64_t timestamp_s = 0;
  std::string device = {};
  // Ids of the workers.
  std::string builder = {};
  std::string runner = {};
  // True: costs_s is one short reading, which was clearly slower than the best one.
  bool stopped_early = false;
  // Largest |got - want| / max|want| that the check has seen.
  double max_error = 0;
  // Why a check without differences proved little; "": the check was good.
  std::string unchecked = {};
  double flop_count = 0;
  // Why the candidate was tried: the part of the search that proposed it, and the score that its
  // model gave it. None: the model gave no score.
  std::string origin = {};
  std::optional<double> score = {};
  // Readings of one of the best candidates, taken again in turns with its rivals. Each turn adds
  // two values, however many readings it has, with the device's drift taken out. Empty for all
  // other candidates.
  std::vector<double> remeasured_costs_s = {};
  // 95% of such readings at other times of this job lie within +- this of the cost, by the spread
  // of the turns and the device's drift as far as the job saw it. None: not known.
  std::optional<double> confidence_s = {};
  // Number of readings that remeasured_costs_s stand for.
  uint32_t remeasurements = 0;
  // Seconds of the device that these readings took.
  double remeasured_run_s = 0;
  // Identity of the device of these readings; "" = not known.
  std::string remeasured_device = {};
  // Number of output elements that were compared; none: all.
  std::optional<int64_t> sampled_outputs = {};
  // Bytes of a serialized message that says where the trial's time went; "" = not known.
  std::string times = {};
  // Text form of the way of measuring (device/measured_as.h); "" = not known.
  std::string measured_as = {};
  // Bytes of a serialized message: the device's state right after the timing; "" = not known.
  std::string device_state = {};
  // Why the cost is in doubt: a sentence about the device (Store::MarkRecords). "": it is not.
  std::string mark = {};
  // Further fields of a line of a log. Their meaning is known to the log's maker only.
  std::string target_host = {};
  // See HasRewrittenLayouts.
  int64_t layout_rewrite_option = 0;
  std::vector<std::string> input_names = {};
  // Set in a best record that a query has chosen, and kept nowhere: ids of the finalists that do
  // not differ significantly from it (record_order.h), ascending.
  std::vector<int64_t> equal_ids = {};
};

// Numbers of proto/scheduler.proto.
enum class JobState {
  kQueued = 1,
  kRunning = 2,
  kSucceeded = 3,
  kFailed = 4,
  kCancelled = 5,
  // The job waits until somebody resumes it.
  kPaused = 6,
};

// Why a job's search ended. Numbers of proto/scheduler.proto.
enum class JobEnding {
  kNone = 0,
  kTrialsUsedUp = 1,
  kTargetReached = 2,
  kNoImprovement = 3,
  kSpaceExhausted = 4,
  kTimeUsedUp = 5,
};

// Progress of a job beyond its records. A job that is resumed starts from it.
struct JobProgress {
  // kNone: the search has not ended.
  JobEnding ending = JobEnding::kNone;
  // Seconds that the job had a device, over all its runs.
  double active_s = 0;
};

struct JobRow {
  std::string id = {};
  std::string name = {};
  std::string user = {};
  int32_t priority = 0;
  // Number of trials that the job may take; 0 = not known.
  uint32_t trials = 0;
  JobState state = JobState::kQueued;
  // Why the job failed.
  std::string message = {};
  // Bytes of the serialized request.
  std::string spec = {};
  int64_t created_ms = 0;
  // None: the job has not started.
  std::optional<int64_t> started_ms = {};
  // None: the job has not finished.
  std::optional<int64_t> finished_ms = {};
  JobProgress progress = {};
  // Number of runs in a row that began and had neither a result nor an orderly end: their processes
  // died. The last of them may be running now.
  int32_t fruitless_runs = 0;
};

struct TaskRow {
  std::string job_id = {};
  // Position within the job, from 0.
  uint32_t index = 0;
  std::string workload_id = {};
  std::string workload_key = {};
  std::string dag = {};
  std::string target = {};
  // Uses in the network.
  double weight = 1;
  std::string description = {};
  double flop_count = 0;
  // Time of one run of the reference program, not of a reading; none: it has not run yet.
  std::optional<double> reference_cost_s = {};
  // The task whose result this task computes by another algorithm. The inputs that the text
  // `preparation` names are made before the program runs. None: the task is no alternative.
  std::optional<uint32_t> alternative_of = {};
  // Name of the algorithm variant, such as "winograd F(4,3)".
  std::string variant = {};
  std::string preparation = {};
  // The network that the task is a part of.
  std::string network = {};
  // The job whose trials of the same task count as trials of this one, and their number
  // (SetKnownTask). "": there is none.
  std::string known_job = {};
  uint32_t known_trials = 0;
};

// A computation that the store knows, under one of its keys. A computation may have several keys,
// since other makers' logs use their own.
struct Computation {
  // The workload_id.
  std::string id = {};
  std::string key = {};
  // Text form.
  std::string dag = {};
  // 0 = not known.
  double flop_count = 0;
};

// A query for workloads: one computation with id and keys, of which the store may not know all; or,
// with id "", all computations that have one of the keys.
struct WorkloadRef {
  std::string id = {};
  std::vector<std::string> keys = {};

  bool empty() const { return id.empty() && keys.empty(); }
};

// One round of a job's search, once all its trials have results: a line of the latency log.
struct RoundRow {
  std::string job_id = {};
  // Given by the store: 0, 1, ... in the order of AddRound.
  uint32_t number = 0;
  uint32_t task_index = 0;
  // Seconds since the job's run began.
  double elapsed_s = 0;
  // Trials of the job that have results.
  uint32_t trials = 0;
  // The job's objective, by default the sum of weight * best; none while a task has no result.
  std::optional<double> total_latency_s = {};
  // Best cost of each task.
  std::vector<std::optional<double>> best_s = {};
  // Seconds of finding the candidates, training included.
  double search_s = 0;
  // The candidates that the round considered and dropped, for people.
  std::string report = {};
};

// Constants of the analytic model for a kind of device, as kiln calibrate fitted them.
struct CalibrationRow {
  // Name of the device.
  std::string device = {};
  int32_t compute_capability = 0;
  // Text form (device/calibration.h).
  std::string constants = {};
  // Unix time.
  int64_t fitted_s = 0;
  // The records of the fit and its quality, for people.
  std::string report = {};
  bool operator==(const CalibrationRow&) const = default;
};

// A trained cost model, kept under a name.
struct ModelRow {
  std::string name = {};
  // Unix time.
  int64_t created_s = 0;
  // Size of the file.
  int64_t bytes = 0;
  // The records of its training and how well it ranks (costmodel/model_file.h).
  std::string info = {};
  // Bytes of the file; "" in lists of models.
  std::string file = {};
  bool operator==(const ModelRow&) const = default;
};

// A schedule that somebody has set for a computation on a target. It is used before any record.
struct PinnedSchedule {
  std::string workload_id = {};
  std::string target = {};
  // JSON array.
  std::string steps = {};
  // Unix time.
  int64_t pinned_s = 0;
  bool operator==(const PinnedSchedule&) const = default;
};

// Limits of a user. 0 = no limit.
struct UserLimits {
  // Share of device seconds beside other users.
  double weight = 1;
  uint64_t trials_per_day = 0;
  uint32_t devices = 0;
  uint32_t jobs = 0;
  uint64_t stored_bytes = 0;
  bool operator==(const UserLimits&) const = default;
};

// Use of the devices by a user (scheduler/fair_share).
struct UserUse {
  std::string name = {};
  // Decayed device seconds at `at_ms`, Unix time.
  double device_s = 0;
  int64_t at_ms = 0;
  // Place among the users who compete at `at_ms`; none: the user did not compete.
  std::optional<double> queue_use = {};
  bool operator==(const UserUse&) const = default;
};

struct UserRow {
  UserLimits limits = {};
  UserUse use = {};
  bool operator==(const UserRow&) const = default;
};

// Sums over the jobs of a user.
struct UserTotals {
  // Queued, running and paused jobs.
  uint32_t unfinished_jobs = 0;
  // Trials that unfinished jobs may still take.
  uint64_t trials_to_come = 0;
  // Trials since a point in time.
  uint64_t trials_since = 0;
  // Bytes of the database that the records of all his jobs take, approximately (StoredBytes).
  uint64_t stored_bytes = 0;
};

// One thing that somebody did, or tried to do.
struct AuditRow {
  // Given by the store, and grows.
  int64_t id = 0;
  // Unix time.
  int64_t at_ms = 0;
  std::string user = {};
  // Name of the call: "Scheduler.CancelJob".
  std::string call = {};
  // The thing that it was done to: "job 3f2a".
  std::string subject = {};
  // "" = it was done; otherwise why it was refused.
  std::string refused = {};
  bool operator==(const AuditRow&) const = default;
};

// Bytes that a record takes beside its texts of any length: numbers, ids, entries of indexes.
inline constexpr int64_t kRecordBytes = 200;
// Returns about how many bytes of the database the record takes.
uint64_t StoredBytes(const Record& record);

// Returns "queued", "running", ..., as the database has it too, but for "paused": in the database a
// paused job is a queued one with a mark.
std::string_view JobStateName(JobState state);
StatusOr<JobState> ParseJobState(std::string_view name);
// Returns whether the state is succeeded, failed or cancelled.
bool IsFinal(JobState state);

// Returns the mean of costs_s in seconds: the trial's own measurement. Infinite on error.
double MeanCost(const Record& record);

// Returns the seconds by which records are compared: the median of remeasured_costs_s if there are
// any, otherwise the mean of costs_s. Infinite on error.
double Cost(const Record& record);

// The one order in which a record is better than another, wherever a best one is chosen: no error
// before error; then the way of measuring, since costs of different ways are not comparable:
// descending by text, so stream, graph and call, warm before cold, and not known last; complete
// before stopped early; the smaller cost; the smaller id.
struct Rank {
  bool failed = false;
  std::string measured_as = {};
  bool stopped_early = false;
  // Seconds.
  double cost_s = 0;
  int64_t id = 0;

  bool operator<(const Rank& other) const {
    return std::tie(failed, other.measured_as, stopped_early, cost_s, id) <
           std::tie(other.failed, measured_as, other.stopped_early, other.cost_s, other.id);
  }
};
Rank RankOf(const Record& record);

// Returns whether `a` is the better record, a strict weak order.
bool BetterThan(const Record& a, const Record& b);

Computation ComputationOf(const Record& record);
Computation ComputationOf(const TaskRow& task);

// Returns the name under which records of one computation are found: the identity of the
// computation, or UnboundName of the key if the identity is not known.
std::string WorkloadName(const Record& record);
std::string UnboundName(std::string_view workload_key);

// Returns whether the record came from a log: no known device has measured it.
bool IsImported(const Record& record);

// Returns whether the record's program takes constant inputs in an element order of its own. Its
// costs cannot be compared with those of programs that take the inputs unchanged.
bool HasRewrittenLayouts(const Record& record);

// InvalidArgument: the row names no device or has no constants.
Status CheckCalibration(const CalibrationRow& row);

// InvalidArgument: the name is empty, longer than 128 bytes, or has a character that is no letter,
// digit, '.', '_' or '-'; or the file has no bytes.
Status CheckModel(const ModelRow& row);

// InvalidArgument: the weight is not a finite number above 0, or a limit is beyond 2^62.
Status CheckLimits(const UserLimits& limits);

// InvalidArgument: the computation, the target or the steps are missing.
Status CheckPinnedSchedule(const PinnedSchedule& pinned);

// Returns an error for a record that no store keeps: no job id, an error kind out of range, a
// success without costs, a cost that is not a positive finite number.
Status ValidateRecord(const Record& record);
// Does the same for a record that becomes the given trial of the given job. The record's own job
// and trial are ignored.
Status ValidateRecord(const Record& record, std::string_view job_id, uint32_t trial);

}  // namespace kiln::store
