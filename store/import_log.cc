#include "store/import_log.h"

#include <algorithm>
#include <utility>

#include "base/text/utf8.h"
#include "store/autotvm_log.h"
#include "store/measure_log.h"
#include "store/plausible_cost.h"

namespace kiln::store {
namespace {

// Batches are large, since a commit is a sync of the disk and holds up other writers.
constexpr int64_t kBatchRecords = 4096;
constexpr size_t kBatchBytes = size_t{8} << 20;
// Most bytes of the reason that a refusal quotes.
constexpr size_t kMaxWhyBytes = 512;

Status CheckText(std::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return InvalidArgument("it has more than {} bytes", kMaxLineBytes);
  }
  if (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff")) {
    return InvalidArgument("it is UTF-16, expected UTF-8; `iconv -f UTF-16 -t UTF-8` converts it");
  }
  return IsUtf8(line) ? OkStatus() : InvalidArgument("it is no valid UTF-8");
}

StatusOr<LogRecord> ScheduleRecord(std::string_view line, const StepsCheck& check_steps) {
  KILN_ASSIGN_OR_RETURN(MeasureLogLine parsed, ParseMeasureLogLine(line));
  KILN_RETURN_IF_ERROR(Annotate(check_steps(parsed.steps_json), "its steps"));
  KILN_ASSIGN_OR_RETURN(Record record, RecordOfLine(std::move(parsed), kImportJob, /*trial=*/0));
  return LogRecord(std::move(record));
}

StatusOr<LogRecord> TemplateRecord(std::string_view line) {
  KILN_ASSIGN_OR_RETURN(AutotvmRecord record, ParseAutotvmLine(line));
  KILN_RETURN_IF_ERROR(ValidateAutotvmRecord(record));
  if (MeanCost(record) < kShortestCost_s) {
    return InvalidArgument("cost {} s is not plausible: shorter than a nanosecond",
                           MeanCost(record));
  }
  return LogRecord(std::move(record));
}

}  // namespace

StatusOr<LogRecord> RecordOfLogLine(std::string_view line, const StepsCheck& check_steps) {
  KILN_RETURN_IF_ERROR(CheckText(line));
  switch (KindOfLogLine(line)) {
    case LogLineKind::kMeasureRecord:
      return ScheduleRecord(line, check_steps);
    case LogLineKind::kAutotvm:
      return TemplateRecord(line);
    case LogLineKind::kAutotvmOld:
      return LogRecord(IgnoredLine());
    case LogLineKind::kAutotvmPickle:
      return InvalidArgument(
          "it is of autotvm's pickle protocol, which holds Python objects; expected the JSON "
          "protocol");
  }
  return Internal("a line of an unknown kind");
}

StatusOr<LogImporter> LogImporter::Begin(Store& store, int64_t now_ms, LogChecks checks,
                                         std::string_view job_id) {
  JobRow job;
  job.id = job_id;
  job.name = "imported records";
  job.state = JobState::kSucceeded;
  job.created_ms = now_ms;
  job.started_ms = job.finished_ms = now_ms;
  const Status added = store.AddJob(job);
  if (added.code() != StatusCode::kAlreadyExists) KILN_RETURN_IF_ERROR(added);
  return LogImporter(store, std::move(checks), job_id);
}

Status LogImporter::AddLine(std::string_view line) {
  ++line_number_;
  if (IsMeasureLogComment(line)) return OkStatus();
  const Status taken = Take(line);
  if (taken.code() == StatusCode::kInvalidArgument) {
    Refuse(Message(taken));
    return OkStatus();
  }
  KILN_RETURN_IF_ERROR(taken);
  if (batch_.size() < kBatchRecords && batch_.bytes < kBatchBytes) return OkStatus();
  return writer_->Put(std::exchange(batch_, {}));
}

Status LogImporter::Take(std::string_view line) {
  KILN_ASSIGN_OR_RETURN(LogRecord record, RecordOfLogLine(line, checks_.steps));
  if (std::holds_alternative<IgnoredLine>(record)) {
    ++result_.ignored;
    return OkStatus();
  }
  batch_.bytes += line.size();
  if (auto* autotvm = std::get_if<AutotvmRecord>(&record)) {
    batch_.autotvm.push_back(std::move(*autotvm));
    return OkStatus();
  }
  KILN_RETURN_IF_ERROR(SettleByKey(std::get<Record>(record)));
  batch_.records.push_back(std::get<Record>(std::move(record)));
  return OkStatus();
}

