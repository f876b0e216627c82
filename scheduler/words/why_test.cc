#include "scheduler/words/why.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

v1::JobStatus Job(v1::JobState state, const std::string& id = "4f3a",
                  const std::string& user = "ann") {
  v1::JobStatus job;
  job.set_id(id);
  job.set_state(state);
  job.mutable_spec()->set_user(user);
  job.mutable_spec()->mutable_options()->set_trials(100);
  job.add_tasks()->mutable_spec()->set_target("cuda -arch=sm_90");
  return job;
}

// Returns a job that measures on the device.
v1::JobStatus Running(const std::string& id = "4f3a", const std::string& user = "ann",
                      const std::string& device = "NVIDIA H200") {
  v1::JobStatus job = Job(v1::RUNNING, id, user);
  job.set_device(device);
  job.set_trials_done(40);
  job.set_trials_per_s_last_minute(2);
  return job;
}

// Returns a job that has no device yet.
v1::JobStatus Waiting(const std::string& message = "waiting for a runner") {
  v1::JobStatus job = Job(v1::RUNNING);
  job.set_waiting_for_workers(1);
  job.set_message(message);
  return job;
}

class Workers {
 public:
  Workers& Add(v1::WorkerKind kind, const std::vector<std::string>& keys, uint32_t slots,
               uint32_t busy) {
    v1::WorkerState& worker = *reply_.add_workers();
    worker.set_kind(kind);
    worker.mutable_keys()->Assign(keys.begin(), keys.end());
    if (kind == v1::RUNNER) worker.set_device(keys.back());
    worker.set_slots(slots);
    reply_.add_busy_slots(busy);
    return *this;
  }
  // Sets the mode of the last worker and why; of an operator, if `by_operator`.
  Workers& Mode(v1::WorkerMode mode, const std::string& reason, bool by_operator = false) {
    v1::WorkerState& worker = *reply_.mutable_workers()->rbegin();
    worker.set_address(fmt::format("box{}:9490", reply_.workers_size()));
    worker.set_mode(mode);
    worker.set_mode_reason(reason);
    if (by_operator) worker.set_asked_mode(mode);
    return *this;
  }
  Workers& Pending(v1::WorkerKind kind, const std::string& key, uint32_t pending) {
    v1::KeyState& state = *reply_.add_keys();
    state.set_kind(kind);
    state.set_key(key);
    state.set_pending(pending);
    return *this;
  }
  operator std::optional<v1::ListReply>() const { return reply_; }

 private:
  v1::ListReply reply_;
};

// A farm of one busy GPU and two builder slots, one of them busy.
Workers OneGpu(uint32_t busy = 1) {
  return Workers()
      .Add(v1::RUNNER, {"cuda", "cuda/sm_90", "NVIDIA H200"}, 1, busy)
      .Add(v1::BUILDER, {"cuda", "llvm"}, 2, 1);
}

std::vector<WhyKind> Kinds(const std::vector<Reason>& reasons) {
  std::vector<WhyKind> kinds;
  for (const Reason& reason : reasons) {
    kinds.push_back(reason.kind);
    EXPECT_THAT(reason.text + reason.remedy, Not(HasSubstr("{"))) << "a value is missing";
    EXPECT_FALSE(reason.remedy.empty());
    EXPECT_LE(reason.details.size(), 8u);
  }
  return kinds;
}

// Expects one reason of this kind, and returns it.
Reason Only(WhyKind kind, const v1::JobStatus& job, const FarmAnswers& farm) {
  const std::vector<Reason> reasons = WhyOf(job, farm);
  EXPECT_THAT(Kinds(reasons), ElementsAre(kind)) << WhyJson(job, farm);
  return reasons.empty() ? Reason() : reasons[0];
}

TEST(WhyTest, AJobThatHasEnded) {
  v1::JobStatus job = Job(v1::SUCCEEDED);
  job.set_trials_done(12);
  job.set_ending(v1::NO_IMPROVEMENT);
  const Reason ended = Only(WhyKind::kSucceeded, job, {});
  EXPECT_EQ(ended.text,
            "job 4f3a has ended: nothing improved for too long (early stopping), after 12 trials");
  EXPECT_EQ(ended.remedy, "`kiln best 4f3a` shows its programs");
  job.clear_ending();
  EXPECT_EQ(Only(WhyKind::kSucceeded, job, {}).text, "job 4f3a has ended: 12 trials");
}

