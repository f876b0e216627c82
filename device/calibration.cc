#include "device/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

namespace kiln::device {
namespace {

constexpr CalibrationField kFields[] = {
#define KILN_FIELD(number, value) {#number, &Calibration::number},
    KILN_CALIBRATION(KILN_FIELD)
#undef KILN_FIELD
};

// Names of the fitted constants. The clock is left out because it only scales all others, and the
// rate at which a GPU's schedulers issue is known.
constexpr std::string_view kGpuFitted[] = {"launch_s",
                                           "stage_latency",
                                           "barrier_latency",
                                           "fma_latency",
                                           "l2_bytes_per_cycle",
                                           "l1_bytes_per_cycle",
                                           "wavefront_cycles",
                                           "instruction_latency",
                                           "shared_latency",
                                           "request_latency",
                                           "spilled_doubling",
                                           "spilled_most",
                                           "cluster_barrier_latency",
                                           "remote_bytes_per_cycle"};
constexpr std::string_view kCpuFitted[] = {
    "fork_s",          "line_cycles_l2",     "line_cycles_l3",        "line_cycles_memory",
    "cpu_fma_latency", "cpu_special_cycles", "cpu_accesses_per_cycle"};

const CalibrationField* Find(std::string_view name) {
  for (const CalibrationField& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::vector<CalibrationField> FieldsOf(std::span<const std::string_view> names) {
  std::vector<CalibrationField> fields;
  for (const std::string_view name : names) fields.push_back(*Find(name));
  return fields;
}

Status TakeWord(std::string_view word, Calibration& calibration) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  const std::string_view text = equals < word.size() ? word.substr(equals + 1) : "";
  const CalibrationField* field = Find(name);
  if (field == nullptr) return InvalidArgument("calibration: there is no constant '{}'", name);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !std::isfinite(value) || value <= 0) {
    return InvalidArgument("calibration: {} is '{}', expected a positive number", name, text);
  }
  calibration.*field->field = value;
  return OkStatus();
}

// The device that the table's values were fitted on: its model's numbers.
constexpr std::string_view kFittedName = "NVIDIA H200";
constexpr int kFittedCapability = 90;
constexpr double kFittedMultiprocessors = 132, kFittedClockMhz = 1980, kFittedLanes = 128;

Calibration DeriveGpu(const DeviceModel& model) {
  Calibration row;
  if (model.clock_mhz > 0) row.clock_hz *= model.clock_mhz / kFittedClockMhz;
  if (model.multiprocessors > 0)
    row.l2_bytes_per_cycle *= model.multiprocessors / kFittedMultiprocessors;
  row.issue_cycles *= kFittedLanes / Fp32Lanes(model.compute_capability);
  return row;
}

Calibration DeriveCpu(const DeviceModel& model) {
  Calibration row;
  if (model.clock_mhz > 0) row.cpu_clock_hz = 1e6 * model.clock_mhz;
  return row;
}

}  // namespace

std::string PrintCalibration(const Calibration& calibration) {
  std::string text;
  for (const CalibrationField& field : kFields)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name, calibration.*field.field);
  return text;
}

StatusOr<Calibration> ParseCalibration(std::string_view text) {
  Calibration calibration;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    KILN_RETURN_IF_ERROR(TakeWord(text.substr(0, space), calibration));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return calibration;
}

std::span<const CalibrationField> FittedFields(bool gpu) {
  static const auto& of_gpu = *new std::vector<CalibrationField>(FieldsOf(kGpuFitted));
  static const auto& of_cpu = *new std::vector<CalibrationField>(FieldsOf(kCpuFitted));
  return gpu ? of_gpu : of_cpu;
}

KnownCalibration CalibrationOf(const DeviceModel& model) {
  if (!model.is_gpu()) return {DeriveCpu(model), CalibrationSource::kDerived};
  if (model.name == kFittedName && model.compute_capability == kFittedCapability)
    return {Calibration(), CalibrationSource::kBuiltIn};
  return {DeriveGpu(model), CalibrationSource::kDerived};
}

std::string CalibrationNote(CalibrationSource source) {
  switch (source) {
    case CalibrationSource::kBuiltIn:
      return "the analytic model has constants fitted on this device";
    case CalibrationSource::kDerived:
      return "the analytic model's constants are derived from the device's own numbers; "
             "kiln calibrate fits them to it";
    case CalibrationSource::kMeasured:
      return "the analytic model's constants are those that kiln calibrate has fitted";
  }
  return {};
}

}  // namespace kiln::device
