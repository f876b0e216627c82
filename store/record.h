// What the store keeps: jobs, their tasks, and one record per measured trial. Plain values, no
// behaviour beyond the comparison that decides what "best" means.
//
// Compute DAGs, targets and steps are texts to the store: it never looks inside them.
//
// What a record is of is said by `workload_id`, the identity of the computation
// (compiler/dag/workload_id.h); `workload_key` is a label that several computations may bear. A
// line of a log has the label alone.
// Times are unix time; units stand in names. A double may be NaN or infinite unless said otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/hardware_params.h"

namespace kiln::store {

// Numbers of proto/trial.proto, which are those of TVM's measure records.
inline constexpr int kNumErrorKinds = 9;
inline constexpr int kNoError = 0;
// The workers failed, and not the candidate.
inline constexpr int kUnknownError = 8;
// Steps of a program without a schedule.
inline constexpr std::string_view kNoSteps = "[]";

// One measured candidate. Identified by (job_id, trial); `id` is given by the store, ascending in
// the order of commit.
struct Record {
  int64_t id = 0;
  std::string job_id = {};
  uint32_t task_index = 0;
  uint32_t trial = 0;            // number within the job, from 0
  std::string workload_id = {};  // "" = not known (an imported line)
  std::string workload_key = {};
  std::string dag = {};  // text form; "" = not known
  std::string target = {};
  HardwareRow hardware{};  // 0s: not known
  // What measured it, in text form (device/device_model.h); "" = not known.
  std::string device_model = {};
  std::string steps = {};            // JSON array
  std::vector<double> costs_s = {};  // one per repeat, finite; > 0 and at least one when error == 0
  int error = kNoError;              // 0..8
  std::string message = {};          // first lines of the cause
  double build_s = 0;
  double run_s = 0;
  int64_t timestamp_s = 0;
  std::string device = {};
  std::string builder = {};  // worker ids
  std::string runner = {};
  bool stopped_early = false;  // costs_s is one short reading: clearly slower than the best one
  double max_error = 0;        // largest |got - want| / max|want| seen in the check
  std::string unchecked = {};  // why the check proved little, though nothing differed; "": it did
  double flop_count = 0;
  // Why it was tried: where the search had it from, and what its model said; none: nothing.
  std::string origin = {};
  std::optional<double> score = {};
  // Of one of the best: it was read again, in turns with its rivals. Two values for each turn, of
  // however many readings, the device's drift taken out. Empty for all others.
  std::vector<double> remeasured_costs_s = {};
  // Another such reading in this job, at another time, is within +- this of the cost, 95%: by the
  // spread of the turns and by the device's drift as far as the job saw it. None: not known.
  std::optional<double> confidence_s = {};
  uint32_t remeasurements = 0;         // that remeasured_costs_s stand for
  double remeasured_run_s = 0;         // what they took of the device's time
  std::string remeasured_device = {};  // identity of the device that took them; "" = not known
  // So many elements of the outputs were compared; none: all.
  std::optional<int64_t> sampled_outputs = {};
  std::string times = {};  // bytes: where its time went, a serialized message; "" = not known
  // What a line of a log says beside all this; the log's maker knows what of it.
  std::string target_host = {};
  int64_t layout_rewrite_option = 0;  // see HasRewrittenLayouts
  std::vector<std::string> input_names = {};
};

// Numbers of proto/scheduler.proto.
enum class JobState { kQueued = 1, kRunning = 2, kSucceeded = 3, kFailed = 4, kCancelled = 5 };

// Why a job's search ended. Numbers of proto/scheduler.proto.
enum class JobEnding {
  kNone = 0,
  kTrialsUsedUp = 1,
  kTargetReached = 2,
  kNoImprovement = 3,
  kSpaceExhausted = 4,
  kTimeUsedUp = 5,
};

// How far a job is, beyond its records. A job that goes on begins with it.
struct JobProgress {
  JobEnding ending = JobEnding::kNone;  // kNone: its search has not ended
  double active_s = 0;                  // that it had a device, in all its runs
};

struct JobRow {
  std::string id = {};
  std::string name = {};
  std::string user = {};
  int32_t priority = 0;
  JobState state = JobState::kQueued;
  std::string message = {};  // why it failed
  std::string spec = {};     // bytes: the serialized request
  int64_t created_ms = 0;
  std::optional<int64_t> started_ms = {};   // none: not yet
  std::optional<int64_t> finished_ms = {};  // likewise
  JobProgress progress = {};
  // Runs that have begun, one after the other, without a result since and without an end in order:
  // their processes died, all but that of the last one if it runs now.
  int32_t fruitless_runs = 0;
};

struct TaskRow {
  std::string job_id = {};
  uint32_t index = 0;  // within the job, from 0
  std::string workload_id = {};
  std::string workload_key = {};
  std::string dag = {};
  std::string target = {};
  double weight = 1;  // uses in the network
  std::string description = {};
  double flop_count = 0;
  // A run of the reference program, not a reading; none: it has not run yet.
  std::optional<double> reference_cost_s = {};
  // The task whose work this one does in another way: of their inputs, those that `preparation` (a
  // text) speaks of are made before. None: it is no alternative.
  std::optional<uint32_t> alternative_of = {};
  std::string variant = {};  // which way
  std::string preparation = {};
  std::string network = {};  // what it is a part of
};

// A computation that the store knows, under one of its keys. It may have several: logs of other
// makers have their own.
struct Computation {
  std::string id = {};  // workload_id
  std::string key = {};
  std::string dag = {};   // text form
  double flop_count = 0;  // 0 = not known
};

// A workload as it is asked for: a computation (with keys that the store may not know it to bear),
// or with id "" all computations that bear one of the keys.
struct WorkloadRef {
  std::string id = {};
  std::vector<std::string> keys = {};

