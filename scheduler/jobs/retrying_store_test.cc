#include "scheduler/jobs/retrying_store.h"

#include <functional>
#include <map>
#include <thread>

#include "base/status_testing.h"
#include "scheduler/dispatch/workers_testing.h"
#include "store/faulty_store_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

constexpr std::chrono::milliseconds kPause{1};

TEST(RetryingStoreTest, SaysWhatItWaitsForAndStops) {
  const auto store = store::NewMemoryStore();
  store::FaultyStore faulty(*store);
  std::stop_source stop;
  RetryingStore patient(faulty, "job x", stop.get_token(), kPause);
  EXPECT_EQ(patient.problem(), "");
  faulty.FailAt(0, 1'000'000, ResourceExhausted("no space left"));
  store::JobRow job;
  job.id = "j";
  Status status;
  std::thread writer([&] { status = patient.AddJob(job); });
  EXPECT_TRUE(Eventually([&] { return patient.problem() == "no space left"; }));
  stop.request_stop();
  writer.join();
  EXPECT_THAT(status, StatusIs(StatusCode::kCancelled, HasSubstr("no space left")));
  EXPECT_EQ(patient.problem(), "");
}

// Returns a call of each method of the interface, for a store with job "j", its task and record 1.
std::map<std::string, std::function<Status(store::Store&)>> AllCalls() {
  store::JobRow job;
  job.id = "k";
  store::TaskRow task;
  task.job_id = "j";
  task.index = 1;
  store::Record record;
  record.job_id = "j";
  record.trial = 1;
  record.target = "null";
  record.steps = "[]";
  record.costs_s = {1};
  store::RoundRow round;
  round.job_id = "j";
  const store::Computation computation{.id = "c", .key = "k", .dag = "d", .flop_count = 1};
  return {
      {"AddJob", [=](store::Store& s) { return s.AddJob(job); }},
      {"UpdateJobState",
       [](store::Store& s) { return s.UpdateJobState("j", store::JobState::kRunning, "", 1); }},
      {"ReopenJob", [](store::Store& s) { return s.ReopenJob("j"); }},
      {"SetProgress", [](store::Store& s) { return s.SetProgress("j", {}); }},
      {"GetJob", [](store::Store& s) { return s.GetJob("j").status(); }},
      {"ListJobs", [](store::Store& s) { return s.ListJobs(std::nullopt).status(); }},
      {"LoadUnfinishedJobs", [](store::Store& s) { return s.LoadUnfinishedJobs().status(); }},
      {"AddTasks", [=](store::Store& s) { return s.AddTasks("j", {&task, 1}); }},
      {"TasksOfJob", [](store::Store& s) { return s.TasksOfJob("j").status(); }},
      {"SetReferenceCost", [](store::Store& s) { return s.SetReferenceCost("j", 0, 1); }},
      {"SetKnownTask", [](store::Store& s) { return s.SetKnownTask("j", 0, "k", 1); }},
      {"AddRecords", [=](store::Store& s) { return s.AddRecords({&record, 1}).status(); }},
      {"ImportRecords",
       [=](store::Store& s) { return s.ImportRecords("j", {&record, 1}).status(); }},
      {"ImportAutotvmRecords",
       [](store::Store& s) {
         const store::AutotvmRecord autotvm{.target = "llvm", .task = "t", .costs_s = {1}};
         return s.ImportAutotvmRecords({&autotvm, 1}).status();
       }},
      {"DeleteAutotvmRecords",
       [](store::Store& s) {
         const int64_t id = 1;
         return s.DeleteAutotvmRecords({&id, 1}).status();
       }},
      {"GetRecord", [](store::Store& s) { return s.GetRecord(1).status(); }},
      {"RecordsOfJob", [](store::Store& s) { return s.RecordsOfJob("j", 0).status(); }},
      {"LatestRecords", [](store::Store& s) { return s.LatestRecords("null", 1).status(); }},
      {"BestOfJob", [](store::Store& s) { return s.BestOfJob("j", 0).status(); }},
      {"UnscheduledOfJob", [](store::Store& s) { return s.UnscheduledOfJob("j", 0).status(); }},
      {"CountTrials", [](store::Store& s) { return s.CountTrials("j").status(); }},
      {"SetRemeasurements",
       [](store::Store& s) {
         const store::Remeasurement remeasured{.id = 1, .costs_s = {1}, .readings = 1};
         return s.SetRemeasurements({&remeasured, 1});
       }},
      {"AddComputations", [=](store::Store& s) { return s.AddComputations({&computation, 1}); }},
      {"ComputationsOfKey", [](store::Store& s) { return s.ComputationsOfKey("k").status(); }},
      {"BindKey", [=](store::Store& s) { return s.BindKey(computation); }},
      {"BoundTo", [](store::Store& s) { return s.BoundTo("k").status(); }},
      {"BindRecords",
       [=](store::Store& s) {
         const int64_t id = 1;
         return s.BindRecords(computation, {&id, 1}).status();
       }},
      {"AddRound", [=](store::Store& s) { return s.AddRound(round).status(); }},
      {"RoundsOfJob", [](store::Store& s) { return s.RoundsOfJob("j", 0).status(); }},
      {"AddModel", [](store::Store& s) { return s.AddModel({.name = "n", .file = "b"}); }},
      {"GetModel", [](store::Store& s) { return s.GetModel("m").status(); }},
      {"Models", [](store::Store& s) { return s.Models().status(); }},
      {"DeleteModel", [](store::Store& s) { return s.DeleteModel("m"); }},
      {"PinSchedule",
       [](store::Store& s) {
         return s.PinSchedule({.workload_id = "w", .target = "llvm", .steps = "[]"});
       }},
      {"PinnedSchedules", [](store::Store& s) { return s.PinnedSchedules("").status(); }},
      {"UnpinSchedule", [](store::Store& s) { return s.UnpinSchedule("w", "llvm").status(); }},
      {"SetUserLimits", [](store::Store& s) { return s.SetUserLimits("u", {.weight = 2}); }},
      {"SetUserUses",
       [](store::Store& s) {
         const store::UserUse use{.name = "u", .device_s = 1};
         return s.SetUserUses({&use, 1});
       }},
      {"Users", [](store::Store& s) { return s.Users().status(); }},
      {"TotalsOfUser", [](store::Store& s) { return s.TotalsOfUser("u", 0, true).status(); }},
      {"AddAudit", [](store::Store& s) { return s.AddAudit({.user = "u"}, 1); }},
      {"PruneAudit", [](store::Store& s) { return s.PruneAudit(1).status(); }},
      {"Audit", [](store::Store& s) { return s.Audit("", 0, 1).status(); }},
      {"NextIncarnation", [](store::Store& s) { return s.NextIncarnation().status(); }},
      {"Read",
       [](store::Store& s) { return s.Read([](store::Store::Snapshot&) { return OkStatus(); }); }},
  };
}

