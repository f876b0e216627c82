#include "runner/time_floor.h"

#include <algorithm>

#include "base/text/units.h"
#include "runner/arguments.h"

namespace kiln::runner {
namespace {

// Factor below what the device can do at best.
constexpr double kGenerous = 4;
// Operations of a multiprocessor in a cycle, for inputs of one byte, without sparsity: an H100 has
// 8192 (1979 TFLOP/s), half as many for each doubling of the bytes down to TF32, and 256 for
// float64.
constexpr double kMatrixOperations = 8192;
constexpr double kDoubleOperations = 256;
// Bytes that a core or a multiprocessor stores in a cycle, at most.
constexpr double kStoredBytes = 128;
// AMX does 16 times the multiply-adds of vectors, and twice as many for one byte as for two.
constexpr double kNarrowCpuFactor = 32;

struct Work {
  double output_bytes = 0;
  // Bytes of an element of the narrowest input.
  int element_bytes = 8;
};

Work WorkOf(const v1::LaunchPlan& plan) {
  Work work;
  const auto arguments = ParseArguments(plan);
  if (!arguments.ok()) return work;
  for (const Argument& argument : *arguments) {
    if (argument.role == v1::ArgSpec::OUTPUT) {
      work.output_bytes += static_cast<double>(argument.bytes);
    } else if (argument.role == v1::ArgSpec::INPUT) {
      work.element_bytes =
          std::min(work.element_bytes, static_cast<int>(DTypeBytes(argument.dtype)));
    }
  }
  return work;
}

// Operations per second.
double PeakOperations(const device::DeviceModel& model, int element_bytes) {
  if (model.is_gpu()) {
    const double cycles = 1e6 * model.clock_mhz * model.multiprocessors;
    return cycles * (element_bytes == 8 ? kDoubleOperations : kMatrixOperations / element_bytes);
  }
  return 1e9 * model.gflops_per_core * model.cores * (element_bytes < 4 ? kNarrowCpuFactor : 1);
}

double PeakStores(const device::DeviceModel& model) {
  const int units = model.is_gpu() ? model.multiprocessors : model.cores;
  return 1e6 * model.clock_mhz * units * kStoredBytes;
}

double SecondsFor(double amount, double per_second) {
  return per_second > 0 ? amount / (kGenerous * per_second) : 0;
}

}  // namespace

double LeastSeconds(const device::DeviceModel& model, const v1::LaunchPlan& plan,
                    double operations) {
  const Work work = WorkOf(plan);
  return std::max(SecondsFor(operations, PeakOperations(model, work.element_bytes)),
                  SecondsFor(work.output_bytes, PeakStores(model)));
}

Status CheckFloor(const device::DeviceModel& model, const v1::LaunchPlan& plan, double operations,
                  const v1::TrialResult& result) {
  if (result.costs_s().empty()) return OkStatus();
  const double cost_s = *std::ranges::min_element(result.costs_s());
  const double least_s = LeastSeconds(model, plan, operations);
  if (cost_s >= least_s) return OkStatus();
  return InvalidArgument(
      "a call took {}, which is below the device's floor: {:.4g} operations and {} of outputs take "
      "it at least {}; a program must do its work while it is timed",
      FormatSeconds(cost_s), operations,
      FormatBytes(static_cast<int64_t>(WorkOf(plan).output_bytes)), FormatSeconds(least_s));
}

}  // namespace kiln::runner
