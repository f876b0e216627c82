// Records of autotvm's logs for people and scripts: what kiln records list and kiln best say of
// them. A configuration says nothing without its template, so they stand in tables of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/archive.h"
#include "client/cli/record_list.h"
#include "client/session.h"
#include "store/autotvm_record.h"

namespace kiln::client {

// "float32[1, 768], null, relu": the arguments of a workload as a line of a log has them. Of what
// has another form the JSON as it is. Fit to be printed.
std::string AutotvmArguments(std::string_view json);

// Visits those that the filter takes: by target, template (`workload`), time and error; with --top
// the best ones, best first. None, where it asks for what they do not have: a job, a computation, a
// device, a distance.
Status VisitAutotvmRecords(const RecordFilterFlags& flags, int64_t now_s, Archive& archive,
                           const std::function<Status(const store::AutotvmRecord&)>& visit);

// Prints those. `after_others`: a table stands above. Returns how many.
StatusOr<int64_t> ListAutotvmRecords(const RecordFilterFlags& flags, int64_t now_s,
                                     bool after_others, const Session& session, Archive& archive);

// Prints the best of each workload of a template, for each model and key of a target, and what its
// knobs are. Returns how many.
StatusOr<int64_t> PrintBestOfTemplate(const std::string& name, const std::string& target,
                                      const Session& session, Archive& archive);

// "configuration 10 of float32[1, 768], null: tile_k=[-1,48]", and what it took.
void PrintConfiguration(const store::AutotvmRecord& record);

}  // namespace kiln::client