// Returns a store with a job, a task, a record and a model.
std::unique_ptr<store::Store> StoreWithAJob() {
  auto store = store::NewMemoryStore();
  store::JobRow job;
  job.id = "j";
  store::TaskRow task;
  task.job_id = "j";
  store::Record record;
  record.job_id = "j";
  record.target = "null";
  record.steps = "[]";
  record.costs_s = {1};
  KILN_CHECK(store->AddJob(job, {&task, 1}).ok());
  KILN_CHECK(store->AddRecord(record).ok());
  KILN_CHECK(store->AddModel({.name = "m", .file = "b"}).ok());
  return store;
}

TEST(RetryingStoreTest, EveryCallOfTheInterfaceWaitsAlike) {
  for (const auto& [name, call] : AllCalls()) {
    SCOPED_TRACE(name);
    const auto plain = StoreWithAJob();
    ASSERT_OK(call(*plain));
    for (const Status& error : {ResourceExhausted("no space left"), Unavailable("locked")}) {
      const auto store = StoreWithAJob();
      store::FaultyStore faulty(*store);
      RetryingStore patient(faulty, "job x", {}, kPause);
      faulty.FailAt(0, 4, error);
      EXPECT_FALSE(faulty.SetProgress("j", {}).ok()) << "the outage begins with a write";
      EXPECT_OK(call(patient));
      EXPECT_EQ(faulty.failed(), 4);
    }
  }
}

TEST(RetryingStoreTest, ReadsWaitToo) {
  const auto store = store::NewMemoryStore();
  store::FaultyStore faulty(*store);
  RetryingStore patient(faulty, "job x", {}, kPause);
  store::JobRow job;
  job.id = "j";
  faulty.FailAt(0, 3, Unavailable("I/O error"));
  ASSERT_OK(patient.AddJob(job));
  EXPECT_EQ(faulty.failed(), 3);
  EXPECT_THAT(patient.AddJob(job), StatusIs(StatusCode::kAlreadyExists, testing::_));
  faulty.FailAt(0, 2, Unavailable("I/O error"));
  EXPECT_FALSE(faulty.AddJob(job).ok());
  ASSERT_OK_AND_ASSIGN(const auto jobs, patient.ListJobs(std::nullopt));
  EXPECT_EQ(jobs.size(), 1u);
  EXPECT_EQ(faulty.failed(), 2);
}

}  // namespace
}  // namespace kiln::scheduler
