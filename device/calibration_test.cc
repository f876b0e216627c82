#include "device/calibration.h"

#include "base/status_testing.h"

namespace kiln::device {
namespace {

using ::testing::HasSubstr;

TEST(Calibration, PrintsAndParsesBack) {
  Calibration row;
  row.clock_hz = 1.234567890123e9;
  row.fork_s = 1e-7 / 3;
  ASSERT_OK_AND_ASSIGN(const Calibration again, ParseCalibration(PrintCalibration(row)));
  EXPECT_EQ(again, row);
  ASSERT_OK_AND_ASSIGN(const Calibration partly, ParseCalibration("launch_s=1e-6"));
  EXPECT_EQ(partly.launch_s, 1e-6);
  EXPECT_EQ(partly.clock_hz, Calibration().clock_hz);
}

TEST(Calibration, RefusesWhatIsNoNumberOfADevice) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"speed=1", "no constant 'speed'"},
           {"clock_hz=0", "'0', expected a positive number"},
           {"clock_hz=-1", "expected a positive number"},
           {"clock_hz=nan", "expected a positive number"},
           {"clock_hz=inf", "expected a positive number"},
           {"clock_hz=1x", "expected a positive number"},
           {"clock_hz", "expected a positive number"},
           {"clock_hz=1  fork_s=1", "no constant ''"}}) {
    EXPECT_THAT(ParseCalibration(text).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

TEST(Calibration, OnlyTheDeviceItWasFittedOnHasTheBuiltInRow) {
  DeviceModel model = UsualGpu(90);
  model.name = "NVIDIA H200";
  EXPECT_EQ(CalibrationOf(model).source, CalibrationSource::kBuiltIn);
  EXPECT_EQ(CalibrationOf(model).row, Calibration());
  model.name = "NVIDIA H100 80GB HBM3";
  EXPECT_EQ(CalibrationOf(model).source, CalibrationSource::kDerived);
  model.name = "NVIDIA H200";
  model.compute_capability = 89;
  EXPECT_EQ(CalibrationOf(model).source, CalibrationSource::kDerived);
}

TEST(Calibration, DerivesFromTheDevicesNumbers) {
  DeviceModel model = UsualGpu(80);
  const Calibration row = CalibrationOf(model).row;
  EXPECT_NEAR(row.clock_hz, 1.7e9 * 1410 / 1980, 1);
  EXPECT_NEAR(row.l2_bytes_per_cycle, 1250.0 * 108 / 132, 1e-9);
  // The device has half the float32 lanes.
  EXPECT_EQ(row.issue_cycles, 2);
  EXPECT_EQ(row.fma_latency, Calibration().fma_latency);
  // Numbers that a device does not report must not divide.
  model = DeviceModel();
  model.compute_capability = 90;
  EXPECT_EQ(CalibrationOf(model).row, Calibration());
  model = DeviceModel();
  model.cores = 4;
  model.clock_mhz = 2500;
  EXPECT_EQ(CalibrationOf(model).row.cpu_clock_hz, 2.5e9);
}

TEST(Calibration, FitsMayChangeTheKindsOwnConstants) {
  EXPECT_EQ(FittedFields(true).size(), 14u);
  EXPECT_EQ(FittedFields(false).size(), 7u);
}

}  // namespace
}  // namespace kiln::device
