#include "client/fleet/fleet_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kPending = SlurmJobState::kPending;
constexpr auto kRunning = SlurmJobState::kRunning;
constexpr auto kEnding = SlurmJobState::kEnding;
constexpr auto kAbsent = FleetWorkerState::kAbsent;
constexpr auto kServes = FleetWorkerState::kServes;
constexpr auto kDrains = FleetWorkerState::kDrains;
constexpr auto kStopped = FleetWorkerState::kStopped;

// The same demand now and of late.
FleetDemand Wanted(int slots) { return {slots, slots}; }

TEST(JobsFor, RoundsUpWithinTheLimits) {
  EXPECT_EQ(JobsFor(0, 4, {0, 8}), 0);
  EXPECT_EQ(JobsFor(1, 4, {0, 8}), 1);
  EXPECT_EQ(JobsFor(4, 4, {0, 8}), 1);
  EXPECT_EQ(JobsFor(5, 4, {0, 8}), 2);
  EXPECT_EQ(JobsFor(1000, 4, {0, 8}), 8);
  EXPECT_EQ(JobsFor(0, 4, {2, 8}), 2);
}

TEST(FleetPlan, GrowsFromNothingToTheDemandAndTheLimit) {
  EXPECT_EQ(PlanFleet({}, Wanted(0), {0, 8}, 1), FleetPlan());
  EXPECT_EQ(PlanFleet({}, Wanted(3), {0, 8}, 1), (FleetPlan{.submit = 3}));
  EXPECT_EQ(PlanFleet({}, Wanted(30), {0, 8}, 1), (FleetPlan{.submit = 8}));
  EXPECT_EQ(PlanFleet({}, Wanted(0), {2, 8}, 1), (FleetPlan{.submit = 2}));
}

TEST(FleetPlan, JobsThatWaitOrStartOrAreRequeuedCount) {
  const std::vector<FleetJob> jobs = {
      {.id = 1, .state = kPending}, {.id = 2, .state = kRunning}, {.id = 3, .state = kEnding}};
  EXPECT_EQ(PlanFleet(jobs, Wanted(4), {0, 8}, 1), (FleetPlan{.submit = 1}));
}

TEST(FleetPlan, BetweenLastingAndPeakDemandNothingChanges) {
  const std::vector<FleetJob> jobs = {{1, kRunning, kServes}, {2, kRunning, kServes}};
  EXPECT_EQ(PlanFleet(jobs, {.lasting = 1, .peak = 2}, {0, 8}, 1), FleetPlan());
  EXPECT_EQ(PlanFleet(jobs, {.lasting = 0, .peak = 5}, {0, 8}, 1), FleetPlan());
}

TEST(FleetPlan, EndsFirstWhatCostsLeast) {
  const std::vector<FleetJob> jobs = {{1, kRunning, kServes, 1}, {2, kRunning, kServes, 0},
                                      {3, kRunning, kServes, 0}, {4, kRunning, kAbsent},
                                      {5, kPending, kAbsent},    {6, kPending, kAbsent}};
  EXPECT_EQ(PlanFleet(jobs, Wanted(5), {0, 8}, 1), (FleetPlan{.cancel = {6}}));
  EXPECT_EQ(PlanFleet(jobs, Wanted(3), {0, 8}, 1), (FleetPlan{.cancel = {6, 5, 4}}));
  EXPECT_EQ(PlanFleet(jobs, Wanted(1), {0, 8}, 1),
            (FleetPlan{.drain = {3, 2}, .cancel = {6, 5, 4}}));
  EXPECT_EQ(PlanFleet(jobs, Wanted(0), {0, 8}, 1),
            (FleetPlan{.drain = {3, 2, 1}, .cancel = {6, 5, 4}}));
}

TEST(FleetPlan, CancelsADrainedWorkerOnceItHasNothingInHand) {
  EXPECT_EQ(PlanFleet({{1, kRunning, kDrains, 1}}, Wanted(0), {0, 8}, 1), FleetPlan());
  EXPECT_EQ(PlanFleet({{1, kRunning, kDrains, 0}}, Wanted(0), {0, 8}, 1),
            (FleetPlan{.cancel = {1}}));
}

TEST(FleetPlan, ADrainingWorkerServesAgainBeforeANewOneStarts) {
  const std::vector<FleetJob> jobs = {{1, kRunning, kDrains, 0}, {2, kRunning, kDrains, 1}};
  EXPECT_EQ(PlanFleet(jobs, Wanted(1), {0, 8}, 1), (FleetPlan{.resume = {2}, .cancel = {1}}));
  EXPECT_EQ(PlanFleet(jobs, Wanted(3), {0, 8}, 1), (FleetPlan{.submit = 1, .resume = {2, 1}}));
}

TEST(FleetPlan, LeavesWorkersAloneThatAPersonHasStopped) {
  const std::vector<FleetJob> jobs = {{1, kRunning, kStopped, 0}, {2, kRunning, kServes, 0}};
  EXPECT_EQ(PlanFleet(jobs, Wanted(0), {0, 2}, 1), (FleetPlan{.drain = {2}}));
  EXPECT_EQ(PlanFleet(jobs, Wanted(2), {0, 2}, 1), FleetPlan()) << "it counts against the limit";
  EXPECT_EQ(PlanFleet(jobs, Wanted(2), {0, 3}, 1), (FleetPlan{.submit = 1}));
}

TEST(FleetPlan, ACancelledJobIsNoMore) {
  FleetJob job = {1, kRunning, kServes, 1};
  job.cancelled = true;
  EXPECT_EQ(PlanFleet({job}, Wanted(1), {0, 1}, 1), (FleetPlan{.submit = 1}));
  EXPECT_EQ(PlanFleet({job}, Wanted(0), {0, 1}, 1), FleetPlan());
}