  bool empty() const { return id.empty() && keys.empty(); }
};

// One round of a job's search, once all its trials have results: a line of the latency log.
struct RoundRow {
  std::string job_id = {};
  uint32_t number = 0;  // given by the store: 0, 1, ... in the order of AddRound
  uint32_t task_index = 0;
  double elapsed_s = 0;  // since the job's run began
  uint32_t trials = 0;   // of the job, with results
  // The job's objective, by default the sum of weight * best; none while a work has no result.
  std::optional<double> total_latency_s = {};
  std::vector<std::optional<double>> best_s = {};  // of each task
  double search_s = 0;      // what finding the candidates took, with training
  std::string report = {};  // what was considered and dropped, for people
};

// The analytic model's constants of a kind of device, as kiln calibrate has fitted them.
struct CalibrationRow {
  std::string device = {};  // name
  int32_t compute_capability = 0;
  std::string constants = {};  // text form (device/calibration.h)
  int64_t fitted_s = 0;        // unix time
  std::string report = {};     // to what it was fitted and how well, for people
  bool operator==(const CalibrationRow&) const = default;
};

// A trained cost model, kept under a name.
struct ModelRow {
  std::string name = {};
  int64_t created_s = 0;  // unix time
  int64_t bytes = 0;      // of the file
  std::string info = {};  // what it was trained on and how well it ranks (costmodel/model_file.h)
  std::string file = {};  // bytes; "" where rows are listed
  bool operator==(const ModelRow&) const = default;
};

// A schedule that somebody has set for a computation on a target: it is taken before any record.
struct PinnedSchedule {
  std::string workload_id = {};
  std::string target = {};
  std::string steps = {};  // JSON array
  int64_t pinned_s = 0;    // unix time
  bool operator==(const PinnedSchedule&) const = default;
};

// "queued", "running", ...: also the text in the database.
std::string_view JobStateName(JobState state);
StatusOr<JobState> ParseJobState(std::string_view name);
// Succeeded, failed or cancelled.
bool IsFinal(JobState state);

// The mean of costs_s, in seconds: what the trial itself measured. Infinite on error.
double MeanCost(const Record& record);

// The figure by which records are compared, in seconds: the median of remeasured_costs_s where
// there are any, otherwise the mean of costs_s. Infinite on error.
double Cost(const Record& record);

// Strict weak order "a is the better record": no error before error, complete before stopped early,
// then the smaller cost, then the older id.
bool BetterThan(const Record& a, const Record& b);

Computation ComputationOf(const Record& record);
Computation ComputationOf(const TaskRow& task);

// By what records of one computation are found: its identity, or where that is not known
// UnboundName of the key.
std::string WorkloadName(const Record& record);
std::string UnboundName(std::string_view workload_key);

// Came from a log: no device that is known has measured it.
bool IsImported(const Record& record);

// Its costs are of a program that takes constant inputs in an order of elements of its own: they
// say nothing beside those of programs that take them as they are.
bool HasRewrittenLayouts(const Record& record);

// InvalidArgument: it names no device or has no constants.
Status CheckCalibration(const CalibrationRow& row);

// InvalidArgument: its name is empty, longer than 128 bytes, or has a character that is no letter,
// digit, '.', '_' or '-'; or it has no bytes.
Status CheckModel(const ModelRow& row);

// InvalidArgument: of no computation, for no target, or without steps.
Status CheckPinnedSchedule(const PinnedSchedule& pinned);

// What a store refuses to keep: no job id, an error kind out of range, a success without costs, a
// cost that is not a positive finite number.
Status ValidateRecord(const Record& record);
// As a trial of that job, whatever the record says of both.
Status ValidateRecord(const Record& record, std::string_view job_id, uint32_t trial);

}  // namespace kiln::store
