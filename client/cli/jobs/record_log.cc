#include "client/cli/jobs/record_log.h"

#include <cerrno>
#include <functional>
#include <utility>

#include "base/errno_status.h"
#include "compiler/handwritten/kernel_point.h"
#include "store/measure_log.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

uint64_t HashOf(const std::string& line) { return std::hash<std::string>{}(line); }

}  // namespace

StatusOr<RecordLog> RecordLog::Open(const std::string& path) {
  RecordLog log(path);
  std::ifstream before(path);
  for (std::string line; std::getline(before, line);) {
    log.lines_.insert(HashOf(line));
    log.is_cut_ = before.eof();
  }
  // The job must not begin if its records cannot be kept.
  errno = 0;
  log.file_.open(path, std::ios::app);
  if (log.file_) return log;
  return InvalidArgument("cannot write to {}: {}; expected a file in a folder that is there", path,
                         ErrnoText(errno));
}

Status RecordLog::Add(const v1::Record& record) {
  if (handwritten::IsKernelPoint(record.steps())) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const store::MeasureLogLine parts,
                        store::LineOfRecord(store::RecordOf(record)));
  const std::string line = store::PrintMeasureLogLine(parts);
  if (!lines_.insert(HashOf(line)).second) return OkStatus();
  errno = 0;
  file_ << (std::exchange(is_cut_, false) ? "\n" : "") << line << '\n' << std::flush;
  if (file_) return OkStatus();
  return Unavailable("cannot write to {}: {}", path_, ErrnoText(errno));
}

}  // namespace kiln::client
