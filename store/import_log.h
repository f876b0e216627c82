// Imports logs into a store and exports them. A file may mix lines of auto_scheduler
// (measure_log.h) and of autotvm (autotvm_log.h).
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

// Returns OK if a schedule can have the steps, otherwise an error that says why not. The store
// knows steps as text only.
using StepsCheck = std::function<Status(std::string_view steps_json)>;

// Checks of steps and computations that the store cannot make itself.
struct LogChecks {
  StepsCheck steps;
  FitCheck fits;
};

// Longest line that is accepted: no schedule is longer.
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;

struct ImportResult {
  int64_t imported = 0;
  // Records of autotvm; `imported` includes them.
  int64_t autotvm = 0;
  // Lines that the store has already (Store::HasMeasurement), or that the log has twice.
  int64_t duplicates = 0;
  // Lines of autotvm's version 0.1, which autotvm ignores as well.
  int64_t ignored = 0;
  // Bad lines. All other lines are imported.
  int64_t refused = 0;
  // "line 12: ...", of the first kMaxErrors refused lines.
  std::vector<std::string> errors;
  static constexpr size_t kMaxErrors = 1'000;
  // Lines whose key is bound to a computation (bind.h): those of `fitting` belong to the
  // computation, those of `unfit` are imported as records of no computation.
  int64_t fitting = 0;
  int64_t unfit = 0;
  // "line 12: ...": why the first of the unfit lines does not fit.
  std::string first_unfit = {};
};

// Takes lines one by one and commits them in batches of bounded bytes, while it reads on
// (batch_writer.h). Not thread-safe. Several importers may write into one job at once: a line that
// two of them have is imported once.
class LogImporter {
 public:
  // Adds the job in state succeeded unless the store has it already.
  static StatusOr<LogImporter> Begin(Store& store, int64_t now_ms, LogChecks checks,
                                     std::string_view job_id = kImportJob);

  // Takes a line without its line feed; comments are skipped. A bad line is counted in the result.
  // An error of the store is returned, by this call or a later one. A line is bad if
  // ParseMeasureLogLine refuses it, or if no device can have its cost (plausible.h), given the
  // FLOPs that the store knows for its key.
  Status AddLine(std::string_view line);
  // Commits the remaining records. Without this call the last batches may not be imported.
  StatusOr<ImportResult> Finish();

 private:
  LogImporter(Store& store, LogChecks checks, std::string_view job_id)
      : store_(&store),
        checks_(std::move(checks)),
        writer_(std::make_unique<BatchWriter>(store, job_id)) {}
  Status Take(std::string_view line);
  void Refuse(std::string_view why);
  Status SettleByKey(Record& record);
  // Facts about a workload key.
  struct Key {
    // FLOPs of the smallest computation with the key; 0: not known.
    double flops = 0;
    std::optional<Computation> bound = {};
  };
  StatusOr<const Key*> Find(const std::string& workload_key);
  void Bind(const Computation& computation, Record& record);

  Store* store_;
  LogChecks checks_;
  int64_t line_number_ = 0;
  BatchWriter::Batch batch_;
  // Cache of Find().
  std::map<std::string, Key> keys_;
  // The key found last, if `keys_` does not hold it.
  Key last_key_;
  ImportResult result_;
  std::unique_ptr<BatchWriter> writer_;
};

struct IgnoredLine {};
using LogRecord = std::variant<IgnoredLine, Record, AutotvmRecord>;

// Returns the record of a line that is no comment, as it is imported: a Record has no job and no
// trial yet. InvalidArgument: the line is refused, whatever the store knows.
StatusOr<LogRecord> RecordOfLogLine(std::string_view line, const StepsCheck& check_steps);

// Imports all lines of a log.
StatusOr<ImportResult> ImportLog(Store& store, std::string_view text, int64_t now_ms,
                                 const LogChecks& checks, std::string_view job_id = kImportJob);

// Writes each matching record as a line with its line feed. Returns the number of lines.
StatusOr<int64_t> ExportLog(Store& store, const RecordFilter& filter,
                            const std::function<Status(std::string_view)>& write);
StatusOr<int64_t> ExportAutotvmLog(Store& store, const AutotvmFilter& filter,
                                   const std::function<Status(std::string_view)>& write);

}  // namespace kiln::store
