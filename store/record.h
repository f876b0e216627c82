// What the store keeps: jobs, their tasks, and one record per measured trial. Plain values, no
// behaviour beyond the comparison that decides what "best" means.
//
// Compute DAGs, targets and steps are texts to the store: it never looks inside them.
// Times are unix time; units stand in names. A double may be NaN or infinite unless said otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::store {

// Numbers of proto/trial.proto, which are those of TVM's measure records.
inline constexpr int kNumErrorKinds = 9;
inline constexpr int kNoError = 0;

// num_cores, vector_unit_bytes, cache_line_bytes, max_shared_memory_per_block,
// max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size: the order of a
// measure-record line.
using HardwareParams = std::array<int64_t, 8>;

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
  HardwareParams hardware{};
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
  double flop_count = 0;
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
};

// "queued", "running", ...: also the text in the database.
std::string_view JobStateName(JobState state);
StatusOr<JobState> ParseJobState(std::string_view name);
// Succeeded, failed or cancelled.
bool IsFinal(JobState state);

// The figure by which records are compared: the mean of costs_s, in seconds. Infinite on error.
double MeanCost(const Record& record);

// Strict weak order "a is the better record": no error before error, complete before stopped early,
// then the smaller mean cost, then the older id.
bool BetterThan(const Record& a, const Record& b);

// What a store refuses to keep: no job id, an error kind out of range, a success without costs, a
// cost that is not a positive finite number.
Status ValidateRecord(const Record& record);

}  // namespace kiln::store
