#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "proto/device_message.h"
#include "scheduler/dispatch_core.h"
#include "scheduler/messages.h"
#include "store/plausible.h"

namespace kiln::scheduler {
namespace {

// What the readings of leaders say is written so often.
constexpr std::chrono::seconds kWriteLeaders{1};

// A runner that lies, or whose clock is broken, would have the best record for ever. Costs on
// target null are made up.
void RefuseImplausible(store::Record& record) {
  if (record.target.starts_with("null")) return;
  const Status plausible = store::CheckPlausible(record, record.flop_count);
  if (plausible.ok()) return;
  record.error = v1::UNKNOWN_ERROR;
  record.message = Message(plausible);
  record.costs_s.clear();
}

}  // namespace

// ---- results --------------------------------------------------------------------------------

store::Record Dispatcher::Core::RecordOf(const TrialItem& item) const {
  const DispatchTask& task = job_.tasks[item.task];
  store::Record record;
  record.job_id = job_.id;
  record.task_index = static_cast<uint32_t>(item.task);
  record.trial = item.trial.number;
  record.workload_id = task.workload_id;
  record.workload_key = task.workload_key;
  record.dag = task.dag;
  record.target = task.target;
  record.hardware = task.hardware;
  record.steps = item.steps;
  record.flop_count = task.flop_count;
  record.build_s = item.build_s;
  record.builder = item.builder;
  record.timestamp_s = std::time(nullptr);
  record.origin = item.trial.candidate.origin;
  if (std::isfinite(item.trial.candidate.score)) record.score = item.trial.candidate.score;
  return record;
}

// `runner` is null when the trial did not get so far.
void Dispatcher::Core::Finish(TrialItemPtr item, const LeasedWorker* runner,
                              const v1::TrialResult& result, double reference_cost_s) {
  Measured measured;
  measured.record = RecordOf(*item);
  if (runner != nullptr) {
    measured.record.device = runner->worker().device();
    measured.record.runner = runner->worker().id();
    const auto model = DeviceModelOf(runner->worker());
    if (model.ok()) measured.record.device_model = device::PrintDeviceModel(*model);
  }
  SetResult(result, measured.record);
  RefuseImplausible(measured.record);
  v1::TrialTimes times = item->build_times;
  times.MergeFrom(result.times());
  measured.record.times = times.SerializeAsString();
  measured.trial = std::move(item->trial);
  std::lock_guard lock(mutex_);
  if (in_hand_.erase(item->serial) == 0) return;  // it was abandoned
  TaskState& task = tasks_[item->task];
  if (runner != nullptr) {
    task.reference_ran = true;
    busy_.Add(runner->worker().id(), Clock::Real().MonotonicSeconds(), measured.record.run_s);
  }
  if (reference_cost_s > 0 && task.facts.reference_cost_s == 0) {
    task.facts.reference_cost_s = measured.reference_cost_s = reference_cost_s;
  }
  const double cost_s = store::MeanCost(measured.record);
  if (measured.record.error == store::kNoError && !measured.record.stopped_early &&
      (task.facts.best_cost_s == 0 || cost_s < task.facts.best_cost_s)) {
    task.facts.best_cost_s = cost_s;
  }
  const bool whole = measured.record.error == store::kNoError && !measured.record.stopped_early;
  if (whole && idle_readings_ && leaders_.MayLead(item->task, cost_s)) {
    measured.artifact = std::move(item->artifact);
  }
  measured_.push_back(std::move(measured));
  changed_.notify_all();
}

void Dispatcher::Core::CommitLoop() {
  std::unique_lock lock(mutex_);
  auto write_leaders = std::chrono::steady_clock::now() + kWriteLeaders;
  while (true) {
    const auto due = [this] { return closing_ || !measured_.empty() || leaders_.has_failures(); };
    changed_.wait(lock, [&] { return due() || leaders_.has_unwritten(); });
    changed_.wait_until(lock, write_leaders, due);
    const bool ends = closing_ && measured_.empty();
    const auto now = std::chrono::steady_clock::now();
    const bool with_leaders = ends || leaders_.has_failures() || now >= write_leaders;
    std::vector<Measured> batch = std::exchange(measured_, {});
    lock.unlock();
    Status status = batch.empty() ? OkStatus() : Commit(batch);
    if (status.ok() && with_leaders) {
      status = WriteLeaders();
      write_leaders = now + kWriteLeaders;
    }
    if (!status.ok()) {
      Fail(Annotate(status, "results cannot be kept"));
      return;
    }
    if (ends) return;
    committed_();
    lock.lock();
    for (Measured& m : batch) {
      const bool valid = m.record.error == store::kNoError;
      if (idle_readings_) AddLeader(m);
      finished_.push_back({std::move(m.trial), valid, valid ? store::MeanCost(m.record) : 0});
    }
    changed_.notify_all();
    lock.unlock();
    if (!batch.empty()) runners_.Poke();
    lock.lock();
  }
}

Status Dispatcher::Core::Commit(std::vector<Measured>& batch) {
  std::vector<store::Record> records;
  std::vector<store::ReferenceCost> costs;
  for (const Measured& m : batch) {
    records.push_back(m.record);
    if (m.reference_cost_s > 0) costs.push_back({job_.id, m.record.task_index, m.reference_cost_s});
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, store_.AddRecords(records, costs));
  for (size_t i = 0; i < batch.size(); ++i) batch[i].record.id = ids[i];
  return OkStatus();
}

}  // namespace kiln::scheduler
