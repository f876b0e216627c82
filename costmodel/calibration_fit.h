// Fits what the analytic model takes a device for (device/calibration.h) to programs that were
// measured on it.
//
// The loss of a workload is the variance of the logarithm of estimated over measured time, where a
// program weighs as much as the square of its relative throughput, measured or estimated, whichever
// is more (0.03 at least): fast ones count, and those that look it. The loss of all is their mean;
// besides, estimates that are off by another factor for each workload cost a little, and so does
// every constant that moves away from where it began, so that those that make no difference stay.
//
// The search is a random one: one to three constants change by a factor, and what is better stays.
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

// Of the programs of one workload that were measured on one device.
using MeasuredPrograms = std::vector<Sample>;

// What the estimates of one workload are like.
struct FitFigures {
  double loss = 0, bias = 0, spearman = 0;
};

struct FitOptions {
  int steps = 1500;
  uint64_t seed = 1;
  // Of a constant that has become e times as large; more where there are few programs.
  double change_cost = 1e-4;
  // Of the loss on what is left out, so much must go for a row to be better (FitLeavingOneOut).
  double least_gain = 0;
  // Requested: the fit ends with what it has.
  std::stop_token stop = {};
};

struct CalibrationFit {
  // Refuses columns that the model cannot read.
  static StatusOr<std::vector<FitFigures>> Judge(std::span<const std::string_view> columns,
                                                 std::span<const MeasuredPrograms> workloads,
                                                 const device::Calibration& row);
  // The best row found from `start` on. Workloads without programs are left out; InvalidArgument
  // when none has any.
  static StatusOr<device::Calibration> Search(std::span<const std::string_view> columns,
                                              std::span<const MeasuredPrograms> workloads, bool gpu,
                                              const device::Calibration& start,
                                              const FitOptions& options = {});
};

// A row whose worth is judged by workloads that it was not fitted to: each is left out once. How
// dear it is to move a constant is what makes that best. The row is fitted to all workloads then;
// it is `start` where those that are left out are not estimated better, by loss and by order.
struct CrossFit {
  device::Calibration row;
  bool better = false;
  FitFigures before = {}, after = {};  // means over the workloads that were left out
  size_t programs = 0;
};
// Needs two workloads at least. options.change_cost is not looked at.
StatusOr<CrossFit> FitLeavingOneOut(std::span<const std::string_view> columns,
                                    std::span<const MeasuredPrograms> workloads, bool gpu,
                                    const device::Calibration& start,
                                    const FitOptions& options = {});

}  // namespace kiln::costmodel
