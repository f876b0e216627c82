// kiln records list, delete and prune: select records by computation, and by place and time of
// measuring.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/cli/workload_source.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

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

struct DeleteFlags {
  // Numbers of records, and jobs.
  std::vector<std::string> what;
  // Further condition.
  RecordFilterFlags filter;
  // True: does not ask.
  bool yes = false;
};

struct PruneFlags {
  // Number of best records to keep for each computation and target; for autotvm's records, for each
  // workload of a template and target. None: 1.
  std::optional<uint32_t> keep;
  // Only records older than this are deleted; see ParseTime.
  std::string older_than;
  // Only records that match are deleted.
  RecordFilterFlags filter;
  // True: does not ask.
  bool yes = false;
};

// Returns the number if the whole text is a number from 0 on.
std::optional<int64_t> WholeNumber(std::string_view text);

// Parses a time: "90s", "30m", "12h", "7d" ago; "2026-11-21" or "2026-11-21 09:45" in local time.
// Returns unix seconds.
StatusOr<int64_t> ParseTime(const std::string& text, int64_t now_s);

StatusOr<v1::ListRecordsRequest> RequestOf(const RecordFilterFlags& flags, int64_t now_s);

Status ListRecordsCommand(const RecordFilterFlags& flags, const Session& session);
// Asks on a terminal before it deletes. Without a terminal `yes` must be set.
Status DeleteRecordsCommand(const DeleteFlags& flags, const Session& session);
// Prints for each computation and target how many records are deleted and kept; then proceeds like
// DeleteRecordsCommand. Records of jobs that have not ended are kept. Both commands also delete
// matching records of autotvm (autotvm_list.h).
Status PruneRecordsCommand(const PruneFlags& flags, const Session& session);

}  // namespace kiln::client
