#include "scheduler/dispatch/idle_readings.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "scheduler/values/messages.h"

namespace kiln::scheduler {
namespace {

// One reading of an elite may take at most this part of the idle time. Slower programs are not
// elites.
constexpr double kPartOfIdleTime = 0.2;

EliteSet::Options OptionsOf(const v1::TuneOptions& options) {
  EliteSet::Options elites;
  elites.finalists = std::max(0, options.finalists());
  elites.slowest_s = kPartOfIdleTime * 1e-3 * options.measure().idle_ms();
  return elites;
}

std::vector<int> VariantGroupsOf(const std::vector<DispatchTask>& tasks) {
  std::vector<int> groups;
  for (const DispatchTask& task : tasks) groups.push_back(task.group);
  return groups;
}

bool IsFullyMeasured(const store::Record& record) {
  return record.error == store::kNoError && !record.stopped_early;
}

}  // namespace

IdleReadings::IdleReadings(const Dispatcher::Job& job, store::Store& store)
    : job_id_(job.id),
      store_(store),
      elites_(OptionsOf(job.options), VariantGroupsOf(job.tasks)),
      taken_(job.options.measure().idle_ms() > 0 && !job.options.lock_step()) {
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    elites_.CountTrials(static_cast<int>(i), job.tasks[i].trials);
    for (const Elite& elite : job.tasks[i].elites) elites_.Add(elite);
  }
}

bool IdleReadings::taken() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

bool IdleReadings::MayBeElite(int task, const store::Record& record) const {
  return taken() && IsFullyMeasured(record) && elites_.MayBeElite(task, store::MeanCost(record));
}

void IdleReadings::Add(MeasuredTrial& measured) {
  if (!taken()) return;
  elites_.CountTrials(measured.trial.task, 1);
  if (measured.artifact == nullptr) return;
  elites_.Add({.task = measured.trial.task,
               .trial = measured.trial.number,
               .record_id = measured.record.id,
               .hash = measured.trial.candidate.hash,
               .cost_s = store::MeanCost(measured.record),
               .artifact = std::move(measured.artifact)});
}

std::optional<EliteSet::Turn> IdleReadings::Next(const std::string& device) {
  if (!taken()) return std::nullopt;
  return elites_.Next(device);
}

void IdleReadings::Note(const EliteSet::Turn& turn, const std::string& device,
                        const v1::TrialResult& result) {
  store::Record reading;
  SetResult(result, reading);
  std::lock_guard lock(mutex_);
  if (!taken_) return;
  if (reading.error == store::kNoError) {
    elites_.Read(turn, device, reading.costs_s, reading.run_s);
  } else if (elites_.Fail(turn, reading.error, reading.message, reading.run_s)) {
    LogInfo("job {}: record {} fails when it is measured again: {}", job_id_, turn.record_id,
            reading.message);
  }
}

std::vector<search::Correction> IdleReadings::TakeCorrections() {
  std::vector<search::Correction> corrections;
  for (const EliteSet::Correction& c : elites_.TakeCorrections()) {
    corrections.push_back({c.task, c.trial, c.hash, c.cost_s.has_value(), c.cost_s.value_or(0)});
  }
  return corrections;
}

Status IdleReadings::Write() {
  std::lock_guard writing(writing_);
  const std::vector<store::Remeasurement> remeasured = elites_.TakeUnwritten();
  if (remeasured.empty()) return OkStatus();
  return store_.SetRemeasurements(remeasured);
}

Status IdleReadings::End() {
  {
    std::lock_guard lock(mutex_);
    taken_ = false;
  }
  return Write();
}

}  // namespace kiln::scheduler
