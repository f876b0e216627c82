// Measure logs into a store and out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

inline constexpr std::string_view kImportJob = "import";

struct ImportResult {
  int64_t imported = 0;
  int64_t duplicates = 0;  // in the store already (Store::HasMeasurement), or twice in the log
  std::vector<std::string> errors;  // "line 12: ...": refused; the others are imported
};

// Takes lines one by one and commits them in batches. Not thread-safe; one importer per job at a
// time, since it numbers the trials.
class LogImporter {
 public:
  // Makes the job, already succeeded, if it is not there.
  static StatusOr<LogImporter> Begin(Store& store, int64_t now_ms,
                                     std::string_view job_id = kImportJob);

  // A line without its line feed; comments are skipped. A bad line goes to the result, a failing
  // store is an error.
  Status AddLine(std::string_view line);
  // Commits what is left. Without it the last batch is not imported.
  StatusOr<ImportResult> Finish();

 private:
  LogImporter(Store& store, std::string_view job_id, uint32_t next_trial)
      : store_(&store), job_id_(job_id), next_trial_(next_trial) {}
  Status Flush();

  Store* store_;
  std::string job_id_;
  uint32_t next_trial_;
  int64_t line_number_ = 0;
  std::vector<Record> batch_;
  ImportResult result_;
};

// All lines of a log.
StatusOr<ImportResult> ImportLog(Store& store, std::string_view text, int64_t now_ms,
                                 std::string_view job_id = kImportJob);

// Writes each matching record as a line with its line feed. Returns how many.
StatusOr<int64_t> ExportLog(Store& store, const RecordFilter& filter,
                            const std::function<Status(std::string_view)>& write);

}  // namespace kiln::store
