// kiln records export, import, distill: logs of auto_scheduler and of autotvm, and other databases.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/session.h"

namespace kiln::client {

// What --format takes.
inline constexpr const char* kScheduleFormat = "auto_scheduler";
inline constexpr const char* kAutotvmFormat = "autotvm";

struct ExportFlags {
  std::string format = kScheduleFormat;
  std::string job, workload, output;  // output "": stdout
  bool errors = false;
  bool extended = false;  // records with steps that TVM does not have, too
  bool all_keys = false;  // a line for each key that logs have for the computation
};
Status ExportCommand(const ExportFlags& flags, const Session& session);

struct ImportFlags {
  std::vector<std::string> paths;  // logs, "-" for stdin, or databases
  std::string rejected;           // a file for the lines that are refused; "": they are named alone
  std::vector<std::string> bind;  // before: bindings.h
};
// Lines are told apart by their keys: a log may have those of both kinds.
Status ImportCommand(const ImportFlags& flags, const Session& session);

struct DistillFlags {
  std::string format = kScheduleFormat;  // of what is taken from the session's records
  std::string path, output;              // of a log file, or with path "" of the session's records
  bool extended = false;                 // records with steps that TVM does not have, too
};
// A log's format is that of its first line.
Status DistillCommand(const DistillFlags& flags, const Session& session);

}  // namespace kiln::client
