// Selects records by computation, and by place and time of measuring, for the commands that work on
// many records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/jobs/workload_source.h"
#include "proto/scheduler.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

class SessionFlags;

// A record matches if it meets all conditions that are set. Without conditions all records without
// an error match.
struct RecordFilterFlags {
  std::string job;
  // A key, or the identity of a computation.
  std::string workload;
  // An operator or text file.
  WorkloadArguments arguments;
  // Selects the targets that start with this text.
  std::string target;
  std::string device;
  // See ParseTime.
  std::string since, until;
  // True: failed records match too.
  bool errors = false;
  // Number of records, the best ones first; none: all, by number.
  std::optional<uint32_t> top;
  // Selects workloads with other extents too, up to this distance from `workload` or `arguments`
  // (search/choice/workload_distance.h). Records are ranked by cost x distance. None: only the
  // workload itself.
  std::optional<double> distance;
};

// Adds the selection of records: by computation, place and time of measuring.
void AddRecordSelection(CLI::App& command, RecordFilterFlags& filter);
// Adds the number of the best records that are selected.
void AddTop(CLI::App& command, RecordFilterFlags& filter);
// Adds all conditions but the distance, and where the records are.
void AddRecordFilter(CLI::App& command, SessionFlags& session, RecordFilterFlags& filter);

// Returns the number if the whole text is a number from 0 on.
std::optional<int64_t> WholeNumber(std::string_view text);

// Parses a time: "90s", "30m", "12h", "7d" ago; "2026-11-21" or "2026-11-21 09:45" in local time.
// Returns unix seconds.
StatusOr<int64_t> ParseTime(const std::string& text, int64_t now_s);

StatusOr<v1::ListRecordsRequest> RequestOf(const RecordFilterFlags& flags, int64_t now_s);

}  // namespace kiln::client
