#include "runner/time_floor.h"

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

v1::LaunchPlan PlanOf(const std::string& input, int64_t outputs) {
  v1::LaunchPlan plan;
  v1::ArgSpec& a = *plan.add_args();
  a.set_name("a");
  a.set_dtype(input);
  a.add_shape(8);
  a.set_role(v1::ArgSpec::INPUT);
  v1::ArgSpec& out = *plan.add_args();
  out.set_name("out");
  out.set_dtype("float32");
  out.add_shape(outputs);
  out.set_role(v1::ArgSpec::OUTPUT);
  plan.add_launches()->set_symbol("kiln_entry");
  return plan;
}

device::DeviceModel Cpu() {
  device::DeviceModel model;
  model.name = "cpu";
  model.cores = 2;
  model.clock_mhz = 3000;
  model.gflops_per_core = 100;
  return model;
}
device::DeviceModel H200() {
  device::DeviceModel model = device::UsualGpu(90);
  model.multiprocessors = 132;
  model.clock_mhz = 1980;
  return model;
}

TEST(TimeFloorTest, FollowsOperationsAndBytes) {
  EXPECT_DOUBLE_EQ(LeastSeconds(Cpu(), PlanOf("float32", 1), 8e9), 8e9 / (4 * 2e11));
  EXPECT_DOUBLE_EQ(LeastSeconds(Cpu(), PlanOf("int8", 1), 8e9), 8e9 / (4 * 32 * 2e11));
  EXPECT_DOUBLE_EQ(LeastSeconds(Cpu(), PlanOf("float32", 1 << 20), 0),
                   4.0 * (1 << 20) / (4 * 2 * 3e9 * 128));
  EXPECT_EQ(LeastSeconds(device::DeviceModel(), PlanOf("float32", 1 << 20), 8e9), 0);
}

// Times that were measured on H200s must pass: products of 4096, in TFLOP/s.
TEST(TimeFloorTest, IsBelowWhatDevicesDo) {
  const double operations = 2.0 * 4096 * 4096 * 4096;
  for (const auto& [dtype, tflops] : {std::pair("float8_e4m3fn", 1400.0),
                                      {"float16", 800.0},
                                      {"float32", 420.0},
                                      {"float64", 62.0}}) {
    const double measured_s = operations / (1e12 * tflops);
    const double least_s = LeastSeconds(H200(), PlanOf(dtype, 1 << 24), operations);
    EXPECT_LT(least_s, 0.5 * measured_s) << dtype;
    EXPECT_GT(least_s, 0.05 * measured_s) << dtype;
  }
}

TEST(TimeFloorTest, NamesTheWork) {
  v1::TrialResult result;
  EXPECT_OK(CheckFloor(Cpu(), PlanOf("float32", 1), 8e9, result));
  result.add_costs_s(1);
  EXPECT_OK(CheckFloor(Cpu(), PlanOf("float32", 1), 8e9, result));
  result.add_costs_s(1e-6);
  EXPECT_THAT(CheckFloor(Cpu(), PlanOf("float32", 1), 8e9, result),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("below the device's floor: 8e+09 operations"),
                             HasSubstr("take it at least 10"))));
}

}  // namespace
}  // namespace kiln::runner
