#include "client/cli/jobs/record_log.h"

#include <fstream>
#include <functional>

#include "compiler/handwritten/kernel_point.h"
#include "store/measure_log.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

uint64_t HashOf(const std::string& line) { return std::hash<std::string>{}(line); }

}  // namespace

StatusOr<RecordLog> RecordLog::Open(const std::string& path) {
  RecordLog log(path);
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) log.lines_.insert(HashOf(line));
  // The job must not begin if its records cannot be kept.
  if (std::ofstream(path, std::ios::app)) return log;
  return InvalidArgument("cannot write to {}, expected a file in a folder that is there", path);
}

Status RecordLog::Add(const v1::Record& record) {
  if (handwritten::IsKernelPoint(record.steps())) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const store::MeasureLogLine parts,
                        store::LineOfRecord(store::RecordOf(record)));
  const std::string line = store::PrintMeasureLogLine(parts);
  if (!lines_.insert(HashOf(line)).second) return OkStatus();
  std::ofstream file(path_, std::ios::app);
  file << line << '\n' << std::flush;
  if (file) return OkStatus();
  return Unavailable("cannot write to {}", path_);
}

}  // namespace kiln::client
