#include "scheduler/jobs/known_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/status_testing.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;

constexpr char kDevice[] = "a device";

class KnownTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    v1::JobSpec spec = TestJob(20);
    *spec.add_tasks() = TestTask(32);
    ASSERT_OK_AND_ASSIGN(job_, CheckJobSpec(spec));
    for (const CheckedTask& task : job_.tasks)
      tasks_.emplace_back(task.dag, task.target, target::HardwareParams{}, task.workload_key);
  }

  // Adds a job with trials of the first `trials.size()` tasks.
  void Add(const std::string& id, std::vector<int> trials, const std::string& device = kDevice,
           store::JobState state = store::JobState::kSucceeded) {
    v1::JobSpec spec = job_.spec;
    while (static_cast<size_t>(spec.tasks_size()) > trials.size())
      spec.mutable_tasks()->RemoveLast();
    store::JobRow row;
    row.id = id;
    row.spec = spec.SerializeAsString();
    std::vector<store::TaskRow> rows(trials.size());
    for (uint32_t i = 0; i < rows.size(); ++i) {
      rows[i].index = i;
      rows[i].workload_id = job_.tasks[i].workload_id;
      rows[i].workload_key = job_.tasks[i].workload_key;
      rows[i].dag = spec.tasks(static_cast<int>(i)).dag();
      rows[i].target = "null";
    }
    ASSERT_OK(store_->AddJob(row, rows));
    store::Record record;
    record.job_id = id;
    record.target = "null";
    record.device = device;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      record.task_index = i;
      record.workload_id = rows[i].workload_id;
      record.workload_key = rows[i].workload_key;
      record.dag = rows[i].dag;
      for (int n = 0; n < trials[i]; ++n) {
        record.steps = fmt::format("[{}]", record.trial);
        record.error = n % 3 == 2 ? 4 : 0;  // a failed trial is one, too
        record.costs_s = record.error == 0 ? std::vector<double>{1e-3} : std::vector<double>{};
        ASSERT_OK(store_->AddRecord(record).status());
        ++record.trial;
      }
    }
    ASSERT_OK(store_->UpdateJobState(id, store::JobState::kRunning, "", 1));
    if (state == store::JobState::kRunning) return;
    ASSERT_OK(store_->UpdateJobState(id, state, "", 2));
  }

  // Returns the known jobs and trials of each task.
  std::vector<std::string> Known() {
    const auto known = FindKnownTasks("asked", job_, tasks_, kDevice, *store_);
    EXPECT_OK(known);
    std::vector<std::string> texts;
    for (const KnownTask& task : *known)
      texts.push_back(fmt::format("{} {}", task.job_id, task.trials));
    return texts;
  }

  CheckedJob job_;
  std::vector<search::Task> tasks_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
};

TEST_F(KnownTasksTest, NothingIsKnownOfANewTask) { EXPECT_THAT(Known(), ElementsAre(" 0", " 0")); }

TEST_F(KnownTasksTest, IfAllTasksAreKnownAllTheirTrialsCount) {
  Add("small", {3, 3});
  Add("large", {14, 2});
  EXPECT_THAT(Known(), ElementsAre("large 14", "small 3"));
}

TEST_F(KnownTasksTest, OtherwiseATaskCountsForItsShare) {
  Add("one", {14});
  EXPECT_THAT(Known(), ElementsAre("one 10", " 0"));
}

TEST_F(KnownTasksTest, OnlyJobsThatSucceededOnSuchADeviceCount) {
  Add("cancelled", {5, 5}, kDevice, store::JobState::kCancelled);
  Add("running", {5, 5}, kDevice, store::JobState::kRunning);
  Add("elsewhere", {5, 5}, "another device");
  Add("asked", {5, 5}, kDevice);
  EXPECT_THAT(Known(), ElementsAre(" 0", " 0"));
  job_.spec.mutable_options()->set_seed(8);
  Add("seeded", {5, 5});
  job_.spec.mutable_options()->set_seed(7);
  EXPECT_THAT(Known(), ElementsAre(" 0", " 0")) << "it searched in another way";
  Add("alike", {5, 5});
  EXPECT_THAT(Known(), ElementsAre("alike 5", "alike 5"));
}

TEST_F(KnownTasksTest, WhatIsKnownIsKeptOnce) {
  Add("asked", {0, 0}, kDevice, store::JobState::kRunning);
  ASSERT_OK_AND_ASSIGN(std::vector<store::TaskRow> rows, store_->TasksOfJob("asked"));
  EXPECT_EQ(KnownRemark(rows), "");
  const std::vector<KnownTask> known = {{"a", 12}, {}}, later = {{"b", 50}, {"c", 1}};
  ASSERT_OK(KeepKnownTasks(known, rows, *store_));
  EXPECT_EQ(KnownRemark(rows), "known: 12 trials of job a");
  ASSERT_OK(KeepKnownTasks(later, rows, *store_));
  EXPECT_EQ(KnownTrials(rows), 13u);
  EXPECT_EQ(KnownRemark(rows), "known: 13 trials of jobs a, c");
  ASSERT_OK_AND_ASSIGN(const auto kept, store_->TasksOfJob("asked"));
  EXPECT_EQ(KnownRemark(kept), KnownRemark(rows));
}

}  // namespace
}  // namespace kiln::scheduler
