#include "scheduler/pages/roofline.h"

#include <algorithm>

#include "compiler/dag/argument_bytes.h"
#include "compiler/dag/text.h"
#include "device/calibration.h"

namespace kiln::scheduler {
namespace {

// Operations of a multiply-add.
constexpr double kFmaOperations = 2;
// Bytes of a line of a CPU's cache.
constexpr double kLineBytes = 64;

DevicePeaks PeaksOfGpu(const device::DeviceModel& reported) {
  const device::DeviceModel model = device::FilledGpu(reported, 0);
  const double lanes = device::Fp32Lanes(model.compute_capability);
  return {.peak_flops = kFmaOperations * lanes * model.multiprocessors * 1e6 * model.clock_mhz,
          .peak_of = "float32 multiply-adds; matrix units go beyond",
          .bytes_per_s = device::MemoryBandwidth(model),
          .bytes_of = "the memory's clock and bus"};
}

DevicePeaks PeaksOfCpu(const device::DeviceModel& model) {
  const device::Calibration row = device::CalibrationOf(model).row;
  return {.peak_flops = 1e9 * model.gflops_per_core * model.cores,
          .peak_of = "float32 multiply-adds",
          .bytes_per_s = model.cores * kLineBytes * row.cpu_clock_hz / row.line_cycles_memory,
          .bytes_of = "the analytic model's cycles for a line of memory"};
}

}  // namespace

StatusOr<DevicePeaks> PeaksOf(const device::DeviceModel& model) {
  DevicePeaks peaks = model.is_gpu() ? PeaksOfGpu(model) : PeaksOfCpu(model);
  if (peaks.peak_flops <= 0 || peaks.bytes_per_s <= 0) {
    return NotFound("The model of the device '{}' does not tell how fast it is.", model.name);
  }
  return peaks;
}

StatusOr<Roofline> RooflineOf(const store::Record& record) {
  if (record.error != store::kNoError) return NotFound("The trial has failed.");
  if (record.dag.empty() || record.device_model.empty()) {
    return NotFound("The record was imported, and does not tell its computation or its device.");
  }
  const auto model = device::ParseDeviceModel(record.device_model);
  if (!model.ok()) return NotFound("The record's device model cannot be read.");
  Roofline roof;
  KILN_ASSIGN_OR_RETURN(roof.peaks, PeaksOf(*model));
  const auto dag = dag::ParseDag(record.dag);
  if (!dag.ok()) return NotFound("The record's computation cannot be read.");
  roof.operations = record.flop_count > 0 ? record.flop_count : (*dag)->flop_count();
  roof.bytes = dag::ArgumentBytes(**dag);
  if (roof.operations <= 0 || roof.bytes <= 0) {
    return NotFound("The number of the computation's arithmetic operations is not known.");
  }
  roof.intensity = roof.operations / roof.bytes;
  roof.flops = roof.operations / store::Cost(record);
  const double fed = roof.intensity * roof.peaks.bytes_per_s;
  roof.is_memory_bound = fed < roof.peaks.peak_flops;
  roof.limit = std::min(fed, roof.peaks.peak_flops);
  return roof;
}

}  // namespace kiln::scheduler
