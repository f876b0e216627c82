#include "scheduler/remeasure/unlike_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Notes the runner as a job does that leases it.
struct Job {
  void Note(const v1::WorkerState& runner) { devices.Note(runners.Of(runner), runner.canary_s()); }

  KnownRunners runners;
  UnlikeDevices devices;
};

v1::WorkerState Gpu(const std::string& id, const std::string& uuid, double canary_s) {
  v1::WorkerState runner;
  runner.set_id(id);
  runner.set_address("box:" + id);
  runner.set_device("NVIDIA H200");
  runner.set_target("cuda -arch=sm_90");
  for (const std::string& key : {std::string("cuda"), std::string("NVIDIA H200"), uuid})
    runner.add_keys(key);
  runner.set_canary_s(canary_s);
  return runner;
}

TEST(UnlikeDevices, ASlowGpuIsSaidOnceAndLeftOut) {
  Job job;
  job.Note(Gpu("1", "GPU-aa", 1.3e-3));
  EXPECT_THAT(job.devices.Runners(), IsEmpty()) << "nothing is known of others";
  job.Note(Gpu("2", "GPU-bb", 1e-3));
  EXPECT_THAT(job.devices.Runners(), ElementsAre("1"));
  job.Note(Gpu("3", "GPU-cc", 1.01e-3));
  job.Note(Gpu("1", "GPU-aa", 1.4e-3));
  EXPECT_THAT(job.devices.notices(),
              ElementsAre("the device at box:1 (GPU-aa) measures unlike the others of its model: "
                          "its canary takes 1.300 ms, and 1.000 ms is usual; final races leave it "
                          "out"));
  // It is well again.
  job.Note(Gpu("1", "GPU-aa", 1.02e-3));
  EXPECT_THAT(job.devices.Runners(), IsEmpty());
}

TEST(UnlikeDevices, ARestartedRunnerHasTheSameDevice) {
  Job job;
  job.Note(Gpu("1", "GPU-aa", 1e-3));
  job.Note(Gpu("2", "GPU-bb", 1.3e-3));
  job.Note(Gpu("4", "GPU-bb", 1.3e-3));
  EXPECT_THAT(job.devices.Runners(), ElementsAre("4"));
  EXPECT_EQ(job.devices.notices().size(), 1u);
}

TEST(UnlikeDevices, CpusMayDifferMore) {
  Job job;
  for (const auto& [id, canary_s] : {std::pair("1", 1e-3), {"2", 1.2e-3}, {"3", 1.4e-3}}) {
    v1::WorkerState runner = Gpu(id, "llvm", canary_s);
    runner.set_device("EPYC");
    runner.set_target("llvm");
    job.Note(runner);
  }
  EXPECT_THAT(job.devices.Runners(), IsEmpty());
  v1::WorkerState slow = Gpu("9", "llvm", 2e-3);
  slow.set_device("EPYC");
  slow.set_target("llvm");
  job.Note(slow);
  EXPECT_THAT(job.devices.Runners(), ElementsAre("9"));
}

}  // namespace
}  // namespace kiln::scheduler
