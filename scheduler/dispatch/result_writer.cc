#include "scheduler/dispatch/result_writer.h"

#include <chrono>
#include <optional>
#include <utility>

#include "store/wire/kept_times.h"

namespace kiln::scheduler {
namespace {

// Time between two writes of the readings of elites.
constexpr std::chrono::seconds kWriteReadings{1};

}  // namespace

ResultWriter::ResultWriter(std::string job_id, std::set<int> references_known, Clock& clock,
                           TrialLedger& ledger, IdleReadings& readings, store::Store& store,
                           std::function<void()> committed,
                           std::function<void(const store::Record&)> traced,
                           std::function<void()> written)
    : job_id_(std::move(job_id)),
      clock_(clock),
      ledger_(ledger),
      readings_(readings),
      store_(store),
      committed_(std::move(committed)),
      traced_(std::move(traced)),
      written_(std::move(written)),
      references_known_(std::move(references_known)),
      thread_([this] { Run(); }) {}

void ResultWriter::Run() {
  TrialLedger::TimePoint write_readings = std::chrono::steady_clock::now() + kWriteReadings;
  while (true) {
    const bool unwritten = readings_.has_unwritten();
    const auto due = [&] {
      return readings_.has_failures() || (!unwritten && readings_.has_unwritten());
    };
    TrialLedger::Batch batch =
        ledger_.TakeMeasured(due, unwritten ? std::optional(write_readings) : std::nullopt);
    const bool ends = batch.closing && batch.trials.empty();
    const auto now = std::chrono::steady_clock::now();
    const bool with_readings = ends || readings_.has_failures() || now >= write_readings;
    if (batch.trials.empty() && !with_readings) continue;
    const Status written = Write(batch.trials, with_readings);
    if (!written.ok()) return ledger_.Fail(Annotate(written, "results cannot be stored"));
    if (ends) return;
    if (with_readings) write_readings = now + kWriteReadings;
    committed_();
    if (traced_ != nullptr) {
      for (const MeasuredTrial& measured : batch.trials) traced_(measured.record);
    }
    for (MeasuredTrial& measured : batch.trials) readings_.Add(measured);
    ledger_.Finish(batch.trials);
    if (!batch.trials.empty()) written_();
  }
}

Status ResultWriter::Write(std::vector<MeasuredTrial>& trials, bool with_readings) {
  if (!trials.empty()) KILN_RETURN_IF_ERROR(Commit(trials));
  return with_readings ? readings_.Write() : OkStatus();
}

Status ResultWriter::Commit(std::vector<MeasuredTrial>& trials) {
  std::vector<store::Record> records;
  std::vector<store::ReferenceCost> costs;
  const int64_t now_us = absl::ToUnixMicros(clock_.Now());
  for (MeasuredTrial& measured : trials) {
    measured.instants.set_committed_us(now_us);
    store::AppendInstants(measured.instants, measured.record.times);
    records.push_back(measured.record);
    if (!measured.reference_cost_s.has_value()) continue;
    if (!references_known_.insert(measured.trial.task).second) continue;
    costs.push_back({job_id_, measured.record.task_index, *measured.reference_cost_s});
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, store_.AddRecords(records, costs));
  for (size_t i = 0; i < trials.size(); ++i) trials[i].record.id = ids[i];
  return OkStatus();
}

}  // namespace kiln::scheduler
