#include "scheduler/jobs/shared_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/numbers/rng.h"
#include "scheduler/values/job_testing.h"

namespace kiln::scheduler {
namespace {

using testing::Each;
using testing::ElementsAre;

std::string KeyOf(const v1::JobSpec& spec) { return TaskKeysOf(spec).at(0); }

TEST(SharedTasks, HowLongAJobSearchesDoesNotMatter) {
  const v1::JobSpec spec = TestJob(64);
  v1::JobSpec other = TestJob(1000);
  other.set_user("bob");
  other.set_name("another name");
  other.set_priority(3);
  other.set_request_id("r");
  other.mutable_tasks(0)->set_weight(7);
  other.mutable_tasks(0)->set_description("a product");
  other.mutable_options()->set_early_stopping(5);
  other.mutable_options()->set_time_budget_s(60);
  other.mutable_options()->set_trials_per_round(3);
  other.mutable_options()->mutable_measure()->set_timeout_ms(9);
  EXPECT_EQ(KeyOf(spec), KeyOf(other));
  *other.add_tasks() = TestTask(32);
  EXPECT_EQ(TaskKeysOf(other)[0], KeyOf(spec));
  EXPECT_NE(TaskKeysOf(other)[1], KeyOf(spec));
}

TEST(SharedTasks, WhatIsMeasuredAndHowItIsSearchedDoes) {
  std::set<std::string> keys = {KeyOf(TestJob(64))};
  const auto add = [&](const auto& change) {
    v1::JobSpec spec = TestJob(64);
    change(spec);
    EXPECT_TRUE(keys.insert(KeyOf(spec)).second) << spec.ShortDebugString();
  };
  add([](v1::JobSpec& spec) { *spec.mutable_tasks(0) = TestTask(32); });
  add([](v1::JobSpec& spec) { spec.mutable_tasks(0)->set_target("llvm"); });
  add([](v1::JobSpec& spec) { spec.set_device("NVIDIA H200"); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->set_seed(8); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->set_policy("sketch.xgb"); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->set_finalists(-1); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->mutable_tolerance()->set_relative(1); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->mutable_measure()->set_flush_cache(true); });
  add([](v1::JobSpec& spec) {
    spec.mutable_options()->mutable_measure()->set_single_launches(true);
  });
  add([](v1::JobSpec& spec) { (*spec.mutable_options()->mutable_policy_parameters())["a"] = 1; });
}

TEST(SharedTasks, TheOrderOfParametersDoesNotMatter) {
  v1::JobSpec spec = TestJob(64), other = TestJob(64);
  for (int i = 0; i < 50; ++i) {
    (*spec.mutable_options()->mutable_policy_parameters())["p" + std::to_string(i)] = i;
    (*other.mutable_options()->mutable_policy_parameters())["p" + std::to_string(49 - i)] = 49 - i;
  }
  EXPECT_EQ(KeyOf(spec), KeyOf(other));
}

TEST(SharedTasks, SomeJobsTuneByThemselvesInAnyCase) {
  const auto keys_of = [](const auto& change) {
    v1::JobSpec spec = TestJob(64);
    *spec.add_tasks() = TestTask(32);
    change(spec);
    return TaskKeysOf(spec);
  };
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { s.mutable_options()->set_no_warm_start(true); }),
              ElementsAre("", ""));
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { s.mutable_options()->set_calibrate(true); }), Each(""));
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { s.mutable_served()->set_objective(true); }), Each(""));
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { (*s.mutable_options()->mutable_faults())[3] = 1; }),
              Each(""));
  EXPECT_THAT(keys_of([](v1::JobSpec&) {}), Each(testing::Ne("")));
}

TEST(SharedTasks, TheFirstJobTunesUnlessItIsLessUrgent) {
  TunedTasks tuned;
  tuned.Add("second", {.priority = 0, .turn = 2}, {"b", "c"});
  tuned.Add("first", {.priority = 0, .turn = 1}, {"a", "b", ""});
  tuned.Add("urgent", {.priority = 5, .turn = 3}, {"b"});
  EXPECT_THAT(tuned.TunersOf({"a", "b", "c", "d", ""}, {.priority = 0}),
              ElementsAre("first", "urgent", "second", "", ""));
  EXPECT_THAT(tuned.TunersOf({"a", "b"}, {.priority = 5, .turn = 4}), ElementsAre("", "urgent"));
  EXPECT_THAT(tuned.TunersOf({"b"}, {.priority = 6}), ElementsAre(""));
  // Jobs do not wait for themselves, or for later ones.
  EXPECT_THAT(tuned.TunersOf({"b", "c"}, {.priority = 0, .turn = 2}), ElementsAre("urgent", ""));
  EXPECT_THAT(tuned.TunersOf({"b"}, {.priority = 5, .turn = 3}), ElementsAre(""));
}

TEST(SharedTasks, AJobOnAnotherDeviceTunesAnotherTask) {
  TunedTasks tuned;
  tuned.Add("x", {.turn = 1, .device = "X"}, {"a"});
  tuned.Add("y", {.turn = 2, .device = "Y"}, {"a"});
  tuned.Add("waits", {.turn = 3}, {"a"});
  EXPECT_THAT(tuned.TunersOf({"a"}, {.turn = 4, .device = "X"}), ElementsAre("x"));
  EXPECT_THAT(tuned.TunersOf({"a"}, {.turn = 4, .device = "Y"}), ElementsAre("y"));
  EXPECT_THAT(tuned.TunersOf({"a"}, {.turn = 4, .device = "Z"}), ElementsAre("waits"));
  EXPECT_THAT(tuned.TunersOf({"a"}, {.turn = 4}), ElementsAre("x"));
}