void LogImporter::Refuse(std::string_view why) {
  ++result_.refused;
  if (result_.errors.size() >= ImportResult::kMaxErrors) return;
  const bool whole = why.size() <= kMaxWhyBytes;
  result_.errors.push_back(fmt::format("line {}: {}{}", line_number_,
                                       ValidUtf8(why.substr(0, kMaxWhyBytes)), whole ? "" : "..."));
}

// Checks the record, and binds it, by the facts that are known about its key.
Status LogImporter::SettleByKey(Record& record) {
  KILN_ASSIGN_OR_RETURN(const Key* key, Find(record.workload_key));
  KILN_RETURN_IF_ERROR(CheckPlausible(record, key->flops));
  if (key->bound.has_value()) Bind(*key->bound, record);
  return OkStatus();
}

void LogImporter::Bind(const Computation& computation, Record& record) {
  if (const Status fits = checks_.fits(computation.dag, record.steps); !fits.ok()) {
    if (++result_.unfit == 1) {
      result_.first_unfit = fmt::format("line {}: {}", line_number_, Message(fits));
    }
    return;
  }
  ++result_.fitting;
  record.workload_id = computation.id;
  record.dag = computation.dag;
  record.flop_count = computation.flop_count;
}

StatusOr<const LogImporter::Key*> LogImporter::Find(const std::string& workload_key) {
  constexpr size_t kMaxKept = 10'000, kMaxKeyBytes = 4'096;
  if (const auto known = keys_.find(workload_key); known != keys_.end()) return &known->second;
  Key key;
  KILN_ASSIGN_OR_RETURN(key.bound, store_->BoundTo(workload_key));
  KILN_ASSIGN_OR_RETURN(const std::vector<Computation> computations,
                        store_->ComputationsOfKey(workload_key));
  for (const Computation& computation : computations) {
    const double flops = std::max(0.0, computation.flop_count);
    key.flops = &computation == &computations.front() ? flops : std::min(key.flops, flops);
  }
  const bool keep = keys_.size() < kMaxKept && workload_key.size() <= kMaxKeyBytes;
  if (keep) return &keys_.emplace(workload_key, std::move(key)).first->second;
  last_key_ = std::move(key);
  return &last_key_;
}

StatusOr<ImportResult> LogImporter::Finish() {
  KILN_ASSIGN_OR_RETURN(const BatchWriter::Counts counts,
                        writer_->Finish(std::exchange(batch_, {})));
  result_.imported = counts.imported;
  result_.autotvm = counts.autotvm;
  result_.duplicates = counts.duplicates;
  return result_;
}

StatusOr<ImportResult> ImportLog(Store& store, std::string_view text, int64_t now_ms,
                                 const LogChecks& checks, std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(LogImporter importer, LogImporter::Begin(store, now_ms, checks, job_id));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    KILN_RETURN_IF_ERROR(importer.AddLine(line));
  }
  return importer.Finish();
}

StatusOr<int64_t> ExportLog(Store& store, const RecordFilter& filter,
                            const std::function<Status(std::string_view)>& write) {
  int64_t written = 0;
  KILN_RETURN_IF_ERROR(store.ForEachRecord(filter, [&](const Record& record) -> Status {
    KILN_ASSIGN_OR_RETURN(const MeasureLogLine line, LineOfRecord(record));
    KILN_RETURN_IF_ERROR(write(PrintMeasureLogLine(line) + "\n"));
    ++written;
    return OkStatus();
  }));
  return written;
}

StatusOr<int64_t> ExportAutotvmLog(Store& store, const AutotvmFilter& filter,
                                   const std::function<Status(std::string_view)>& write) {
  int64_t written = 0;
  KILN_RETURN_IF_ERROR(store.ForEachAutotvmRecord(filter, [&](const AutotvmRecord& record) {
    ++written;
    return write(PrintAutotvmLine(record) + "\n");
  }));
  return written;
}

}  // namespace kiln::store
