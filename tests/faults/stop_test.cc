// Tests processes of a farm that stand still (SIGSTOP) for longer than every deadline of the
// processes that wait for them: the job ends with its full number of trials.
#include <signal.h>

#include <functional>

#include "base/process/process_tree.h"
#include "tests/faults/farm_testing.h"

namespace kiln {
namespace {

// The tracker's deadline for workers is 3 s here, and leases last 10 s.
constexpr std::chrono::seconds kStandstill{12};
constexpr uint32_t kTrials = 24;

class StopTest : public FarmTest {
 protected:
  void SetUp() override { StartFarm("cpu"); }

  // Stops processes in the middle of a job.
  void StandStill(const std::function<std::vector<int>()>& processes) {
    v1::JobSpec spec = MatmulJob(kTrials);
    spec.mutable_options()->set_build_timeout_ms(4000);
    const std::string job = Submit(spec);
    WaitFor(job, kTrials / 3);
    const std::map<uint32_t, v1::Record> seen = Records(job);
    const std::vector<int> stopped = processes();
    ASSERT_FALSE(stopped.empty());
    for (const int pid : stopped) kill(pid, SIGSTOP);
    std::this_thread::sleep_for(kStandstill);
    for (const int pid : stopped) kill(pid, SIGCONT);
    ExpectWholeAtEnd(job, kTrials, seen);
  }
};

TEST_F(StopTest, Tracker) {
  StandStill([&] { return std::vector<int>{farm_->tracker().pid()}; });
}

TEST_F(StopTest, Scheduler) {
  StandStill([&] { return std::vector<int>{farm_->scheduler().pid()}; });
}

TEST_F(StopTest, Builder) {
  StandStill([&] { return std::vector<int>{farm_->builder().pid()}; });
}

TEST_F(StopTest, BuilderChildren) {
  StandStill([&] { return ChildrenOf(farm_->builder().pid()); });
}

TEST_F(StopTest, Runner) {
  StandStill([&] { return std::vector<int>{farm_->runner().pid()}; });
}

TEST_F(StopTest, RunnerChildren) {
  StandStill([&] { return ChildrenOf(farm_->runner().pid()); });
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  kiln::InitGrpc();
  return RUN_ALL_TESTS();
}