TEST(WhyTest, AJobThatFailedOrWasCancelled) {
  v1::JobStatus job = Job(v1::FAILED);
  job.set_message("the model is gone");
  EXPECT_EQ(Only(WhyKind::kFailed, job, {}).text, "job 4f3a has failed: the model is gone");
  job.clear_message();
  EXPECT_EQ(Only(WhyKind::kFailed, job, {}).text, "job 4f3a has failed: no reason is known");
  const Reason cancelled = Only(WhyKind::kCancelled, Job(v1::CANCELLED), {});
  EXPECT_EQ(cancelled.text, "job 4f3a was cancelled, after 0 trials");
  EXPECT_THAT(cancelled.remedy, HasSubstr("`kiln tune --resume 4f3a`"));
}

TEST(WhyTest, APausedJob) {
  v1::JobStatus job = Job(v1::PAUSED);
  job.set_trials_done(1);
  EXPECT_EQ(Only(WhyKind::kPaused, job, {}).text,
            "job 4f3a is paused, after 1 trial, and takes no device");
}

TEST(WhyTest, AJobWhoseProcessIsNotThere) {
  v1::JobStatus job = Job(v1::QUEUED);
  job.mutable_spec()->mutable_served()->set_objective(true);
  job.set_phase("waits for the process that serves its objective; client.serve goes on with it");
  const Reason reason = Only(WhyKind::kProcess, job, {.jobs = {job}});
  EXPECT_EQ(reason.text,
            "job 4f3a needs a process of ann that answers for a part of the search: it waits for "
            "the process that serves its objective");
  EXPECT_THAT(reason.remedy, HasSubstr("`client.serve(\"4f3a\", ...)`"));
  // With its process the job waits for its turn.
  job.clear_phase();
  Only(WhyKind::kNext, job, {.jobs = {job}});
}

TEST(WhyTest, AJobWhoseTaskAnotherJobTunes) {
  v1::JobStatus job = Job(v1::QUEUED), other = Job(v1::RUNNING, "aaaa", "bob");
  job.mutable_tasks(0)->set_tuned_by_job("aaaa");
  job.set_phase("waits for the results of job aaaa, which tunes the same task");
  const Reason reason = Only(WhyKind::kResults, job, {.jobs = {job, other}});
  EXPECT_EQ(reason.text, "job 4f3a waits for the results of job aaaa, which tunes the same task");
  ASSERT_EQ(reason.details.size(), 1u);
  EXPECT_THAT(reason.details[0], testing::AllOf(HasSubstr("aaaa"), HasSubstr("tunes it")));
  EXPECT_THAT(reason.remedy, HasSubstr("--no-warm-start"));
}

TEST(WhyTest, AJobThatRunsWhileAnotherJobTunesATask) {
  v1::JobStatus job = Running();
  job.add_tasks()->mutable_spec()->set_description("softmax 8,1000");
  job.mutable_tasks(1)->set_tuned_by_job("aaaa");
  const FarmAnswers farm = {.jobs = {job, Running("aaaa")}, .workers = OneGpu()};
  EXPECT_THAT(Only(WhyKind::kRunning, job, farm).details,
              ElementsAre("job aaaa tunes softmax 8,1000: its results are taken"));
}

TEST(WhyTest, AJobInTheQueue) {
  v1::JobStatus urgent = Job(v1::QUEUED, "aaaa", "bob");
  urgent.mutable_spec()->set_priority(5);
  const v1::JobStatus job = Job(v1::QUEUED), older = Job(v1::QUEUED, "bbbb", "");
  const FarmAnswers farm = {.jobs = {urgent, Job(v1::QUEUED, "dddd"), job, older, Running("cccc")},
                            .workers = OneGpu()};
  const Reason reason = Only(WhyKind::kQueue, job, farm);
  EXPECT_EQ(
      reason.text,
      "job 4f3a is number 3 of 4 in the queue by priority and age; the scheduler runs 1 job, and "
      "takes another when one of them ends: among equal priorities the users who have had "
      "less go first");
  EXPECT_THAT(reason.details,
              ElementsAre("job aaaa of bob, priority 5, 0/100 trials: before it by its priority",
                          "job bbbb of no user, priority 0, 0/100 trials: came earlier",
                          "job cccc of ann, priority 0, 40/100 trials: runs, ends in about 30 s"));
  EXPECT_THAT(reason.remedy, HasSubstr("--priority above 5"));
  EXPECT_EQ(EstimateText(job, farm), "") << "bbbb of another user may come before it, or not";
  // aaaa and bbbb have 100 trials each, at 2 trials a second.
  FarmAnswers of_ann = farm;
  of_ann.jobs[3].mutable_spec()->set_user("ann");
  EXPECT_EQ(EstimateText(job, of_ann), "starts in about 2 min");
}

