#include "store/import_log.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "store/measure_log.h"
#include "store/plausible.h"

namespace kiln::store {
namespace {

constexpr size_t kBatchSize = 256;

}  // namespace

StatusOr<Record> RecordOfLogLine(std::string_view line, const StepsCheck& check_steps,
                                 std::string_view job_id, uint32_t trial) {
  if (line.size() > kMostLineBytes) {
    return InvalidArgument("it has more than {} bytes", kMostLineBytes);
  }
  if (ValidUtf8(line) != line) return InvalidArgument("it is no valid UTF-8");
  KILN_ASSIGN_OR_RETURN(const MeasureLogLine parsed, ParseMeasureLogLine(line));
  KILN_RETURN_IF_ERROR(Annotate(check_steps(parsed.steps_json), "its steps"));
  return RecordOfLine(parsed, job_id, trial);
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
  StatusOr<Record> record = Parse(line);
  if (record.status().code() == StatusCode::kInvalidArgument) {
    Refuse(Message(record.status()));
    return OkStatus();
  }
  KILN_RETURN_IF_ERROR(record.status());
  batch_.push_back(*std::move(record));
  return batch_.size() < kBatchSize ? OkStatus() : Flush();
}

void LogImporter::Refuse(std::string_view why) {
  ++result_.refused;
  if (result_.errors.size() < ImportResult::kMostErrors) {
    result_.errors.push_back(fmt::format("line {}: {}", line_number_, why));
  }
}

StatusOr<Record> LogImporter::Parse(std::string_view line) {
  KILN_ASSIGN_OR_RETURN(Record record, RecordOfLogLine(line, checks_.steps, job_id_, 0));
  KILN_ASSIGN_OR_RETURN(const Key key, Find(record.workload_key));
  KILN_RETURN_IF_ERROR(CheckPlausible(record, key.flops));
  if (key.bound.has_value()) Bind(*key.bound, record);
  return record;
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

StatusOr<LogImporter::Key> LogImporter::Find(const std::string& workload_key) {
  constexpr size_t kMostKept = 10'000;
  if (const auto known = keys_.find(workload_key); known != keys_.end()) return known->second;
  Key key;
  KILN_ASSIGN_OR_RETURN(key.bound, store_->BoundTo(workload_key));
  KILN_ASSIGN_OR_RETURN(const std::vector<Computation> computations,
                        store_->ComputationsOfKey(workload_key));
  for (const Computation& computation : computations) {
    const double flops = std::max(0.0, computation.flop_count);
    key.flops = &computation == &computations.front() ? flops : std::min(key.flops, flops);
  }
  if (keys_.size() < kMostKept) keys_.emplace(workload_key, key);
  return key;
}

Status LogImporter::Flush() {
  if (batch_.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const int64_t imported, store_->ImportRecords(job_id_, batch_));
  result_.imported += imported;
  result_.duplicates += static_cast<int64_t>(batch_.size()) - imported;
  batch_.clear();
  return OkStatus();
}

StatusOr<ImportResult> LogImporter::Finish() {
  KILN_RETURN_IF_ERROR(Flush());
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

}  // namespace kiln::store
