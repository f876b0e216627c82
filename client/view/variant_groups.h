// The groups of a job's tasks: a task alone, or several that compute the same in different ways
// (algorithm variants), of which the fastest one will be used. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// The tasks of each group, in the order of the job.
std::vector<std::vector<int>> VariantGroupsOf(const v1::JobStatus& job);
// Those that share the task's group, itself among them.
std::vector<int> VariantsOf(const v1::JobStatus& job, int task);
// Of these tasks the one with the smallest latency; the first where none has one.
int Fastest(const v1::JobStatus& job, std::span<const int> variants);

// What a table calls the task: an alternative by its variant alone, below the task that it is a
// variant of.
std::string TaskCell(const v1::TaskStatus& task);
// "winograd F(4,3): 2.65x faster than direct (999.5 us)". "" when the group has one variant.
std::string VariantText(const v1::JobStatus& job, std::span<const int> variants);
// "direct 999.5 us, winograd F(4,3) -". `best_s`: by task, as a round's message has it.
std::string VariantCosts(const v1::JobStatus& job, std::span<const int> variants,
                         std::span<const double> best_s);

// The job's objective of what was found so far; none while a group has no result.
std::optional<double> ObjectiveOf(const v1::JobStatus& job);
std::string ObjectiveWord(const v1::JobStatus& job);  // "total latency"

// "39 rows, 15 of them another way to do the task above; the fastest way counts": why a table of so
// many tasks has more rows.
std::string RowsText(int tasks, int rows);

}  // namespace kiln::client