TEST(WhyTest, ALongQueueFitsAScreen) {
  FarmAnswers farm;
  farm.jobs.push_back(Job(v1::QUEUED));
  for (int i = 0; i < 50; ++i) farm.jobs.push_back(Job(v1::QUEUED, fmt::format("q{}", i)));
  const Reason reason = Only(WhyKind::kQueue, farm.jobs[0], farm);
  ASSERT_THAT(reason.details, SizeIs(8));
  EXPECT_THAT(reason.details[0], StartsWith("job q49 ")) << "the oldest is the next";
  EXPECT_EQ(reason.details[7], "and 43 more jobs");
}

TEST(WhyTest, TheFirstInTheQueue) {
  const v1::JobStatus job = Job(v1::QUEUED);
  EXPECT_THAT(Only(WhyKind::kNext, job, {.jobs = {job}}).remedy, HasSubstr("--unfinished"));
}

TEST(WhyTest, AQueuedJobWhoseDatabaseIsAway) {
  v1::JobStatus job = Job(v1::QUEUED);
  job.set_message("waits for the database: disk full");
  EXPECT_EQ(Only(WhyKind::kWaits, job, {.jobs = {job}}).text,
            "job 4f3a stands still: waits for the database: disk full");
}

TEST(WhyTest, NoSuchDevice) {
  v1::JobStatus job = Waiting();
  job.mutable_spec()->set_device("NVIDIA H20");
  const Reason reason = Only(WhyKind::kNoDevice, job, {.jobs = {job}, .workers = OneGpu()});
  EXPECT_EQ(reason.text, "job 4f3a asks for a device 'NVIDIA H20', and no runner has one");
  EXPECT_THAT(reason.details,
              ElementsAre("close names: NVIDIA H200", "there are: NVIDIA H200, cuda, cuda/sm_90"));
  EXPECT_THAT(reason.remedy, AllOf(HasSubstr("kiln runner"), HasSubstr("--device")));
}

TEST(WhyTest, NoRunnerAtAll) {
  const v1::JobStatus job = Waiting();
  const Reason reason = Only(WhyKind::kNoDevice, job, {.jobs = {job}, .workers = Workers()});
  EXPECT_THAT(reason.text, HasSubstr("'cuda'"));
  EXPECT_THAT(reason.details, ElementsAre("no runner is there at all"));
  // A builder of the key is no device.
  const std::optional<v1::ListReply> builder = Workers().Add(v1::BUILDER, {"cuda"}, 1, 0);
  Only(WhyKind::kNoDevice, job, {.jobs = {job}, .workers = builder});
}

TEST(WhyTest, AQueuedJobWithoutADevice) {
  const v1::JobStatus job = Job(v1::QUEUED);
  EXPECT_THAT(Kinds(WhyOf(job, {.jobs = {job, Running("a")}, .workers = Workers()})),
              ElementsAre(WhyKind::kQueue, WhyKind::kNoDevice));
}

TEST(WhyTest, ManyKeysFitALine) {
  std::vector<std::string> keys;
  for (int i = 10; i < 40; ++i) keys.push_back(fmt::format("gpu{}", i));
  const v1::JobStatus job = Waiting();
  const std::optional<v1::ListReply> there = Workers().Add(v1::RUNNER, keys, 1, 0);
  const Reason reason = Only(WhyKind::kNoDevice, job, {.jobs = {job}, .workers = there});
  EXPECT_THAT(reason.details, ElementsAre(AllOf(HasSubstr("gpu21"), Not(HasSubstr("gpu22")),
                                                HasSubstr(", and 18 more"))));
}

