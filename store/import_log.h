// Logs into a store and out of it: lines of auto_scheduler (measure_log.h) and of autotvm
// (autotvm_log.h), which may stand in one file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "store/batch_writer.h"
#include "store/bind.h"
#include "store/store.h"

namespace kiln::store {

inline constexpr std::string_view kImportJob = "import";

// Why steps are none that a schedule can have; OK: they are. The store knows steps as text only.
using StepsCheck = std::function<Status(std::string_view steps_json)>;

// What the store does not know of steps and computations.
struct LogChecks {
  StepsCheck steps;
  FitCheck fits;
};

// Lines that are longer are refused: no schedule is so long.
inline constexpr size_t kMostLineBytes = size_t{16} << 20;

struct ImportResult {
  int64_t imported = 0;
  int64_t autotvm = 0;     // of these, so many are records of autotvm
  int64_t duplicates = 0;  // in the store already (Store::HasMeasurement), or twice in the log
  int64_t ignored = 0;     // lines of autotvm's version 0.1, which autotvm ignores as well
  int64_t refused = 0;     // the others are imported
  std::vector<std::string> errors;  // "line 12: ...", of the first kMostErrors that were refused
  static constexpr size_t kMostErrors = 1'000;
  // Of lines whose key is bound to a computation (bind.h): those that fit it are of it, the others
  // are imported as being of none.
  int64_t fitting = 0;
  int64_t unfit = 0;
  std::string first_unfit = {};  // "line 12: ..."
};

// Takes lines one by one and commits them in batches, of bounded bytes, while it reads on
// (batch_writer.h). Not thread-safe; several may import into one job at once: a line that two of
// them have is imported once.
class LogImporter {
 public:
  // Makes the job, already succeeded, if it is not there.
  static StatusOr<LogImporter> Begin(Store& store, int64_t now_ms, LogChecks checks,
                                     std::string_view job_id = kImportJob);

  // A line without its line feed; comments are skipped. A bad line goes to the result, a failing
  // store is an error, of this call or a later one. Bad are what ParseMeasureLogLine refuses, and a cost that no device can have
  // (plausible.h) for what the store knows of the key.
  Status AddLine(std::string_view line);
  // Commits what is left. Without it the last batches may not be imported.
  StatusOr<ImportResult> Finish();

 private:
  LogImporter(Store& store, LogChecks checks, std::string_view job_id)
      : store_(&store),
        checks_(std::move(checks)),
        writer_(std::make_unique<BatchWriter>(store, job_id)) {}
  Status Take(std::string_view line);
  void Refuse(std::string_view why);
  Status SettleByKey(Record& record);
  // What is known of a key.
  struct Key {
    double flops = 0;  // the least that a computation with it has to do; 0: not known
    std::optional<Computation> bound = {};
  };
  StatusOr<const Key*> Find(const std::string& workload_key);
  void Bind(const Computation& computation, Record& record);

  Store* store_;
  LogChecks checks_;
  int64_t line_number_ = 0;
  BatchWriter::Batch batch_;
  std::map<std::string, Key> keys_;  // as found
  Key last_key_;                     // of those that are not kept there
  ImportResult result_;
  std::unique_ptr<BatchWriter> writer_;
};

struct IgnoredLine {};
using LogRecord = std::variant<IgnoredLine, Record, AutotvmRecord>;

// The record of a line that is no comment, as it is imported: a Record has no job and no trial yet.
// InvalidArgument: the line is refused, whatever the store knows.
StatusOr<LogRecord> RecordOfLogLine(std::string_view line, const StepsCheck& check_steps);

// All lines of a log.
StatusOr<ImportResult> ImportLog(Store& store, std::string_view text, int64_t now_ms,
                                 const LogChecks& checks, std::string_view job_id = kImportJob);

// Writes each matching record as a line with its line feed. Returns how many.
StatusOr<int64_t> ExportLog(Store& store, const RecordFilter& filter,
                            const std::function<Status(std::string_view)>& write);
StatusOr<int64_t> ExportAutotvmLog(Store& store, const AutotvmFilter& filter,
                                   const std::function<Status(std::string_view)>& write);

}  // namespace kiln::store
