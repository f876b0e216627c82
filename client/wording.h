// How jobs, trials and records are put into words and rows: one place, so that progress, tables and
// summaries agree. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/scheduler.pb.h"

namespace kiln::client {

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
int FinalReadingsOf(const v1::TrialResult& result);
std::string ShareCell(double share);  // "93%"; "-" when it is 0

// "8.31 trials/s  device 93% busy (89% over all)"; of an ended job over all. "" of one without
// trials.
std::string PaceText(const v1::JobStatus& job);

std::string LatencyCell(double cost_s);                   // "1.234 ms"; "-" when there is none
std::string SpeedCell(double flop_count, double cost_s);  // "43.21 GFLOP/s"; "-"
std::string ErrorCell(const v1::TrialResult& result);     // "3.1e-07"; "unchecked"
std::string SpeedUp(double reference_s, double cost_s);   // "14.2x"; "" when either is not known

// Why the check of a record proved little and what to do; "" where it did what it is for.
std::string UncheckedText(const v1::TrialResult& result);

// "1200 states are known of earlier jobs, the best 12.80 us (record 17)".
std::string KnownText(const v1::TaskStatus& task);

std::string FirstLine(std::string_view text);
// In quotes where a shell would need them.
std::string ShellWord(std::string_view word);
// "2026-11-21 09:45:19", local time.
std::string TimeText(int64_t unix_s);

}  // namespace kiln::client