TEST(WhyTest, AllDevicesAreBusyWithOthers) {
  const v1::JobStatus job = Waiting();
  const v1::JobStatus cpu = Running("eeee", "eve", "Xeon");
  v1::JobStatus other = Running("bbbb", "bob");
  FarmAnswers farm = {.jobs = {job, cpu, other}, .workers = OneGpu()};
  const Reason reason = Only(WhyKind::kBusy, job, farm);
  EXPECT_EQ(reason.text, "job 4f3a waits for a device 'cuda': all 1 are busy");
  EXPECT_THAT(reason.details,
              ElementsAre("job bbbb of bob, priority 0, 40/100 trials: ends in about 30 s"));
  EXPECT_EQ(EstimateText(job, farm), "") << "devices go in turns";
  farm.jobs[2].mutable_spec()->set_priority(3);
  EXPECT_EQ(EstimateText(job, farm), "starts in about 30 s");
  // A job that waits itself is named if no other one can have the device.
  v1::JobStatus waits = Running("dddd", "dan");
  waits.set_waiting_for_workers(1);
  farm.jobs.push_back(waits);
  EXPECT_THAT(Only(WhyKind::kBusy, job, farm).details, ElementsAre(StartsWith("job bbbb ")));
  farm.jobs = {job, cpu, waits};
  EXPECT_THAT(Only(WhyKind::kBusy, job, farm).details, ElementsAre(StartsWith("job dddd ")));
  farm.jobs = {job, cpu};
  EXPECT_THAT(Only(WhyKind::kBusy, job, farm).details,
              ElementsAre("no job of this scheduler has one: another scheduler's do"));
}

// A job that had a device may have it still: only another job that works shows that it has not.
TEST(WhyTest, AJobThatHadADevice) {
  v1::JobStatus job = Running();
  job.set_waiting_for_workers(1);
  job.set_message("waiting for a runner for 'NVIDIA H200'");
  v1::UserShare ann;
  ann.set_name("ann");
  ann.set_devices(1);
  ann.set_devices_now(1);
  FarmAnswers farm = {.jobs = {job}, .workers = OneGpu(), .users = {ann}};
  Only(WhyKind::kWaits, job, farm);
  farm.jobs.push_back(Running("bbbb", "bob"));
  Only(WhyKind::kBusy, job, farm);
}

TEST(WhyTest, AFreeDeviceLeavesTheSchedulersSentence) {
  const v1::JobStatus job = Waiting("no connection to 10.0.0.7:9391");
  EXPECT_THAT(Only(WhyKind::kWaits, job, {.jobs = {job}, .workers = OneGpu(0)}).text,
              HasSubstr("no connection to 10.0.0.7:9391"));
  // So does a tracker that does not answer.
  Only(WhyKind::kWaits, job, {.jobs = {job}});
}

constexpr char kByAda[] = "paused by ada at 2026-11-29T14:02:11Z: a new driver";

TEST(WhyTest, AnOperatorHasStoppedTheDevice) {
  const v1::JobStatus job = Waiting();
  const std::optional<v1::ListReply> there =
      Workers().Add(v1::RUNNER, {"cuda", "H200"}, 1, 0).Mode(v1::WORKER_PAUSED, kByAda, true);
  const Reason reason = Only(WhyKind::kStopped, job, {.jobs = {job}, .workers = there});
  EXPECT_EQ(reason.text,
            "job 4f3a waits for a device 'cuda': an operator has stopped the only runner");
  EXPECT_THAT(reason.details, ElementsAre(std::string("box1:9490: ") + kByAda));
  EXPECT_THAT(reason.remedy, HasSubstr("`kiln workers resume NAME`"));
  // A worker does not cordon or drain itself.
  const std::optional<v1::ListReply> two = Workers()
                                               .Add(v1::RUNNER, {"cuda", "H200"}, 1, 0)
                                               .Mode(v1::WORKER_CORDONED, "cordoned by ada")
                                               .Add(v1::RUNNER, {"cuda", "H200"}, 1, 1)
                                               .Mode(v1::WORKER_DRAINS, "drained by bob");
  EXPECT_THAT(Only(WhyKind::kStopped, job, {.jobs = {job}, .workers = two}).text,
              HasSubstr("an operator has stopped all 2 runners"));
  EXPECT_THAT(
      Kinds(WhyOf(Job(v1::QUEUED), {.jobs = {Job(v1::QUEUED), Running("a")}, .workers = two})),
      ElementsAre(WhyKind::kQueue, WhyKind::kStopped));
}

