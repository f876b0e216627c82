// kiln records list, delete, prune: records by what they are of, where and when they were measured.
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

// All that are set must hold; nothing set: all records without an error.
struct RecordFilterFlags {
  std::string job;
  std::string workload;         // a key, or the identity of a computation
  WorkloadArguments arguments;  // an operator or text file
  std::string target;           // only targets that start so
  std::string device;
  std::string since, until;     // see ParseTime
  bool errors = false;          // failed ones too
  std::optional<uint32_t> top;  // only so many, the best ones first; none: all, by number
  // Also of workloads with other extents that are at most so far from `workload` or `arguments`
  // (search/choice/workload_distance.h): ranked by cost x distance. None: of the workload alone.
  std::optional<double> distance;
};

struct DeleteFlags {
  std::vector<std::string> what;  // numbers of records, jobs
  RecordFilterFlags filter;       // beside them
  bool yes = false;               // does not ask
};

struct PruneFlags {
  // The best ones of each computation and target, of autotvm's of each workload of a template and
  // target; none: 1.
  std::optional<uint32_t> keep;
  std::string older_than;    // only records older than this go, see ParseTime
  RecordFilterFlags filter;  // only of these
  bool yes = false;          // does not ask
};

// The number from 0 on that the whole text is.
std::optional<int64_t> WholeNumber(std::string_view text);

// "90s", "30m", "12h", "7d": so long ago; "2026-11-21" or "2026-11-21 09:45": local time. In unix
// seconds.
StatusOr<int64_t> ParseTime(const std::string& text, int64_t now_s);

StatusOr<v1::ListRecordsRequest> RequestOf(const RecordFilterFlags& flags, int64_t now_s);

Status ListRecordsCommand(const RecordFilterFlags& flags, const Session& session);
// Asks before it deletes, on a terminal; elsewhere `yes` must say so.
Status DeleteRecordsCommand(const DeleteFlags& flags, const Session& session);
// Says for each computation and target how many records go and stay; then as above. Records of jobs
// that have not ended stay. Both delete autotvm's records that the filter takes as well
// (autotvm_list.h).
Status PruneRecordsCommand(const PruneFlags& flags, const Session& session);

}  // namespace kiln::client
