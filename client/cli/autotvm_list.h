// Records of autotvm's logs for people and scripts, as kiln records list and kiln best print them.
// They have tables of their own, since a configuration means nothing without its template.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/archive.h"
#include "client/cli/record_filter.h"
#include "client/session.h"
#include "store/autotvm_record.h"

namespace kiln::client {

// Returns the arguments of a workload in a log line as "float32[1, 768], null, relu". JSON of
// another form stays unchanged. The text is printable.
std::string AutotvmArguments(std::string_view json);

// Visits the records that match the filter by target, template (`workload`), time and error; with
// --top the best ones, best first. Visits none if the filter has a condition that these records
// lack: a job, a computation, a device, a distance.
Status VisitAutotvmRecords(const RecordFilterFlags& flags, int64_t now_s, Archive& archive,
                           const std::function<Status(const store::AutotvmRecord&)>& visit);

// Prints the same records. `after_others`: a table stands above. Returns the number of records.
StatusOr<int64_t> ListAutotvmRecords(const RecordFilterFlags& flags, int64_t now_s,
                                     bool after_others, const Session& session, Archive& archive);

// Prints the best record of each workload of a template, for each model and key of a target, and
// the values of its knobs. Returns the number of records.
StatusOr<int64_t> PrintBestOfTemplate(const std::string& name, const std::string& target,
                                      const Session& session, Archive& archive);

// Prints "configuration 10 of float32[1, 768], null: tile_k=[-1,48]" and the latency.
void PrintConfiguration(const store::AutotvmRecord& record);

}  // namespace kiln::client
