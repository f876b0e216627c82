// Tests that a job survives kill -9 of any process of the farm: it ends with its full number of
// trials, and loses no record that a client has seen.
#include <signal.h>

#include <algorithm>
#include <thread>

#include "base/numbers/rng.h"
#include "base/process/process_tree.h"
#include "tests/faults/farm_testing.h"

namespace kiln {
namespace {

class KillTest : public FarmTest {
 protected:
  void SetUp() override { StartFarm("cpu"); }
};

class NullKillTest : public FarmTest {
 protected:
  void SetUp() override { StartFarm("null"); }
};

// Leases last longer than any wait of a test.
class LongLeaseTest : public FarmTest {
 protected:
  void SetUp() override { StartFarm(Farm::Options{.lease_ms = 600'000}); }
};

// Makes a job whose rounds are quick.
v1::JobSpec LearnedJob(const std::string& target, uint32_t trials) {
  v1::JobSpec spec = MatmulJob(trials);
  spec.mutable_tasks(0)->set_target(target);
  spec.mutable_options()->set_policy("sketch.xgb");
  spec.mutable_options()->set_trials_per_round(16);
  auto& parameters = *spec.mutable_options()->mutable_policy_parameters();
  parameters["evolutionary_search_population"] = 128;
  parameters["sample_init_population"] = 48;
  return spec;
}

TEST_F(KillTest, Builder) {
  RunWithFaults(40, 10, [&] {
    farm_->builder().Kill();
    ASSERT_OK(farm_->builder().Start());
  });
}

TEST_F(KillTest, BuilderChildren) {
  RunWithFaults(40, 10, [&] {
    for (int child : ChildrenOf(farm_->builder().pid())) kill(child, SIGKILL);
  });
}

TEST_F(KillTest, RunnerChild) {
  RunWithFaults(40, 10, [&] {
    for (int child : ChildrenOf(farm_->runner().pid())) kill(child, SIGKILL);
  });
}

TEST_F(KillTest, Runner) {
  RunWithFaults(40, 10, [&] {
    farm_->runner().Kill();
    ASSERT_OK(farm_->runner().Start());
  });
}

TEST_F(KillTest, Scheduler) {
  RunWithFaults(40, 8, [&] {
    farm_->scheduler().Kill();
    ASSERT_OK(farm_->scheduler().Start());
  });
}

// The best candidates are read again while builders work, also after a kill. Their readings reach
// the disk some time after they were taken, so each kill waits for new ones.
TEST_F(KillTest, SchedulerThatReadsElitesMeanwhile) {
  constexpr uint32_t kTrials = 240, kKills = 3;
  v1::JobSpec spec = MatmulJob(kTrials);
  spec.mutable_options()->mutable_measure()->set_idle_ms(20);
  const std::string job = Submit(spec);
  std::map<uint32_t, v1::Record> seen;
  uint32_t readings = 0;
  for (uint32_t kills = 0; kills < kKills; ++kills) {
    const uint32_t before = readings;
    while (readings <= before) {
      v1::JobStatus status;
      ASSERT_FALSE(Get(job, &status) && Final(status))
          << readings << " readings of elites after " << kills << " kills\n"
          << farm_->Logs();
      readings = 0;
      for (const auto& [trial, record] : Records(job)) {
        readings += record.result().remeasurements();
        seen.emplace(trial, record);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    farm_->scheduler().Kill();
    ASSERT_OK(farm_->scheduler().Start());
  }
  ExpectWholeAtEnd(job, kTrials, seen);
  v1::JobStatus status;
  ASSERT_TRUE(Get(job, &status));
  EXPECT_GT(status.elites_share(), 0);
}

TEST_F(KillTest, TheLearnedSearchGoesOnWithAllItHasMeasured) {
  const std::string job = Submit(LearnedJob("llvm", 80));
  ASSERT_FALSE(Final(WaitFor(job, 44))) << farm_->Logs();
  const std::map<uint32_t, v1::Record> seen = Records(job);
  farm_->scheduler().Kill();
  ASSERT_OK(farm_->scheduler().Start());
  ExpectWholeAtEnd(job, 80, seen);
  // The model that ranks the first round after the kill has learned from the earlier measurements.
  std::vector<std::string> first_rounds;
  for (const v1::Round& round : Rounds(job)) {
    if (round.report().starts_with("round 1:")) first_rounds.push_back(round.report());
  }
  ASSERT_EQ(first_rounds.size(), 2u);
  EXPECT_NE(first_rounds[0].find("ranked by analytic"), std::string::npos) << first_rounds[0];
  EXPECT_NE(first_rounds[1].find("ranked by xgb"), std::string::npos) << first_rounds[1];
}

TEST_F(NullKillTest, TheLearnedSearchSurvivesTenKillsAtAnyMoment) {
  constexpr uint32_t kTrials = 400, kStep = 20;
  constexpr uint64_t kSeed = 20261121;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Rng rng(kSeed);
  const std::string job = Submit(LearnedJob("null", kTrials));
  std::map<uint32_t, v1::Record> seen;
  for (uint32_t kills = 0; kills < 10; ++kills) {
    // Kills are counted in results, because the pace is the machine's, and the last kill comes
    // before the middle of the job. A little later the scheduler may be doing anything: a start, a
    // search, a commit. But some result is always new, because a job without a new result is set
    // aside at the second kill.
    v1::JobStatus status;
    ASSERT_TRUE(Get(job, &status));
    const auto at = static_cast<uint32_t>(kStep * kills + UniformInt(rng, kStep));
    ASSERT_FALSE(Final(WaitFor(job, std::max(at, status.trials_done() + 1))))
        << "after " << kills << " kills";
    std::this_thread::sleep_for(std::chrono::milliseconds(UniformInt(rng, 50)));
    for (const auto& [trial, record] : Records(job)) seen.emplace(trial, record);
    farm_->scheduler().Kill();
    ASSERT_OK(farm_->scheduler().Start());
  }
  ExpectWholeAtEnd(job, kTrials, seen);
}

// The new scheduler does not wait for the leases of the dead one.
TEST_F(LongLeaseTest, ARestartedSchedulerGoesOnAtOnce) {
  const std::string job = Submit(MatmulJob(5'000));
  const v1::JobStatus before = WaitFor(job, 10);
  ASSERT_FALSE(Final(before)) << before.ShortDebugString();
  farm_->scheduler().Kill();
  ASSERT_OK(farm_->scheduler().Start());
  EXPECT_GT(WaitFor(job, before.trials_done() + 21).trials_done(), before.trials_done() + 20);
}

TEST_F(KillTest, Tracker) {
  RunWithFaults(40, 10, [&] {
    farm_->tracker().Kill();
    ASSERT_OK(farm_->tracker().Start());
  });
}

TEST_F(KillTest, EverythingAtOnce) {
  RunWithFaults(30, 10, [&] {
    farm_->scheduler().Kill();
    farm_->runner().Kill();
    farm_->builder().Kill();
    farm_->tracker().Kill();
    ASSERT_OK(farm_->tracker().Start());
    ASSERT_OK(farm_->runner().Start());
    ASSERT_OK(farm_->scheduler().Start());
    ASSERT_OK(farm_->builder().Start());
  });
}

// A candidate that crashes, hangs, answers wrongly or breaks the compiler costs one trial, and its
// record shows its fault.
TEST_F(KillTest, BadCandidatesCostOneTrialEach) {
  v1::JobSpec spec = MatmulJob(20);
  auto& faults = *spec.mutable_options()->mutable_faults();
  // null store
  faults[3] = 1;
  // infinite loop
  faults[6] = 2;
  // wrong answer
  faults[9] = 3;
  // compiler crash
  faults[12] = 4;
  // trap
  faults[14] = 6;
  // out of bounds
  faults[16] = 7;
  spec.mutable_options()->mutable_measure()->set_timeout_ms(1500);
  const std::string job = Submit(spec);
  const v1::JobStatus status = WaitFor(job, 21);
  EXPECT_EQ(status.state(), v1::SUCCEEDED) << status.ShortDebugString() << farm_->Logs();
  const std::map<uint32_t, v1::Record> records = Records(job);
  ASSERT_EQ(records.size(), 20u);
  const std::map<uint32_t, v1::ErrorKind> want = {
      {3, v1::RUNTIME_DEVICE_ERROR},  {6, v1::RUN_TIMEOUT_ERROR},
      {9, v1::WRONG_ANSWER_ERROR},    {12, v1::COMPILE_HOST_ERROR},
      {14, v1::RUNTIME_DEVICE_ERROR}, {16, v1::RUNTIME_DEVICE_ERROR}};
  for (const auto& [trial, record] : records) {
    const auto expected = want.find(trial);
    EXPECT_EQ(record.result().error(), expected == want.end() ? v1::NO_ERROR : expected->second)
        << "trial " << trial << ": " << record.result().message();
    EXPECT_EQ(record.result().message().empty(), expected == want.end());
  }
  for (const auto& [trial, kind] : want) {
    EXPECT_EQ(status.error_counts().at(kind), kind == v1::RUNTIME_DEVICE_ERROR ? 3u : 1u);
  }
}

TEST_F(KillTest, DaemonsStopCleanly) {
  for (DaemonProcess* daemon :
       {&farm_->scheduler(), &farm_->builder(), &farm_->runner(), &farm_->tracker()}) {
    ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon->Stop());
    EXPECT_TRUE(exit.ok()) << exit.ToString() << daemon->Log();
  }
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  kiln::InitGrpc();
  return RUN_ALL_TESTS();
}
