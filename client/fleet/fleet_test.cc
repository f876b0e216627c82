#include "client/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/status_testing.h"
#include "client/fleet/fleet_testing.h"

namespace kiln::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A fleet of at most four runners that looks every five seconds.
class FleetTest : public testing::Test {
 protected:
  FleetTest() { Restart(); }

  static FleetOptions Options() {
    return {.name = "night",
            .grow_after_s = 10,
            .shrink_after_s = 60,
            .kinds = {{.kind = v1::RUNNER,
                       .limits = {0, 4},
                       .request = {.name = SlurmJobName("night", v1::RUNNER)},
                       .log_file = "night-%j.log",
                       .keys = {.device = "null"}}}};
  }
  void Restart() {
    fleet_ = std::make_unique<Fleet>(Options(), cluster_, farm_, clock_,
                                     [this](const std::string& line) { lines_.push_back(line); });
  }
  void TickFor(double seconds) {
    for (double at_s = 0; at_s < seconds; at_s += 5) {
      fleet_->Tick();
      clock_.Advance(absl::Seconds(5));
    }
  }
  // Has four runners that work.
  void GrowToFour() {
    farm_.wanted = 6;
    TickFor(15);
    cluster_.RunAll();
    TickFor(5);
    ASSERT_EQ(cluster_.jobs.size(), 4u);
    lines_.clear();
  }

  FakeClock clock_;
  FakeSlurmCluster cluster_;
  FakeFarmQueue farm_{cluster_, "night"};
  std::vector<std::string> lines_;
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(FleetTest, GrowsWhenSlotsAreWantedForAWhile) {
  farm_.wanted = 3;
  TickFor(10);
  EXPECT_THAT(cluster_.jobs, IsEmpty());
  TickFor(5);
  EXPECT_THAT(cluster_.jobs, SizeIs(3));
  EXPECT_THAT(lines_, ElementsAre("submitted runners 1, 2, 3: 3 slots are wanted, 0 runners are "
                                  "there, 4 at most"));
  TickFor(100);
  EXPECT_THAT(cluster_.jobs, SizeIs(3)) << "jobs that wait count";
  EXPECT_THAT(lines_, Contains("runner 2 waits: Resources"));
  cluster_.RunAll();
  TickFor(10);
  EXPECT_THAT(lines_, Contains("runner 2 runs on node1"));
  EXPECT_THAT(lines_, Contains("runner 2 has announced itself"));
}

TEST_F(FleetTest, AShortWaveStartsNothing) {
  for (int wave = 0; wave < 10; ++wave) {
    farm_.wanted = 4;
    TickFor(10);
    farm_.wanted = 0;
    TickFor(5);
  }
  EXPECT_THAT(cluster_.jobs, IsEmpty());
}

TEST_F(FleetTest, ShrinksToNothingByDrainAndCancel) {
  GrowToFour();
  farm_.wanted = 0;
  farm_.held = {2};
  TickFor(60);
  EXPECT_THAT(farm_.modes, IsEmpty()) << "they have not been spare for a minute";
  TickFor(5);
  EXPECT_THAT(farm_.modes, SizeIs(3)) << "runner 2 is busy";
  EXPECT_FALSE(farm_.modes.contains(2));
  farm_.held = {};
  TickFor(65);
  EXPECT_THAT(farm_.modes, SizeIs(4));
  TickFor(10);
  EXPECT_THAT(cluster_.jobs, IsEmpty());
  EXPECT_THAT(cluster_.cancelled, SizeIs(4));
  EXPECT_THAT(lines_, Contains("runner 4 has ended"));
}

TEST_F(FleetTest, ADrainedRunnerIsNotCancelledWhileItHasATrial) {
  GrowToFour();
  farm_.wanted = 2;
  TickFor(60);
  fleet_->Tick();
  ASSERT_THAT(farm_.modes, SizeIs(2));
  EXPECT_EQ(farm_.modes.begin()->first, 3) << "runners 1 and 2 are busy";
  cluster_.cancelled.clear();
  farm_.held = {3, 4};
  TickFor(30);
  EXPECT_THAT(cluster_.cancelled, IsEmpty());
  EXPECT_THAT(farm_.modes, SizeIs(2));
  farm_.held = {};
  TickFor(10);
  EXPECT_THAT(cluster_.jobs, SizeIs(2));
}

TEST_F(FleetTest, ADrainingRunnerServesAgainWhenItIsWanted) {
  GrowToFour();
  farm_.wanted = 3;
  TickFor(60);
  fleet_->Tick();
  ASSERT_THAT(farm_.modes, SizeIs(1));
  farm_.held = {4};
  farm_.wanted = 4;
  TickFor(20);
  EXPECT_EQ(farm_.modes[4].first, v1::WORKER_SERVES);
  EXPECT_THAT(cluster_.jobs, SizeIs(4));
  EXPECT_THAT(cluster_.cancelled, IsEmpty());
}

TEST_F(FleetTest, AJobThatVanishesIsReplaced) {
  GrowToFour();
  cluster_.jobs.erase(2);
  TickFor(15);
  EXPECT_THAT(cluster_.jobs, SizeIs(4));
  EXPECT_THAT(lines_, Contains(HasSubstr("runner 2 is gone: ")));
  EXPECT_THAT(lines_, Contains(HasSubstr("night-2.log")));
}

TEST_F(FleetTest, ARequeuedJobIsNotReplaced) {
  GrowToFour();
  cluster_.Set(2, SlurmJobState::kEnding);
  TickFor(10);
  cluster_.Set(2, SlurmJobState::kPending);
  TickFor(30);
  EXPECT_THAT(cluster_.jobs, SizeIs(4));
  EXPECT_THAT(lines_, Contains("runner 2 was requeued by Slurm"));
  cluster_.RunAll();
  TickFor(30);
  EXPECT_THAT(cluster_.jobs, SizeIs(4));
  EXPECT_THAT(lines_, Contains("runner 2 has announced itself"));
}

TEST_F(FleetTest, JobsThatStayPendingAreCancelledWhenNobodyWantsThem) {
  farm_.wanted = 4;
  TickFor(600);
  ASSERT_THAT(cluster_.jobs, SizeIs(4));
  farm_.wanted = 1;
  TickFor(65);
  EXPECT_THAT(cluster_.cancelled, ElementsAre(4, 3, 2));
  EXPECT_THAT(cluster_.jobs, SizeIs(1));
}

TEST_F(FleetTest, ARefusalOfSlurmIsToldAndTriedLessAndLessOften) {
  farm_.wanted = 2;
  cluster_.refusal = FailedPrecondition("sbatch ended with exit status 1: no such partition");
  TickFor(15 + 10 + 20 + 40);
  EXPECT_THAT(lines_, SizeIs(4));
  EXPECT_THAT(lines_[0], HasSubstr("Slurm took no runner: sbatch ended with exit status 1: no such "
                                   "partition; it is tried again in 10 s"));
  EXPECT_THAT(lines_[3], HasSubstr("in 80 s"));
  cluster_.refusal = OkStatus();
  TickFor(85);
  EXPECT_THAT(cluster_.jobs, SizeIs(2));
}

TEST_F(FleetTest, JobsThatEndBeforeTheyAnnounceAreNotStartedOnAndOn) {
  farm_.wanted = 4;
  int submitted = 0;
  for (int s = 0; s < 600; s += 5) {
    TickFor(5);
    submitted += static_cast<int>(cluster_.jobs.size());
    cluster_.jobs.clear();
  }
  // After 10, 20, 40, 80, 160 and 300 seconds.
  EXPECT_LE(submitted, 4 * 6);
  EXPECT_GE(submitted, 4 * 4);
  EXPECT_THAT(lines_, Contains(HasSubstr("runner 1 is gone, and no worker of it was seen; read "
                                         "night-1.log and `scontrol show job 1`; no runner is "
                                         "started for 10 s")));
}

TEST_F(FleetTest, ChangesNothingWhileTheFarmOrSlurmIsSilent) {
  GrowToFour();
  farm_.trouble = Unavailable("cannot reach a scheduler at head:9290");
  farm_.wanted = 0;
  TickFor(300);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("cannot reach a scheduler at head:9290")));
  farm_.trouble = OkStatus();
  cluster_.trouble = FailedPrecondition("squeue ended with exit status 1");
  TickFor(300);
  EXPECT_THAT(lines_, SizeIs(3)) << "told once each, and the end of the first";
  EXPECT_THAT(cluster_.jobs, SizeIs(4));
  cluster_.trouble = OkStatus();
  TickFor(60);
  EXPECT_THAT(farm_.modes, IsEmpty()) << "nobody has looked for a minute yet";
  TickFor(15);
  EXPECT_THAT(cluster_.jobs, IsEmpty());
}

