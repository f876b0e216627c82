// The groups of a job's tasks: a task alone, or several that compute the same by different
// algorithms (algorithm variants). The fastest variant will be used. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln {

// Returns the tasks of each group, in the order of the job.
std::vector<std::vector<int>> VariantGroupsOf(const v1::JobStatus& job);
// Returns the tasks of the task's group, itself included.
std::vector<int> VariantsOf(const v1::JobStatus& job, int task);
// Returns the task with the smallest latency; the first task if none has a latency.
int Fastest(const v1::JobStatus& job, std::span<const int> variants);

// Returns the task's name in a table. An alternative stands below its first variant and is named by
// its variant alone.
std::string TaskCell(const v1::TaskStatus& task);
// Returns "winograd F(4,3): 2.65x faster than direct (999.5 us)"; "" if the group has one variant.
std::string VariantText(const v1::JobStatus& job, std::span<const int> variants);
// Returns "direct 999.5 us, winograd F(4,3) -". `best_s` has costs by task, like a round's message.
std::string VariantCosts(const v1::JobStatus& job, std::span<const int> variants,
                         std::span<const double> best_s);

// Returns the job's objective from the results so far; none while a group has no result.
std::optional<double> ObjectiveOf(const v1::JobStatus& job);
// Returns "total latency" or the like.
std::string ObjectiveWord(const v1::JobStatus& job);

// Explains why a table has more rows than tasks: "39 rows, 15 of them another way to do the task
// above; the fastest way counts".
std::string RowsText(int tasks, int rows);

}  // namespace kiln