TEST(FleetPlan, ARequeuedJobIsNotAskedThroughItsFormerWorker) {
  EXPECT_EQ(PlanFleet({{1, kPending, kServes, 1}}, Wanted(0), {0, 8}, 1),
            (FleetPlan{.cancel = {1}}));
  EXPECT_EQ(PlanFleet({{1, kPending, kDrains, 1}}, Wanted(1), {0, 8}, 1), FleetPlan());
}

TEST(FleetPlan, ALowerLimitAppliesAtOnce) {
  const std::vector<FleetJob> jobs = {{1, kRunning, kServes, 1}, {2, kRunning, kServes, 1}};
  EXPECT_EQ(PlanFleet(jobs, Wanted(2), {0, 1}, 1), (FleetPlan{.drain = {2}}));
}

// All states in which a job can be.
constexpr std::array<FleetJob, 9> kStates = {{{0, kPending, kAbsent, 0},
                                              {0, kPending, kServes, 1},
                                              {0, kRunning, kAbsent, 0},
                                              {0, kRunning, kServes, 0},
                                              {0, kRunning, kServes, 2},
                                              {0, kRunning, kDrains, 0},
                                              {0, kRunning, kDrains, 2},
                                              {0, kRunning, kStopped, 0},
                                              {0, kEnding, kAbsent, 0}}};

// The rules that each plan keeps, whatever the jobs are.
void ExpectSound(const std::vector<FleetJob>& jobs, const FleetDemand& demand,
                 const FleetLimits& limits, int slots) {
  const FleetPlan plan = PlanFleet(jobs, demand, limits, slots);
  const auto find = [&](int64_t id) {
    return *std::ranges::find(jobs, id, [](const FleetJob& job) { return job.id; });
  };
  int serving = 0, will_serve = plan.submit;
  for (const FleetJob& job : jobs) {
    const bool out = job.state == kRunning && (job.workers == kDrains || job.workers == kStopped);
    if (!out) ++serving;
  }
  will_serve += serving + static_cast<int>(plan.resume.size() - plan.drain.size());
  for (const int64_t id : plan.cancel) {
    const FleetJob job = find(id);
    EXPECT_TRUE(job.state == kPending || job.workers == kAbsent ||
                (job.workers == kDrains && job.busy_slots == 0))
        << "a worker that serves is drained first";
    EXPECT_NE(job.state, kEnding);
    if (job.workers != kDrains || job.state == kPending) --will_serve;
  }
  for (const int64_t id : plan.drain) EXPECT_EQ(find(id).workers, kServes);
  for (const int64_t id : plan.resume) {
    EXPECT_EQ(find(id).workers, kDrains);
    EXPECT_THAT(plan.cancel, testing::Not(testing::Contains(id)));
  }
  if (plan.submit > 0) {
    EXPECT_LE(static_cast<int>(jobs.size()) + plan.submit, limits.most);
    EXPECT_THAT(plan.drain, IsEmpty());
  }
  const int needed = JobsFor(demand.lasting, slots, limits);
  const int kept = JobsFor(demand.peak, slots, limits);
  if (serving < needed) {
    EXPECT_LE(will_serve, needed);
  } else if (serving > kept) {
    EXPECT_GE(will_serve, kept);
  } else {
    EXPECT_EQ(will_serve, serving);
  }
}

TEST(FleetPlan, KeepsItsRulesForAllSmallFleets) {
  // Three jobs in all combinations of states, with all demands and limits that differ.
  for (const FleetJob& first : kStates) {
    for (const FleetJob& second : kStates) {
      for (const FleetJob& third : kStates) {
        std::vector<FleetJob> jobs = {first, second, third};
        for (size_t i = 0; i < jobs.size(); ++i) jobs[i].id = static_cast<int64_t>(i) + 1;
        for (int lasting = 0; lasting <= 10; ++lasting) {
          for (int peak = lasting; peak <= 10; ++peak) {
            for (int most = 0; most <= 5; ++most) {
              for (int least = 0; least <= most; ++least) {
                ExpectSound(jobs, {lasting, peak}, {least, most}, 2);
              }
            }
          }
        }
      }
    }
  }
}

TEST(FleetPlan, ComesToRestAtTheDemand) {
  // Each plan is carried out at once, until nothing changes.
  for (int demand = 0; demand <= 9; ++demand) {
    std::vector<FleetJob> jobs = {{1, kPending, kAbsent, 0},
                                  {2, kRunning, kServes, 1},
                                  {3, kRunning, kDrains, 1},
                                  {4, kRunning, kAbsent, 0}};
    int64_t next_id = 5;
    FleetPlan plan;
    int steps = 0;
    do {
      plan = PlanFleet(jobs, Wanted(demand), {1, 6}, 1);
      for (FleetJob& job : jobs) {
        if (std::ranges::count(plan.resume, job.id) > 0) job.workers = kServes;
        if (std::ranges::count(plan.drain, job.id) > 0) job.workers = kDrains;
        if (job.workers == kDrains) job.busy_slots = 0;
      }
      std::erase_if(
          jobs, [&](const FleetJob& job) { return std::ranges::count(plan.cancel, job.id) > 0; });
      for (int i = 0; i < plan.submit; ++i) jobs.push_back({next_id++, kRunning, kServes, 0});
      ASSERT_LT(++steps, 20);
    } while (plan != FleetPlan() ||
             std::ranges::any_of(jobs, [](const FleetJob& job) { return job.workers == kDrains; }));
    EXPECT_EQ(static_cast<int>(jobs.size()), std::clamp(demand, 1, 6)) << demand;
  }
}

}  // namespace
}  // namespace kiln::client
