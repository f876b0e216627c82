#include "store/import_log.h"

#include <algorithm>
#include <tuple>

#include "store/measure_log.h"

namespace kiln::store {
namespace {

constexpr size_t kBatchSize = 256;

// The rule of Store::HasMeasurement.
bool SameMeasurement(const Record& a, const Record& b) {
  auto identity = [](const Record& r) {
    return std::tie(r.timestamp_s, r.error, r.workload_key, r.target, r.steps);
  };
  return identity(a) == identity(b);
}

}  // namespace

StatusOr<LogImporter> LogImporter::Begin(Store& store, int64_t now_ms, std::string_view job_id) {
  JobRow job;
  job.id = job_id;
  job.name = "imported records";
  job.state = JobState::kSucceeded;
  job.created_ms = job.started_ms = job.finished_ms = now_ms;
  const Status added = store.AddJob(job);
  if (added.code() != StatusCode::kAlreadyExists) KILN_RETURN_IF_ERROR(added);
  KILN_ASSIGN_OR_RETURN(const TrialCounts counts, store.CountTrials(job_id));
  return LogImporter(store, job_id, counts.next_trial);
}

Status LogImporter::AddLine(std::string_view line) {
  ++line_number_;
  if (IsMeasureLogComment(line)) return OkStatus();
  auto parse = [&]() -> StatusOr<Record> {
    KILN_ASSIGN_OR_RETURN(const MeasureLogLine parsed, ParseMeasureLogLine(line));
    return RecordOfLine(parsed, job_id_, next_trial_);
  };
  StatusOr<Record> record = parse();
  if (!record.ok()) {
    result_.errors.push_back(fmt::format("line {}: {}", line_number_, Message(record.status())));
    return OkStatus();
  }
  const bool in_batch = std::any_of(batch_.begin(), batch_.end(), [&](const Record& other) {
    return SameMeasurement(*record, other);
  });
  KILN_ASSIGN_OR_RETURN(const bool stored, store_->HasMeasurement(*record));
  if (in_batch || stored) {
    ++result_.duplicates;
    return OkStatus();
  }
  batch_.push_back(*std::move(record));
  ++next_trial_;
  return batch_.size() < kBatchSize ? OkStatus() : Flush();
}

Status LogImporter::Flush() {
  if (batch_.empty()) return OkStatus();
  KILN_RETURN_IF_ERROR(store_->AddRecords(batch_).status());
  result_.imported += static_cast<int64_t>(batch_.size());
  batch_.clear();
  return OkStatus();
}

StatusOr<ImportResult> LogImporter::Finish() {
  KILN_RETURN_IF_ERROR(Flush());
  return result_;
}

StatusOr<ImportResult> ImportLog(Store& store, std::string_view text, int64_t now_ms,
                                 std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(LogImporter importer, LogImporter::Begin(store, now_ms, job_id));
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
