#include "scheduler/jobs/calibrations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "compiler/features/features.h"
#include "compiler/schedule/step.h"
#include "costmodel/calibration_fit.h"
#include "search/policies/samples.h"
#include "training/device_constants.h"

namespace kiln::scheduler {
namespace {

constexpr size_t kMinPrograms = 60;
// A built-in row was fitted to far more programs than a job has, so only a large gain replaces it.
double MinGain(device::CalibrationSource source) {
  return source == device::CalibrationSource::kBuiltIn ? 0.2 : 0;
}

// Returns the measured programs of each task.
StatusOr<std::vector<costmodel::MeasuredPrograms>> ProgramsOf(store::Store& store,
                                                              const std::string& job_id,
                                                              std::span<const search::Task> tasks) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records, store.RecordsOfJob(job_id, 0));
  std::vector<search::Measured> measured;
  std::vector<size_t> task_of;
  for (const store::Record& record : records) {
    if (record.error != store::kNoError || record.costs_s.empty()) continue;
    if (record.task_index >= tasks.size()) continue;
    auto steps = schedule::ParseSteps(record.steps);
    if (!steps.ok()) continue;
    measured.push_back({.task = &tasks[record.task_index],
                        .steps = *std::move(steps),
                        // Other processes can only make a reading longer, so the shortest reading
                        // is the best.
                        .cost_s = std::ranges::min(record.costs_s),
                        .sample_task = record.task_index});
  }
  ThreadPool pool(0);
  std::vector<costmodel::MeasuredPrograms> programs(tasks.size());
  for (costmodel::Sample& sample : search::MakeSamples(measured, pool))
    programs[sample.task].push_back(std::move(sample));
  return programs;
}

}  // namespace

std::string DescribeCalibration(const device::DeviceModel& model,
                                const device::KnownCalibration& known) {
  return fmt::format("{} ({}): {}", model.name, device::DeviceSummary(model),
                     device::CalibrationNote(known.source));
}

StatusOr<std::string> Calibrate(store::Store& store, const std::string& job_id,
                                std::span<const search::Task> tasks, int64_t now_s,
                                const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(const auto programs, ProgramsOf(store, job_id, tasks));
  size_t count = 0;
  for (const costmodel::MeasuredPrograms& of_task : programs) count += of_task.size();
  if (count < kMinPrograms) {
    return FailedPrecondition(
        "job {} has {} correct programs, expected at least {} to fit the device's constants: "
        "measure "
        "more",
        job_id, count, kMinPrograms);
  }
  const device::DeviceModel& model = tasks[0].device;
  KILN_ASSIGN_OR_RETURN(const device::KnownCalibration known,
                        training::FindCalibration(store, model));
  KILN_ASSIGN_OR_RETURN(
      const costmodel::CrossFit fit,
      costmodel::FitLeavingOneOut(features::FeatureNames(), programs, model.is_gpu(), known.row,
                                  {.least_gain = MinGain(known.source), .stop = stop}));
  if (stop.stop_requested()) return Cancelled("stopped");
  const std::string figures = fmt::format(
      "{} programs; of workloads left out of the fit: rank correlation {:.3f} before, {:.3f} "
      "after, variance of log(estimate / time) {:.3f} before, {:.3f} after",
      fit.programs, fit.before.spearman, fit.after.spearman, fit.before.loss, fit.after.loss);
  if (!fit.better)
    return fmt::format("{}: its constants stay as they are, fitted ones are no better ({})",
                       model.name, figures);
  KILN_RETURN_IF_ERROR(store.SetCalibration({.device = model.name,
                                             .compute_capability = model.compute_capability,
                                             .constants = device::PrintCalibration(fit.row),
                                             .fitted_s = now_s,
                                             .report = figures}));
  return fmt::format("{}: later jobs use the constants fitted to it ({})", model.name, figures);
}

}  // namespace kiln::scheduler
