// The works of a job: a task, or several that are forms of one work (alternatives of each other),
// of which the fastest one will be used. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// The tasks of each work, in the order of the job.
std::vector<std::vector<int>> WorksOf(const v1::JobStatus& job);
// Those that share the task's work, itself among them.
std::vector<int> FormsOf(const v1::JobStatus& job, int task);
// Of these tasks the one with the smallest latency; the first where none has one.
int Fastest(const v1::JobStatus& job, std::span<const int> forms);

// What a table calls the task: an alternative only by its form, below what it is one of.
std::string TaskCell(const v1::TaskStatus& task);
// "winograd F(4,3): 2.65x faster than direct (999.5 us)". "" when the work has one form.
std::string FormText(const v1::JobStatus& job, std::span<const int> forms);
// "direct 999.5 us, winograd F(4,3) -". `best_s`: by task, 0: none.
std::string FormCosts(const v1::JobStatus& job, std::span<const int> forms,
                      std::span<const double> best_s);

// The job's objective of what was found so far; 0 while a work has no result.
double ObjectiveOf(const v1::JobStatus& job);
std::string ObjectiveWord(const v1::JobStatus& job);  // "total latency"

}  // namespace kiln::client