TEST(WhyTest, TheDeviceHasStoppedByItself) {
  const v1::JobStatus job = Waiting();
  const std::optional<v1::ListReply> there =
      Workers()
          .Add(v1::RUNNER, {"cuda", "H200"}, 1, 0)
          .Mode(v1::WORKER_QUARANTINED, "quarantined: the canary took 2 ms; 1 ms is usual")
          .Add(v1::RUNNER, {"cuda", "H200"}, 1, 0)
          .Mode(v1::WORKER_PAUSED, "outside of its hours 22:00-06:00, until Mon 22:00")
          .Add(v1::RUNNER, {"cuda", "H200"}, 1, 0)
          .Mode(v1::WORKER_PAUSED, "outside of its hours sat-sun, until Sat 00:00");
  const std::vector<Reason> reasons = WhyOf(job, {.jobs = {job}, .workers = there});
  ASSERT_THAT(Kinds(reasons), ElementsAre(WhyKind::kQuarantined, WhyKind::kOutsideHours));
  EXPECT_EQ(reasons[0].text,
            "job 4f3a waits for a device 'cuda': 1 of 3 runners is quarantined, because the device "
            "is not well");
  EXPECT_THAT(reasons[0].details,
              ElementsAre("box1:9490: quarantined: the canary took 2 ms; 1 ms is usual"));
  EXPECT_EQ(reasons[1].text,
            "job 4f3a waits for a device 'cuda': 2 of 3 runners are paused outside of set "
            "hours");
  EXPECT_THAT(reasons[1].details, SizeIs(2));
}

// Jobs wait for the workers that serve. Those that do not are mentioned.
TEST(WhyTest, AStoppedWorkerBesideABusyOne) {
  const v1::JobStatus job = Waiting();
  const Workers there =
      OneGpu().Add(v1::RUNNER, {"cuda", "H200"}, 1, 0).Mode(v1::WORKER_PAUSED, kByAda, true);
  const Reason reason =
      Only(WhyKind::kBusy, job, {.jobs = {job, Running("bbbb", "bob")}, .workers = there});
  EXPECT_THAT(reason.text, HasSubstr("all 1 are busy"));
  EXPECT_THAT(reason.details,
              ElementsAre(StartsWith("job bbbb of bob"), std::string("box3:9490: ") + kByAda));
}

// Only the job that holds a cordoned worker keeps it.
TEST(WhyTest, ACordonedWorkerStaysWithItsJob) {
  v1::JobStatus job = Running();
  job.set_waiting_for_workers(1);
  job.set_message("waits for a builder");
  const Workers there = Workers()
                            .Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)
                            .Mode(v1::WORKER_CORDONED, "cordoned by ada", true)
                            .Add(v1::BUILDER, {"cuda"}, 2, 1);
  Only(WhyKind::kWaits, job, {.jobs = {job}, .workers = there});
  Only(WhyKind::kStopped, Waiting(), {.jobs = {Waiting()}, .workers = there});
}

TEST(WhyTest, BuildersThatAreStopped) {
  v1::JobStatus job = Running();
  job.set_waiting_for_workers(1);
  const Workers there = Workers()
                            .Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)
                            .Add(v1::BUILDER, {"cuda"}, 2, 0)
                            .Mode(v1::WORKER_PAUSED, kByAda, true);
  EXPECT_EQ(Only(WhyKind::kStopped, job, {.jobs = {job}, .workers = there}).text,
            "job 4f3a waits for a builder 'cuda': an operator has stopped the only builder");
}

