// Selects and parses records of earlier jobs for a new one.
//
// Pure functions but for the log. Any thread.
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

namespace kiln::training {

// Compares device names as records have them. "" is the same as any device.
bool SameDevice(std::string_view a, std::string_view b);

// Returns nothing if the trial failed.
std::optional<double> CostOf(const store::Record& record);

using RecordList = std::vector<const store::Record*>;  // pointers are not owned

// Returns up to `most` of `records`, in their order: one half are the fastest, the other half is
// drawn at random. The draw is the same as long as the number of records is.
RecordList Choose(RecordList records, size_t most);

// Records by workload and device, as costs of different groups are never compared.
using RecordGroups = std::map<std::pair<std::string_view, std::string_view>, RecordList>;

// Chooses up to `most` records in all, shared out evenly among the groups. The result is ordered by
// group.
RecordList ChooseFromEachGroup(const RecordGroups& groups, size_t most);

using Steps = std::vector<schedule::StepPtr>;

// Returns the steps of each record, or nothing for steps that do not parse, which is logged once
// for the job.
std::vector<std::optional<Steps>> ParseAll(std::string_view job_id, const RecordList& records,
                                           const std::stop_token& stop, ThreadPool& pool);

}  // namespace kiln::training
