// Parses rows of devices: models and calibrations in text form, and keys of workloads. A row that
// parses prints as a text that parses to the same, and answers every question about a device.
#include <cmath>
#include <string>

#include "compiler/dag/workload_key.h"
#include "device/calibration.h"
#include "device/device_model.h"
#include "search/choice/workload_distance.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

// Rows of devices are shorter.
constexpr size_t kMaxBytes = 1024;

void CheckCalibration(const device::Calibration& row) {
  CheckRoundTrip(row, device::PrintCalibration, device::ParseCalibration);
}

void CheckModel(const device::DeviceModel& model) {
  CheckRoundTrip(model, device::PrintDeviceModel, device::ParseDeviceModel);
  const std::string printed = device::PrintDeviceModel(model);
  KILN_CHECK(device::CheckDeviceModel(model).ok(), "{}", printed);
  device::DeviceSummary(model);
  device::MatrixUnits(model);
  CheckCalibration(device::CalibrationOf(model).row);
  if (!model.is_gpu()) return;
  const device::DeviceModel filled = device::FilledGpu(model, 0);
  const Status full = device::CheckDeviceModel(filled);
  KILN_CHECK(full.ok(), "{} filled: {}", printed, Message(full));
  CheckCalibration(device::CalibrationOf(filled).row);
  KILN_CHECK(std::isfinite(device::MemoryBandwidth(filled)), "{}", printed);
  for (const int64_t cluster : {1, 2, 3, 8, 64}) {
    KILN_CHECK(device::MultiprocessorsForClusters(filled, cluster) >= 1, "{}", printed);
  }
}

void CheckKey(std::string_view text) {
  const std::string key = dag::NormalizedKey(text);
  KILN_CHECK(dag::NormalizedKey(key) == key, "{} as {}", key, dag::NormalizedKey(key));
  const auto distance = search::WorkloadDistance(text, key);
  if (distance.has_value()) KILN_CHECK(*distance == 1, "{}", key);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMaxBytes) return -1;
  const std::string_view text = fuzz::InputText(data, size);
  const auto model = device::ParseDeviceModel(text);
  if (model.ok()) {
    fuzz::CheckModel(*model);
  } else {
    fuzz::CheckRefusal(model.status());
  }
  const auto calibration = device::ParseCalibration(text);
  if (calibration.ok()) {
    fuzz::CheckCalibration(*calibration);
  } else {
    fuzz::CheckRefusal(calibration.status());
  }
  fuzz::CheckKey(text);
  return 0;
}
