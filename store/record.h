// What the store keeps: jobs, their tasks, and one record per measured trial. Plain values, no
// behaviour beyond the comparison that decides what "best" means.
//
// Compute DAGs, targets and steps are texts to the store: it never looks inside them.
// Times are unix time; units stand in names. A double may be NaN or infinite unless said otherwise.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hardware_params.h"
#include "base/status.h"

namespace kiln::store {

// Numbers of proto/trial.proto, which are those of TVM's measure records.
inline constexpr int kNumErrorKinds = 9;
inline constexpr int kNoError = 0;

// One measured candidate. Identified by (job_id, trial); `id` is given by the store, ascending in
// the order of commit.
struct Record {
  int64_t id = 0;
  std::string job_id = {};
  uint32_t task_index = 0;
  uint32_t trial = 0;  // number within the job, from 0
  std::string workload_key = {};
  std::string dag = {};  // text form; "" = not known (an imported line)
  std::string target = {};
  HardwareRow hardware{};            // 0s: not known
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
  bool stopped_early = false;  // costs_s is one reading: hopeless against the best one
  double max_error = 0;        // largest |got - want| / max|want| seen in the check
  std::string unchecked = {};  // why the check proved little, though nothing differed; "": it did
  double flop_count = 0;
  // Why it was tried: where the search had it from, and what its model said; NaN: nothing.
  std::string origin = {};
  double score = std::numeric_limits<double>::quiet_NaN();
  // Of one of the best: it was read again, in turns with its rivals. Two values for each turn, of
  // however many readings, the device's drift taken out. Empty for all others.
  std::vector<double> final_costs_s = {};
  double confidence_s = 0;        // the cost is within +- this of the true one, 95%; 0 = not known
  uint32_t final_readings = 0;    // that final_costs_s stand for; 0 = as many as they are
  double final_run_s = 0;         // what they took of the device's time
  std::string final_device = {};  // identity of the device that took them; "" = not known
  std::string times = {};  // bytes: where its time went, a serialized message; "" = not known
};

// Numbers of proto/scheduler.proto.
enum class JobState { kQueued = 1, kRunning = 2, kSucceeded = 3, kFailed = 4, kCancelled = 5 };

struct JobRow {
  std::string id = {};
  std::string name = {};
  std::string user = {};
  int32_t priority = 0;
  JobState state = JobState::kQueued;
  std::string message = {};  // why it failed
  std::string spec = {};     // bytes: the serialized request
  int64_t created_ms = 0;
  int64_t started_ms = 0;   // 0 = not yet
  int64_t finished_ms = 0;  // 0 = not yet
};

struct TaskRow {
  std::string job_id = {};
  uint32_t index = 0;  // within the job, from 0
  std::string workload_key = {};
  std::string dag = {};
  std::string target = {};
  double weight = 1;  // uses in the network
  std::string description = {};
  double flop_count = 0;
  double reference_cost_s = 0;  // 0 = not measured yet
  // The task whose work this one does in another way: of their inputs, those that `preparation` (a
  // text) speaks of are made before. None: it is no alternative.
  std::optional<uint32_t> alternative_of = {};
  std::string form = {};  // which way
  std::string preparation = {};
  std::string network = {};  // what it is a part of
};

// One round of a job's search, once all its trials have results: a line of the latency log.
struct RoundRow {
  std::string job_id = {};
  uint32_t number = 0;  // given by the store: 0, 1, ... in the order of AddRound
  uint32_t task_index = 0;
  double elapsed_s = 0;  // since the job's run began
  uint32_t trials = 0;   // of the job, with results
  // The job's objective, by default the sum of weight * best; NaN while a work has no result.
  double total_latency_s = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> best_s = {};  // of each task; 0 = none
  double search_s = 0;              // what finding the candidates took, training included
  std::string report = {};          // what was considered and dropped, for people
};

// "queued", "running", ...: also the text in the database.
std::string_view JobStateName(JobState state);
StatusOr<JobState> ParseJobState(std::string_view name);
// Succeeded, failed or cancelled.
bool IsFinal(JobState state);

// The mean of costs_s, in seconds: what the trial itself measured. Infinite on error.
double MeanCost(const Record& record);

// The figure by which records are compared, in seconds: the median of final_costs_s where there are
// any, otherwise the mean of costs_s. Infinite on error.
double Cost(const Record& record);

// Strict weak order "a is the better record": no error before error, complete before stopped early,
// then the smaller cost, then the older id.
bool BetterThan(const Record& a, const Record& b);

// What a store refuses to keep: no job id, an error kind out of range, a success without costs, a
// cost that is not a positive finite number.
Status ValidateRecord(const Record& record);

}  // namespace kiln::store
