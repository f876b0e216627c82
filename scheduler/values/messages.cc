#include "scheduler/values/messages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/measured_as.h"
#include "store/wire/job_message.h"

namespace kiln::scheduler {
namespace {

constexpr size_t kMessageBytes = 1024;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Returns the reason why the store would refuse the result, or "" if it would not.
std::string Defect(const v1::TrialResult& result) {
  const int error = result.error();
  if (error < 0 || error >= store::kNumErrorKinds) {
    return fmt::format("the runner answered error kind {}, which is unknown", error);
  }
  if (error != store::kNoError) return "";
  if (result.costs_s().empty()) return "the runner answered a success without costs";
  for (const double cost : result.costs_s()) {
    if (!std::isfinite(cost) || cost <= 0) {
      return fmt::format("the runner answered a cost of {} s", cost);
    }
  }
  return "";
}

// Adds the facts that only a running job has.
void AddLive(const LiveStatus& live, v1::JobStatus& status) {
  if (!live.database_problem.empty() && status.message().empty()) {
    status.set_message("waits for the database: " + live.database_problem);
  }
  if (status.state() == v1::RUNNING && live.waiting_for_workers) {
    status.set_waiting_for_workers(1);
    if (status.message().empty()) status.set_message(live.blocked_reason);
  }
  status.set_device(live.device);
  status.set_phase(live.phase);
  status.mutable_notices()->Assign(live.notices.begin(), live.notices.end());
  if (live.next_task.has_value()) status.set_next_task(*live.next_task + 1);
  status.set_busy_share_last_minute(live.busy.busy_share);
  status.set_elites_share_last_minute(live.busy.elites_share);
  status.set_trials_per_s_last_minute(live.busy.trials_per_s);
  for (size_t i = 0; i < live.tuned_by.size() && i < static_cast<size_t>(status.tasks_size()); ++i)
    status.mutable_tasks(static_cast<int>(i))->set_tuned_by_job(live.tuned_by[i]);
  const size_t known = std::min(live.known.size(), static_cast<size_t>(status.tasks_size()));
  for (size_t i = 0; i < known; ++i) {
    v1::TaskStatus& task = *status.mutable_tasks(static_cast<int>(i));
    task.set_known_states(live.known[i].states);
    if (const auto& best = live.known[i].best; best.has_value()) {
      task.set_known_cost_s(best->cost_s);
      task.set_known_record_id(best->record_id);
    }
  }
}

}  // namespace

std::string CutText(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kGap = " ... ";
  if (text.size() <= max_bytes) return std::string(text);
  size_t head = (max_bytes - std::min(max_bytes, kGap.size())) / 2;
  size_t tail = text.size() - head;
  while (head > 0 && IsContinuation(text[head])) --head;
  while (tail < text.size() && IsContinuation(text[tail])) ++tail;
  return fmt::format("{}{}{}", text.substr(0, head), kGap, text.substr(tail));
}

void SetResult(const v1::TrialResult& result, store::Record& record) {
  const std::string defect = Defect(result);
  record.error = defect.empty() ? static_cast<int>(result.error()) : int{v1::UNKNOWN_ERROR};
  record.message = CutText(defect.empty() ? result.message() : defect, kMessageBytes);
  record.costs_s.clear();
  if (record.error == store::kNoError) {
    record.costs_s.assign(result.costs_s().begin(), result.costs_s().end());
  }
  record.run_s = result.run_s();
  if (result.timestamp_s() != 0) record.timestamp_s = result.timestamp_s();
  if (!result.device().empty()) record.device = result.device();
  if (!result.runner().empty()) record.runner = result.runner();
  record.stopped_early = result.stopped_early();
  // A worker may say anything.
  const auto way = device::ParseMeasuredAs(result.measured_as());
  record.measured_as = way.ok() ? result.measured_as() : "";
  record.max_error = result.max_error();
  if (record.error == store::kNoError)
    record.unchecked = CutText(result.unchecked(), kMessageBytes);
  record.sampled_outputs.reset();
  if (result.sampled_outputs() > 0) {
    record.sampled_outputs = static_cast<int64_t>(result.sampled_outputs());
  }
  record.times = result.times().SerializeAsString();
  record.device_state = result.device_state().SerializeAsString();
}

StatusOr<v1::JobStatus> StatusMessage(store::Store& store, const store::JobRow& job,
                                      const LiveStatus& live, int64_t now_ms) {
  v1::JobSpec spec;
  if (!spec.ParseFromString(job.spec)) {
    return DataLoss("the spec of job {} in the database is damaged", job.id);
  }
  KILN_ASSIGN_OR_RETURN(v1::JobStatus status,
                        store::JobStatusMessage(store, job, std::move(spec), now_ms));
  AddLive(live, status);
  if (status.device().empty() && !status.tasks().empty() && status.tasks(0).best_record_id() != 0) {
    KILN_ASSIGN_OR_RETURN(const auto record, store.GetRecord(status.tasks(0).best_record_id()));
    status.set_device(record.device);
  }
  return status;
}

void DropDagTexts(v1::JobStatus& status) {
  for (v1::TaskSpec& task : *status.mutable_spec()->mutable_tasks()) task.clear_dag();
  for (v1::TaskStatus& task : *status.mutable_tasks()) task.mutable_spec()->clear_dag();
}

}  // namespace kiln::scheduler
