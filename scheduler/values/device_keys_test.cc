#include "scheduler/values/device_keys.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace kiln::scheduler {
namespace {

v1::WorkerState Runner(const std::string& device, std::initializer_list<const char*> keys) {
  v1::WorkerState state;
  state.set_device(device);
  for (const char* key : keys) state.add_keys(key);
  return state;
}

TEST(ModelKey, IsThatOfAllGpusOfOneModel) {
  const auto first = Runner("NVIDIA H200", {"cuda", "cuda/sm_90", "NVIDIA H200", "GPU-11"});
  const auto second = Runner("NVIDIA H200", {"cuda", "cuda/sm_90", "NVIDIA H200", "GPU-22"});
  EXPECT_EQ(ModelKey(first), "NVIDIA H200");
  EXPECT_EQ(ModelKey(first), ModelKey(second));
}

TEST(ModelKey, IsTheMostExactOneWhereTheDeviceIsNoKey) {
  EXPECT_EQ(ModelKey(Runner("AMD EPYC", {"llvm", "cpu", "llvm/x86-64-v4"})), "llvm/x86-64-v4");
  EXPECT_EQ(ModelKey(Runner("null", {"null"})), "null");
  EXPECT_EQ(ModelKey(Runner("AMD EPYC", {})), "");
}

TEST(DeviceIdentity, IsTheOwnKeyOrTheRunner) {
  auto gpu = Runner("NVIDIA H200", {"cuda", "cuda/sm_90", "NVIDIA H200", "GPU-11"});
  gpu.set_id("r1");
  EXPECT_EQ(DeviceIdentity(gpu), "GPU-11");
  auto cpu = Runner("AMD EPYC", {"llvm", "cpu", "llvm/x86-64-v4"});
  cpu.set_id("r2");
  EXPECT_EQ(DeviceIdentity(cpu), "r2");
}

}  // namespace
}  // namespace kiln::scheduler
