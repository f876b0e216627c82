#include "client/fleet/fleet_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/asked_by.h"

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::WorkerState& AddWorker(v1::ListReply& farm, const std::string& id, v1::WorkerKind kind,
                           uint32_t busy = 0) {
  v1::WorkerState& worker = *farm.add_workers();
  worker.set_id(id);
  worker.set_kind(kind);
  worker.set_slots(1);
  worker.add_keys("null");
  farm.add_busy_slots(busy);
  return worker;
}

void AddPending(v1::ListReply& farm, const std::string& key, v1::WorkerKind kind, uint32_t count) {
  v1::KeyState& row = *farm.add_keys();
  row.set_key(key);
  row.set_kind(kind);
  row.set_pending(count);
}

void AskFor(v1::WorkerState& worker, v1::WorkerMode mode, const std::string& why) {
  worker.set_asked_mode(mode);
  worker.set_asked_by(
      PrintAskedBy({.name = "ada", .at = absl::FromUnixSeconds(1'700'000'000), .why = why}));
}

FleetView RunnersOf(const v1::ListReply& farm, const std::vector<SlurmJob>& jobs,
                    const FleetKeys& keys = {.device = "null"}) {
  return ViewFleet("night", v1::RUNNER, farm, jobs, keys);
}

SlurmJob Running(int64_t id) {
  return {.id = id, .state = SlurmJobState::kRunning, .name = "kiln-night-runner", .detail = "n1"};
}

TEST(FleetView, AWorkersIdNamesItsJob) {
  EXPECT_EQ(SlurmJobOf("ab12.kiln-night-17", "night"), 17);
  EXPECT_EQ(SlurmJobOf("GPU-1f0c.ab12.kiln-night-17", "night"), 17);
  for (const char* other : {"ab12", "", "ab12.kiln-night-", "ab12.kiln-night-x", "ab12.kiln-day-17",
                            "ab12.kiln-night-17x", "ab12.kiln-night-0", "ab12.kiln-night-b-17",
                            "ab12.kiln-night-99999999999999999999"}) {
    EXPECT_EQ(SlurmJobOf(other, "night"), std::nullopt) << other;
  }
}

TEST(FleetView, OnlyJobsAndWorkersOfItsNameAndKindCount) {
  v1::ListReply farm;
  AddWorker(farm, "a.kiln-night-1", v1::RUNNER, 1);
  AddWorker(farm, "b.kiln-day-2", v1::RUNNER, 1);
  AddWorker(farm, "c", v1::RUNNER, 1);
  AddWorker(farm, "d.kiln-night-4", v1::BUILDER, 1);
  const SlurmJob builder = {4, SlurmJobState::kRunning, "kiln-night-builder", "n1"};
  const FleetView view = RunnersOf(farm, {Running(1), builder, Running(5)});
  EXPECT_EQ(view.wanted_slots, 1);
  ASSERT_EQ(view.jobs.size(), 2u);
  EXPECT_EQ(view.jobs[0].id, 1);
  EXPECT_EQ(view.jobs[0].workers, FleetWorkerState::kServes);
  EXPECT_EQ(view.jobs[0].busy_slots, 1);
  EXPECT_EQ(view.jobs[1].id, 5);
  EXPECT_EQ(view.jobs[1].workers, FleetWorkerState::kAbsent);
  EXPECT_EQ(ViewFleet("night", v1::BUILDER, farm, {builder}, {}).wanted_slots, 1);
}

TEST(FleetView, WaitingRequestsCountByKindAndKey) {
  v1::ListReply farm;
  AddPending(farm, "null", v1::RUNNER, 3);
  AddPending(farm, "null", v1::BUILDER, 5);
  AddPending(farm, "cuda/sm_90", v1::RUNNER, 7);
  AddPending(farm, "llvm", v1::RUNNER, 11);
  AddPending(farm, "NVIDIA H200", v1::RUNNER, 13);
  EXPECT_EQ(RunnersOf(farm, {}, {.device = "null"}).wanted_slots, 3);
  EXPECT_EQ(RunnersOf(farm, {}, {.device = "cuda"}).wanted_slots, 20);
  EXPECT_EQ(RunnersOf(farm, {}, {.device = "cpu"}).wanted_slots, 11);
  EXPECT_EQ(RunnersOf(farm, {}, {.named = {"NVIDIA H200"}, .device = "cuda"}).wanted_slots, 13);
  EXPECT_EQ(ViewFleet("night", v1::BUILDER, farm, {}, {}).wanted_slots, 5);
}

TEST(FleetView, KeysThatItsWorkersAnnouncedReplaceTheGuess) {
  v1::ListReply farm;
  AddPending(farm, "cuda/sm_80", v1::RUNNER, 3);
  AddPending(farm, "cuda/sm_90", v1::RUNNER, 4);
  AddWorker(farm, "a.kiln-night-1", v1::RUNNER).add_keys("cuda/sm_90");
  const FleetView view = RunnersOf(farm, {}, {.device = "cuda"});
  EXPECT_EQ(view.wanted_slots, 4);
  EXPECT_THAT(view.announced, ElementsAre("cuda/sm_90", "null"));
  farm.clear_workers();
  EXPECT_EQ(RunnersOf(farm, {}, {.device = "cuda", .announced = view.announced}).wanted_slots, 4);
}

TEST(FleetView, TellsItsOwnDrainFromThoseOfPeople) {
  v1::ListReply farm;
  AskFor(AddWorker(farm, "a.kiln-night-1", v1::RUNNER), v1::WORKER_DRAINS, DrainReason("night"));
  AskFor(AddWorker(farm, "b.kiln-night-2", v1::RUNNER), v1::WORKER_DRAINS, "a new driver");
  AskFor(AddWorker(farm, "c.kiln-night-3", v1::RUNNER), v1::WORKER_PAUSED, "");
  AddWorker(farm, "d.kiln-night-4", v1::RUNNER).set_mode(v1::WORKER_QUARANTINED);
  AskFor(AddWorker(farm, "e.kiln-night-5", v1::RUNNER), v1::WORKER_DRAINS, DrainReason("day"));
  const auto jobs =
      RunnersOf(farm, {Running(1), Running(2), Running(3), Running(4), Running(5)}).jobs;
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(jobs[0].workers, FleetWorkerState::kDrains);
  EXPECT_EQ(jobs[1].workers, FleetWorkerState::kStopped);
  EXPECT_EQ(jobs[2].workers, FleetWorkerState::kStopped);
  EXPECT_EQ(jobs[3].workers, FleetWorkerState::kServes);
  EXPECT_EQ(jobs[4].workers, FleetWorkerState::kStopped);
}

TEST(FleetView, AJobOfSeveralDevicesIsOne) {
  v1::ListReply farm;
  AskFor(AddWorker(farm, "GPU-1.a.kiln-night-1", v1::RUNNER, 1), v1::WORKER_DRAINS,
         DrainReason("night"));
  AddWorker(farm, "GPU-2.a.kiln-night-1", v1::RUNNER, 1);
  const auto jobs = RunnersOf(farm, {Running(1)}).jobs;
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].workers, FleetWorkerState::kServes) << "one of the two still serves";
  EXPECT_EQ(jobs[0].busy_slots, 2);
  EXPECT_THAT(WorkersOfJob("night", 1, farm),
              ElementsAre("GPU-1.a.kiln-night-1", "GPU-2.a.kiln-night-1"));
  EXPECT_THAT(WorkersOfJob("night", 2, farm), IsEmpty());
}

}  // namespace
}  // namespace kiln::client
