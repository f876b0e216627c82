// Fits the analytic model's constants of a device (device/calibration.h) to programs that were
// measured on it.
//
// The loss of a workload is the variance of the logarithm of estimated over measured time. The
// weight of a program is the square of its relative throughput, measured or estimated, whichever is
// larger (0.03 at least): programs count that are fast or that look fast. The whole loss is the
// mean over the workloads. Two small costs are added: one for estimates that are off by a different
// factor for each workload, and one for each constant that moves away from its start, so that
// constants without effect stay.
//
// The search is random: one to three constants change by a factor, and an improvement stays.
// Deterministic; a step costs one estimate of each program (about 10 us).
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "device/calibration.h"

namespace kiln::costmodel {

// The programs of one workload that were measured on one device.
using MeasuredPrograms = std::vector<Sample>;

// Figures of the estimates of one workload.
struct FitFigures {
  double loss = 0, bias = 0, spearman = 0;
};

struct FitOptions {
  int steps = 1500;
  uint64_t seed = 1;
  // Cost of a constant that has become e times as large. The cost is higher if there are few
  // programs.
  double change_cost = 1e-4;
  // The loss on workloads left out has to fall by this share for a row to count as better
  // (FitLeavingOneOut).
  double least_gain = 0;
  // When this is requested, the fit ends with the best row so far.
  std::stop_token stop = {};
};

struct CalibrationFit {
  // Judges the estimates by a row. Refuses columns that the model cannot read.
  static StatusOr<std::vector<FitFigures>> Judge(std::span<const std::string_view> columns,
                                                 std::span<const MeasuredPrograms> workloads,
                                                 const device::Calibration& row);
  // Returns the best row that was found from `start` on. Leaves out workloads without programs.
  // InvalidArgument if no workload has any.
  static StatusOr<device::Calibration> Search(std::span<const std::string_view> columns,
                                              std::span<const MeasuredPrograms> workloads, bool gpu,
                                              const device::Calibration& start,
                                              const FitOptions& options = {});
};

// A row, judged by workloads that it was not fitted to: each workload is left out once. The cost of
// moving a constant is chosen so that these estimates are best. The row is then fitted to all
// workloads. The row is `start` if the workloads left out are not estimated better, by loss and by
// order.
struct CrossFit {
  device::Calibration row;
  bool better = false;
  FitFigures before = {}, after = {};  // means over the workloads that were left out
  size_t programs = 0;
};
// Needs at least two workloads. Ignores options.change_cost.
StatusOr<CrossFit> FitLeavingOneOut(std::span<const std::string_view> columns,
                                    std::span<const MeasuredPrograms> workloads, bool gpu,
                                    const device::Calibration& start,
                                    const FitOptions& options = {});

}  // namespace kiln::costmodel