// A job of a simulated scheduler.
struct SimulatedJob {
  std::string id;
  JobPlace place;
  TaskKeys keys;
  bool ended = false;
};

TunedTasks TasksOf(const std::vector<SimulatedJob>& jobs) {
  TunedTasks tuned;
  for (const SimulatedJob& job : jobs) {
    if (!job.ended && job.place.turn != kNoTurn) tuned.Add(job.id, job.place, job.keys);
  }
  return tuned;
}

std::vector<SimulatedJob> RandomJobs(Rng& rng) {
  std::vector<SimulatedJob> jobs(static_cast<size_t>(UniformIn(rng, 2, 11)));
  std::vector<uint64_t> turns;
  for (size_t i = 0; i < jobs.size(); ++i) turns.push_back(i + 1);
  Shuffle(rng, turns);
  for (size_t i = 0; i < jobs.size(); ++i) {
    SimulatedJob& job = jobs[i];
    job.id = fmt::format("j{}", i);
    job.place.priority = static_cast<int32_t>(UniformInt(rng, 3));
    if (Chance(rng, 0.75)) job.place.turn = turns[i];
    job.place.device = PickFrom(rng, std::vector<std::string>{"", "X", "Y"});
    for (int64_t task = UniformIn(rng, 1, 5); task > 0; --task)
      job.keys.push_back(Chance(rng, 0.1) ? "" : fmt::format("t{}", UniformInt(rng, 7)));
  }
  return jobs;
}

// Each job waits for earlier ones alone, so some job waits for none, whichever have ended.
TEST(SharedTasks, NoJobsWaitForEachOther) {
  Rng rng(20261129);
  for (int round = 0; round < 500; ++round) {
    std::vector<SimulatedJob> jobs = RandomJobs(rng);
    for (size_t left = jobs.size(); left > 0; --left) {
      const TunedTasks tuned = TasksOf(jobs);
      std::vector<SimulatedJob*> free;
      for (SimulatedJob& job : jobs) {
        if (job.ended) continue;
        const std::vector<std::string> tuners = tuned.TunersOf(job.keys, job.place);
        for (const std::string& tuner : tuners) {
          const auto other = std::ranges::find(jobs, tuner, &SimulatedJob::id);
          if (tuner.empty()) continue;
          ASSERT_TRUE(other != jobs.end() && !other->ended) << tuner;
          ASSERT_TRUE(IsBefore(other->place, job.place)) << tuner;
        }
        if (std::ranges::all_of(tuners, &std::string::empty)) free.push_back(&job);
      }
      ASSERT_FALSE(free.empty()) << "round " << round << ": all jobs wait";
      PickFrom(rng, free)->ended = true;
    }
  }
}

// If all jobs have begun and have one device, each task has one tuner.
TEST(SharedTasks, EachTaskHasOneTuner) {
  Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<SimulatedJob> jobs = RandomJobs(rng);
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].place.device = "X";
      if (jobs[i].place.turn == kNoTurn) jobs[i].place.turn = 100 + i;
    }
    const TunedTasks tuned = TasksOf(jobs);
    std::map<std::string, std::set<std::string>> tuners_of;
    for (const SimulatedJob& job : jobs) {
      const std::vector<std::string> tuners = tuned.TunersOf(job.keys, job.place);
      for (size_t i = 0; i < tuners.size(); ++i) {
        if (!job.keys[i].empty())
          tuners_of[job.keys[i]].insert(tuners[i].empty() ? job.id : tuners[i]);
      }
    }
    for (const auto& [key, tuners] : tuners_of) EXPECT_EQ(tuners.size(), 1u) << key;
  }
}

TEST(SharedTasks, AJobWaitsIfNothingIsLeftToDo) {
  EXPECT_TRUE(WaitsForAll({"a", "b"}, {"j", "k"}));
  EXPECT_FALSE(WaitsForAll({"a", "b"}, {"j", ""}));
  EXPECT_TRUE(WaitsForAll({"a", ""}, {"j", ""})) << "the second task is done";
  EXPECT_FALSE(WaitsForAll({"", ""}, {"", ""}));
  EXPECT_FALSE(WaitsForAll({}, {}));
  EXPECT_THAT(AwaitedBeforeBegin({"a", "b"}), ElementsAre("a", "b"));
  EXPECT_THAT(AwaitedBeforeBegin({"a", ""}), ElementsAre("", ""));
  EXPECT_EQ(WaitPhase({"j"}), "waits for the results of job j, which tunes the same task");
  EXPECT_EQ(WaitPhase({"j", ""}), "waits for the results of job j, which tunes the same task");
  EXPECT_EQ(WaitPhase({"j", "j"}), "waits for the results of job j, which tunes the same tasks");
  EXPECT_EQ(WaitPhase({"k", "j"}), "waits for the results of jobs j, k, which tune the same tasks");
}

}  // namespace
}  // namespace kiln::scheduler
