// Formats jobs, trials and records as words and rows, in one place, so that progress, tables and
// summaries agree. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/scheduler.pb.h"

namespace kiln {

// Returns "wrong answer", "run timeout", ...
std::string_view ErrorName(uint32_t kind);
// Returns "running", ...
std::string_view JobStateName(v1::JobState state);
// Returns "builder", ...
std::string_view WorkerKindName(v1::WorkerKind kind);

// Returns "2 (1 wrong answer, 1 run timeout)", or "0".
std::string ErrorCounts(const v1::JobStatus& job);
uint32_t NumErrors(const v1::JobStatus& job);

// Returns the mean of the trial's own readings; 0 on error.
double MeanCost(const v1::TrialResult& result);
// Returns the cost that counts: the median of the final readings if there are any, otherwise
// MeanCost.
double CostOf(const v1::TrialResult& result);
// Returns the number of readings that the final costs stand for.
int RemeasurementsOf(const v1::TrialResult& result);
// Returns "93%"; "-" if the share is 0.
std::string ShareCell(double share);

// Returns the limits of a job: "64 trials", "10 minutes", "64 trials or 10 minutes".
std::string LimitsText(const v1::TuneOptions& options);
// Returns "12/64", or "12" if the job has no limit of trials.
std::string TrialsText(const v1::JobStatus& job);
// Returns how near a running job is to its limits, 0 to 1.
double ProgressOf(const v1::JobStatus& job);
// Returns why a job took no more trials; "" while it runs.
std::string EndingText(const v1::JobStatus& job);

// Returns "8.31 trials/s  measuring 93% of the last minute (40% the best candidates again)"; for an
// ended job "... of the time", and "" for a job without trials. The shares are means over the
// devices.
std::string PaceText(const v1::JobStatus& job);

// Returns "1.234 ms"; "-" if there is no cost.
std::string LatencyCell(double cost_s);
// Returns "43.21 GFLOP/s"; "-" if the speed is not known.
std::string SpeedCell(double flop_count, double cost_s);
// Returns "3.1e-07", or "unchecked".
std::string ErrorCell(const v1::TrialResult& result);
// Returns "14.2x"; "" if either cost is not known.
std::string SpeedUp(double reference_s, double cost_s);
// Returns the speed-up of a task's best record: "14.2x over the unscheduled loops (22.10 us)".
// `reference` names the other program; see ReferenceName of kernel_values.h.
std::string SpeedUpText(const v1::TaskStatus& task, const v1::Record& best,
                        std::string_view reference = "the unscheduled loops");

// Returns why the cost of a record is in doubt: "its device was slower than usual, the canary took
// ..."; "" if it is not.
std::string MarkText(const v1::Record& record);

// Returns why the check of a record proved little and what to do; "" if the check was good.
std::string UncheckedText(const v1::TrialResult& result);

// Returns "1200 states are known of earlier jobs, the best 12.80 us (record 17)".
std::string KnownText(const v1::TaskStatus& task);

// Returns a target's text for a table: "llvm sapphirerapids, 38 features" for "llvm -mattr=...
// -mcpu=...", "cuda sm_90". A text that is no target stays unchanged.
std::string ShortTarget(std::string_view target);
// Returns a text for a table with little room: "llvm sapphirerapids". kiln show prints the whole
// target.
std::string BriefTarget(std::string_view target);

// Returns a trial's name, "1f740d66/56": its job and its number in the job. The number counts from
// 0 wherever it is printed, in JSON, and in the database.
std::string TrialName(const v1::Record& record);
struct NamedTrial {
  std::string job_id;
  uint32_t number = 0;
};
// Returns nullopt if the text has not the form of a trial's name.
std::optional<NamedTrial> ParseTrialName(std::string_view text);

// Returns the local time: "2026-11-21 09:45:19".
std::string TimeText(int64_t unix_s);
// Returns a short time for a table with little room: "11-21 09:45", or "2025-11-21" of another
// year.
std::string ShortTimeText(int64_t unix_s);

}  // namespace kiln