TEST(WhyTest, ADeviceThatTheJobMayUseInPart) {
  v1::JobStatus job = Running();
  job.add_notices("a notice");
  FarmAnswers farm = {.jobs = {job},
                      .workers = Workers()
                                     .Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)
                                     .Mode(v1::WORKER_SERVES, "takes at most 25% of the time")
                                     .Add(v1::BUILDER, {"cuda"}, 2, 1)};
  const Reason reason = Only(WhyKind::kShare, job, farm);
  EXPECT_EQ(reason.text,
            "job 4f3a runs on a device of which it may take a part of the time: 2 trials/s");
  EXPECT_THAT(reason.details, ElementsAre("box1:9490: takes at most 25% of the time", "a notice"));
  EXPECT_THAT(reason.remedy, HasSubstr("--share"));
  // Another runner of the same device that has no limit takes the trials, too.
  farm.workers = Workers()
                     .Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)
                     .Mode(v1::WORKER_SERVES, "takes at most 25% of the time")
                     .Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)
                     .Add(v1::BUILDER, {"cuda"}, 2, 1);
  Only(WhyKind::kRunning, job, farm);
}

TEST(WhyTest, TheUserHasAsManyDevicesAsHeMay) {
  v1::UserShare ann;
  ann.set_name("ann");
  ann.set_devices(2);
  ann.set_devices_now(2);
  const v1::JobStatus job = Waiting();
  FarmAnswers farm = {.jobs = {job, Running("bbbb", "bob"), Running("cccc", "ann")},
                      .workers = OneGpu(),
                      .users = {ann}};
  const Reason reason = Only(WhyKind::kDeviceLimit, job, farm);
  EXPECT_EQ(reason.text, "job 4f3a waits for a device: ann has 2 devices, and may have 2 at once");
  EXPECT_THAT(reason.details, ElementsAre(StartsWith("job cccc of ann")));
  farm.users[0].set_devices(3);
  Only(WhyKind::kBusy, job, farm);
  farm.users[0].set_devices(0);
  Only(WhyKind::kBusy, job, farm);
  farm.users[0].set_devices(2);
  farm.users[0].set_name("bob");
  Only(WhyKind::kBusy, job, farm);
}

TEST(WhyTest, BuildersAreMissingOrShort) {
  v1::JobStatus job = Running();
  FarmAnswers farm = {.jobs = {job},
                      .workers = Workers().Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)};
  EXPECT_EQ(Only(WhyKind::kNoBuilder, job, farm).text,
            "job 4f3a has trials to build, and no builder serves 'cuda'");
  job.set_waiting_for_workers(1);
  Only(WhyKind::kNoBuilder, job, farm);  // the busy device is its own
  job.clear_waiting_for_workers();
  farm.workers = Workers()
                     .Add(v1::RUNNER, {"cuda", "NVIDIA H200"}, 1, 1)
                     .Add(v1::BUILDER, {"cuda"}, 2, 2)
                     .Pending(v1::BUILDER, "cuda", 3);
  const Reason reason = Only(WhyKind::kBuilders, job, farm);
  EXPECT_EQ(reason.text,
            "job 4f3a is slowed by builds: all 2 slots of builders for 'cuda' are busy, and 3 "
            "requests wait for more");
  EXPECT_THAT(reason.details, ElementsAre("pace: 2 trials/s"));
  farm.workers->mutable_keys(0)->set_pending(1);
  EXPECT_THAT(Only(WhyKind::kBuilders, job, farm).text, HasSubstr("1 request waits for one more"));
  // More builders would not help a device that is busy.
  job.set_busy_share_last_minute(0.95);
  Only(WhyKind::kRunning, job, farm);
  job.set_busy_share_last_minute(0.85);
  Only(WhyKind::kBuilders, job, farm);
  farm.workers->mutable_keys(0)->set_pending(0);
  Only(WhyKind::kRunning, job, farm);
  farm.workers->mutable_keys(0)->set_pending(1);
  farm.workers->set_busy_slots(1, 1);
  Only(WhyKind::kRunning, job, farm);
}

