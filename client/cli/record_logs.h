// kiln records export, import, distill: logs of auto_scheduler and of autotvm, and other databases.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/session.h"

namespace kiln::client {

// Values of --format.
inline constexpr const char* kScheduleFormat = "auto_scheduler";
inline constexpr const char* kAutotvmFormat = "autotvm";

struct ExportFlags {
  std::string format = kScheduleFormat;
  // `output` "": stdout.
  std::string job, workload, output;
  bool errors = false;
  // True: records with steps that TVM does not have are included.
  bool extended = false;
  // True: a line for each key that logs have for the computation.
  bool all_keys = false;
};
Status ExportCommand(const ExportFlags& flags, const Session& session);

struct ImportFlags {
  // Logs, "-" for stdin, or databases.
  std::vector<std::string> paths;
  // A file for the refused lines; "": they are only listed.
  std::string rejected;
  // Bindings that are made before (bindings.h).
  std::vector<std::string> bind;
};
// The keys of a line tell its kind: a log may have lines of both kinds.
Status ImportCommand(const ImportFlags& flags, const Session& session);

struct DistillFlags {
  // Kind of the records that are taken from the session.
  std::string format = kScheduleFormat;
  // `path` is a log file; "": the session's records.
  std::string path, output;
  // True: records with steps that TVM does not have are included.
  bool extended = false;
};
// A log has the format of its first line.
Status DistillCommand(const DistillFlags& flags, const Session& session);

}  // namespace kiln::client
