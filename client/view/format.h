// How jobs, trials and records are put into words and rows: one place, so that progress, tables and
// summaries agree. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/scheduler.pb.h"

namespace kiln::client {

inline constexpr uint32_t kMostTrials = 10'000'000;  // of a job; it has no other limit then

std::string_view ErrorName(uint32_t kind);             // "wrong answer", "run timeout"
std::string_view JobStateName(v1::JobState state);     // "running"
std::string_view WorkerKindName(v1::WorkerKind kind);  // "builder"

// "2 (1 wrong answer, 1 run timeout)"; "0".
std::string ErrorCounts(const v1::JobStatus& job);
uint32_t NumErrors(const v1::JobStatus& job);

double MeanCost(const v1::TrialResult& result);  // of the trial itself; 0 on error
// What counts: the median of the final readings where there are any, otherwise MeanCost.
double CostOf(const v1::TrialResult& result);
// How many readings its final costs stand for.
int RemeasurementsOf(const v1::TrialResult& result);
std::string ShareCell(double share);  // "93%"; "-" when it is 0

// "64 trials", "10 minutes", "64 trials or 10 minutes": what a job may take.
std::string LimitsText(const v1::TuneOptions& options);
// "12/64"; "12" where there is no number to reach.
std::string TrialsText(const v1::JobStatus& job);
// How near a running job is to its limits, 0 to 1.
double ProgressOf(const v1::JobStatus& job);
// Why a job took no more trials; "" of one that goes on.
std::string EndingText(const v1::JobStatus& job);

// "8.31 trials/s  measuring 93% of the last minute (40% the best candidates again)"; of an ended
// job "... of the time". "" of one without trials. Of several devices it is their mean.
std::string PaceText(const v1::JobStatus& job);

std::string LatencyCell(double cost_s);                   // "1.234 ms"; "-" when there is none
std::string SpeedCell(double flop_count, double cost_s);  // "43.21 GFLOP/s"; "-"
std::string ErrorCell(const v1::TrialResult& result);     // "3.1e-07"; "unchecked"
std::string SpeedUp(double reference_s, double cost_s);   // "14.2x"; "" when either is not known
// "14.2x over the unscheduled loops (22.10 us)", of a task's best record. `reference`: what it is
// compared with, as ReferenceName of kernel_values.h.
std::string SpeedUpText(const v1::TaskStatus& task, const v1::Record& best,
                        std::string_view reference = "the unscheduled loops");

// Why the check of a record proved little and what to do; "" where it did what it is for.
std::string UncheckedText(const v1::TrialResult& result);

// "1200 states are known of earlier jobs, the best 12.80 us (record 17)".
std::string KnownText(const v1::TaskStatus& task);

// "llvm sapphirerapids, 38 features", "cuda sm_90": what fits a table of "llvm -mattr=...
// -mcpu=...". A text that is no target stays as it is.
std::string ShortTarget(std::string_view target);
// "llvm sapphirerapids": what fits a table that has little room; kiln show prints the whole target.
std::string BriefTarget(std::string_view target);

// A trial's name, "1f740d66/56": its job and its number there, which counts from 0 in all that is
// printed, in JSON and in the database.
std::string TrialName(const v1::Record& record);
struct NamedTrial {
  std::string job_id;
  uint32_t number = 0;
};
// nullopt: the text has not the form of a trial's name.
std::optional<NamedTrial> ParseTrialName(std::string_view text);

// "2026-11-21 09:45:19", local time.
std::string TimeText(int64_t unix_s);
// "11-21 09:45", of another year "2025-11-21": for tables with little room.
std::string ShortTimeText(int64_t unix_s);

}  // namespace kiln::client
