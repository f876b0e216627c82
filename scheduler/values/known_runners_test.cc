#include "scheduler/values/known_runners.h"

#include <gtest/gtest.h>

#include "device/device_model.h"
#include "rpc/device_message.h"

namespace kiln::scheduler {
namespace {

v1::WorkerState Runner(const std::string& id) {
  v1::WorkerState runner;
  runner.set_id(id);
  runner.set_address("box:" + id);
  runner.set_target("llvm");
  return runner;
}

TEST(KnownRunners, EachHasANumberAndKeepsIt) {
  KnownRunners runners;
  const KnownRunnerPtr first = runners.Of(Runner("a"));
  const KnownRunnerPtr second = runners.Of(Runner("b"));
  EXPECT_EQ(first->number, 0);
  EXPECT_EQ(second->number, 1);
  EXPECT_EQ(runners.Of(Runner("a")), first);
  EXPECT_EQ(first->address, "box:a");
  EXPECT_EQ(first->identity, "a");
  EXPECT_FALSE(first->is_gpu);
  EXPECT_EQ(first->device_model, "") << "it announces no model";
}

TEST(KnownRunners, AGpuIsKnownByItsUuid) {
  v1::WorkerState gpu = Runner("a");
  gpu.set_target("cuda -arch=sm_90");
  gpu.set_device("NVIDIA H200");
  for (const char* key : {"cuda", "NVIDIA H200", "GPU-aa"}) gpu.add_keys(key);
  KnownRunners runners;
  const KnownRunnerPtr known = runners.Of(gpu);
  EXPECT_EQ(known->identity, "GPU-aa");
  EXPECT_TRUE(known->is_gpu);
}

}  // namespace
}  // namespace kiln::scheduler