TEST(WhyTest, TheReferenceRunsFirst) {
  v1::JobStatus job = Running();
  job.set_trials_done(0);
  job.clear_trials_per_s_last_minute();
  job.mutable_spec()->mutable_options()->set_reference_limit_s(25);
  job.add_notices("outputs are compared at a sample");
  FarmAnswers farm = {.jobs = {job}, .workers = OneGpu()};
  const Reason reason = Only(WhyKind::kReference, job, farm);
  EXPECT_THAT(reason.text, HasSubstr("has no result yet"));
  EXPECT_THAT(reason.remedy, HasSubstr("--reference-limit, 25 s here"));
  EXPECT_THAT(reason.details, ElementsAre("outputs are compared at a sample"));
  job.mutable_spec()->mutable_options()->clear_reference_limit_s();
  EXPECT_THAT(Only(WhyKind::kReference, job, farm).remedy, HasSubstr("10 s here"));
  // Target null runs no programs.
  job.mutable_tasks(0)->mutable_spec()->set_target("null");
  farm.workers->mutable_workers(1)->add_keys("null");
  EXPECT_EQ(Only(WhyKind::kRunning, job, farm).text, "job 4f3a runs: no trial is done yet");
}

TEST(WhyTest, TheLastReadings) {
  v1::JobStatus job = Running();
  job.set_phase("measuring the 8 best candidates again");
  EXPECT_EQ(Only(WhyKind::kLastReadings, job, {.jobs = {job}, .workers = OneGpu()}).text,
            "job 4f3a is near its end: measuring the 8 best candidates again");
}

TEST(WhyTest, AJobThatRunsWell) {
  v1::JobStatus job = Running();
  job.set_busy_share_last_minute(0.93);
  job.set_phase("about 12.34 ms (15 of 24 tasks are estimates)");
  const FarmAnswers farm = {.jobs = {job}, .workers = OneGpu()};
  const Reason reason = Only(WhyKind::kRunning, job, farm);
  EXPECT_EQ(reason.text, "job 4f3a runs: 2 trials/s  measuring 93% of the last minute");
  EXPECT_THAT(reason.details, IsEmpty());
  EXPECT_EQ(EstimateText(job, farm), "ends in about 30 s");
}

TEST(WhyTest, TrialsThatFail) {
  v1::JobStatus job = Running();
  (*job.mutable_error_counts())[v1::WRONG_ANSWER_ERROR] = 20;
  const FarmAnswers farm = {.jobs = {job}, .workers = OneGpu()};
  const std::vector<Reason> reasons = WhyOf(job, farm);
  ASSERT_THAT(Kinds(reasons), ElementsAre(WhyKind::kRunning, WhyKind::kFailing));
  EXPECT_EQ(reasons[1].text,
            "job 4f3a has done 40 trials, and at least half of them failed: 20 (20 wrong answer)");
  (*job.mutable_error_counts())[v1::WRONG_ANSWER_ERROR] = 19;
  Only(WhyKind::kRunning, job, farm);
  job.set_trials_done(7);
  (*job.mutable_error_counts())[v1::WRONG_ANSWER_ERROR] = 7;
  Only(WhyKind::kRunning, job, farm);
}

TEST(WhyTest, Json) {
  const v1::JobStatus job = Running();
  const auto json = nlohmann::json::parse(WhyJson(job, {.jobs = {job}, .workers = OneGpu()}));
  EXPECT_EQ(json["job"], "4f3a");
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["estimate"], "ends in about 30 s");
  ASSERT_EQ(json["reasons"].size(), 1u);
  EXPECT_EQ(json["reasons"][0]["kind"], "running");
  EXPECT_EQ(json["reasons"][0]["remedy"], "nothing holds it up");
  EXPECT_TRUE(json["reasons"][0]["details"].is_array());
}

TEST(WhyTest, TextsOfOthersAreNoPlaceholders) {
  EXPECT_EQ(Filled("{a} {b}", {{"a", "{b}"}, {"b", "x"}}), "{b} x");
}

TEST(WhyTest, EveryKindHasARow) {
  for (size_t i = 0; i < AllWhyWords().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(AllWhyWords()[i].kind), i);
  }
  EXPECT_EQ(AllWhyWords().back().kind, WhyKind::kRunning);
}

// Returns the words as the page has them: {job} is JOB.
std::string InDocs(std::string_view text) {
  std::string words;
  bool is_name = false;
  for (const char c : text) {
    if (c == '{' || c == '}') {
      is_name = c == '{';
    } else {
      words += is_name ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
  }
  return words;
}

TEST(WhyTest, ThePageHasTheWords) {
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("docs/operations.md"));
  for (const WhyWords& words : AllWhyWords()) {
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} |\n", words.name, InDocs(words.text),
                                            InDocs(words.remedy))));
  }
}

}  // namespace
}  // namespace kiln
