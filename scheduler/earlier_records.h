// Records of earlier jobs as a new one sees them: which say something of their candidates, which of
// many are learned from, and their steps.
//
// Pure but for the log. Any thread.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "compiler/schedule/step.h"
#include "store/record.h"

namespace kiln::scheduler {

// As records name devices; "" is the same as any.
bool SameDevice(std::string_view a, std::string_view b);

// Was it the candidate that succeeded or failed, and a schedule? Kernels that people wrote have
// none.
bool SaysSomething(const store::Record& record);

// None: it failed.
std::optional<double> CostOf(const store::Record& record);

using RecordList = std::vector<const store::Record*>;  // not owned

// Up to `most` of `records`, in their order: one half the fastest, the other by chance, always the
// same ones as long as there are no more records.
RecordList Choose(RecordList records, size_t most);

// By workload and device: costs of one are never compared with those of another.
using RecordGroups = std::map<std::pair<std::string_view, std::string_view>, RecordList>;

// Up to `most` of all, shared out evenly. Group by group.
RecordList ChooseOfEach(const RecordGroups& groups, size_t most);

using Steps = std::vector<schedule::StepPtr>;

// The steps of each; nothing where they do not parse, which is logged once for the job.
std::vector<std::optional<Steps>> ParseAll(std::string_view job_id, const RecordList& records,
                                           const std::stop_token& stop, ThreadPool& pool);

}  // namespace kiln::scheduler
