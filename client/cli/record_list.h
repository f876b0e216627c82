// kiln records list, delete: records by what they are of, where and when they were measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  std::string since;            // see ParseSince
  bool errors = false;          // failed ones too
  std::optional<uint32_t> top;  // only so many, the best ones first; none: all, by number
};

struct DeleteFlags {
  std::vector<std::string> what;  // numbers of records, jobs
  RecordFilterFlags filter;       // beside them
  bool yes = false;               // does not ask
};

// "90s", "30m", "12h", "7d": so long ago; "2026-11-21" or "2026-11-21 09:45": local time. In unix
// seconds.
StatusOr<int64_t> ParseSince(const std::string& text, int64_t now_s);

StatusOr<v1::ListRecordsRequest> RequestOf(const RecordFilterFlags& flags, int64_t now_s);

Status ListRecordsCommand(const RecordFilterFlags& flags, const Session& session);
// Asks before it deletes, on a terminal; elsewhere `yes` must say so.
Status DeleteRecordsCommand(const DeleteFlags& flags, const Session& session);

}  // namespace kiln::client
