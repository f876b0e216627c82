#include "scheduler/jobs/device_tasks.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "rpc/hardware_message.h"

namespace kiln::scheduler {
namespace {

v1::WorkerState Runner(const char* target, const target::HardwareParams& hardware) {
  v1::WorkerState runner;
  runner.set_target(target);
  *runner.mutable_hardware() = HardwareMessage(hardware);
  return runner;
}

target::HardwareParams HardwareFor(const char* asked, const v1::WorkerState& runner) {
  const auto target = target::ParseTarget(asked);
  EXPECT_OK(target.status());
  const auto completed = CompleteTarget(*target, runner);
  EXPECT_OK(completed.status());
  return HardwareOf(*completed, runner);
}

TEST(DeviceTasks, OptionsOfTheTargetMakeACpuSmaller) {
  const v1::WorkerState runner =
      Runner("llvm -mcpu=znver4 -num-cores=8", {.num_cores = 8, .vector_unit_bytes = 64});
  EXPECT_EQ(HardwareFor("llvm", runner).vector_unit_bytes, 64);
  EXPECT_EQ(HardwareFor("llvm -vector-width=256", runner).vector_unit_bytes, 32);
  EXPECT_EQ(HardwareFor("llvm -num-cores=2", runner).num_cores, 2);
  const v1::WorkerState narrow =
      Runner("llvm -mcpu=nehalem -num-cores=8", {.num_cores = 8, .vector_unit_bytes = 16});
  EXPECT_EQ(HardwareFor("llvm -vector-width=256", narrow).vector_unit_bytes, 16);
}

TEST(DeviceTasks, OptionsOfTheTargetMakeAGpuSmaller) {
  target::HardwareParams hardware = target::DefaultHardware({.kind = &target::kCuda}, 0);
  hardware.max_shared_memory_per_block_bytes = 232448;
  const v1::WorkerState runner =
      Runner("cuda -arch=sm_90 -max_shared_memory_per_block=232448", hardware);
  EXPECT_EQ(HardwareFor("cuda", runner), hardware);
  EXPECT_EQ(HardwareFor("cuda -max_threads_per_block=256", runner).max_threads_per_block, 256);
  EXPECT_EQ(HardwareFor("cuda -registers_per_block=6144", runner).max_threads_per_block, 256)
      << "24 for each thread";
  EXPECT_EQ(HardwareFor("cuda -max_shared_memory_per_block=1024", runner)
                .max_shared_memory_per_block_bytes,
            1024);
  EXPECT_EQ(HardwareFor("cuda -vector_unit_bytes=8", runner).vector_unit_bytes, 8);
  EXPECT_EQ(
      HardwareFor("cuda -max_local_memory_per_block=4096", runner).max_local_memory_per_block_bytes,
      4096);
}

TEST(DeviceTasks, BoundsOfTheSearchMayBeLarger) {
  const v1::WorkerState runner =
      Runner("cuda -arch=sm_90", target::DefaultHardware({.kind = &target::kCuda}, 0));
  EXPECT_EQ(HardwareFor("cuda -max_vthread_extent=16", runner).max_vthread_extent, 16);
  EXPECT_EQ(HardwareFor("cuda -cache_line_bytes=128", runner).cache_line_bytes, 128);
}

}  // namespace
}  // namespace kiln::scheduler