TEST_F(FleetTest, ARestartedFleetFindsItsJobs) {
  GrowToFour();
  Restart();
  TickFor(120);
  EXPECT_THAT(cluster_.jobs, SizeIs(4));
  farm_.wanted = 1;
  TickFor(65);
  EXPECT_THAT(farm_.modes, SizeIs(3));
  farm_.held = {3};
  TickFor(5);
  Restart();
  farm_.held = {};
  TickFor(5);
  EXPECT_THAT(cluster_.jobs, SizeIs(1)) << "it knows the runner that the former one has drained";
}

TEST_F(FleetTest, ADrainThatIsRefusedIsToldOnce) {
  GrowToFour();
  farm_.wanted = 3;
  farm_.mode_trouble = MakeStatus(StatusCode::kPermissionDenied, "the role operate is needed");
  TickFor(120);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("the role operate is needed")));
  EXPECT_THAT(cluster_.cancelled, IsEmpty());
  farm_.mode_trouble = NotFound("no such worker");
  TickFor(5);
  EXPECT_THAT(lines_, Contains(HasSubstr("answers again")));
}

TEST_F(FleetTest, EndDrainsAndCancelsAll) {
  GrowToFour();
  farm_.held = {1};
  fleet_->End();
  TickFor(20);
  EXPECT_FALSE(fleet_->ended());
  EXPECT_THAT(cluster_.jobs, SizeIs(1)) << "a runner with a trial in hand is waited for";
  farm_.held = {};
  TickFor(10);
  EXPECT_TRUE(fleet_->ended());
  EXPECT_THAT(cluster_.jobs, IsEmpty());
}

TEST_F(FleetTest, EndCancelsAJobThatWaits) {
  farm_.wanted = 2;
  TickFor(15);
  fleet_->End();
  TickFor(10);
  EXPECT_TRUE(fleet_->ended());
  EXPECT_THAT(cluster_.jobs, IsEmpty());
  EXPECT_THAT(farm_.modes, IsEmpty());
}

}  // namespace
}  // namespace kiln::client
