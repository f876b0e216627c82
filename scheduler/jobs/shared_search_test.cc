#include "scheduler/jobs/shared_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/status_testing.h"
#include "scheduler/jobs/known_tasks.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using search::TunedBy;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kDevice[] = "a device";

// A job "mine" of two tasks and 20 trials, and other jobs that may tune them.
class SharedSearchTest : public testing::Test {
 protected:
  void SetUp() override {
    v1::JobSpec spec = TestJob(20);
    *spec.add_tasks() = TestTask(32);
    ASSERT_OK_AND_ASSIGN(job_, CheckJobSpec(spec));
    for (const CheckedTask& task : job_.tasks)
      tasks_.emplace_back(task.dag, task.target, target::HardwareParams{}, task.workload_key);
    start_.of_tasks.resize(2);
    AddJob("mine");
    AddJob("other");
  }

  void AddJob(const std::string& id) {
    std::vector<store::TaskRow> rows(2);
    for (uint32_t i = 0; i < rows.size(); ++i) {
      rows[i].index = i;
      rows[i].workload_id = job_.tasks[i].workload_id;
      rows[i].workload_key = job_.tasks[i].workload_key;
      rows[i].dag = job_.spec.tasks(static_cast<int>(i)).dag();
      rows[i].target = "null";
    }
    store::JobRow row;
    row.id = id;
    row.spec = job_.spec.SerializeAsString();
    ASSERT_OK(store_->AddJob(row, rows));
    ASSERT_OK(store_->UpdateJobState(id, store::JobState::kRunning, "", 1));
  }

  // Adds a trial of a task. Its schedule is one of its own.
  void AddTrial(const std::string& id, uint32_t task, uint32_t trial, double cost_s,
                const std::string& device = kDevice) {
    store::Record record;
    record.job_id = id;
    record.trial = trial;
    record.task_index = task;
    record.workload_id = job_.tasks[task].workload_id;
    record.workload_key = job_.tasks[task].workload_key;
    record.dag = job_.spec.tasks(static_cast<int>(task)).dag();
    record.target = "null";
    record.device = device;
    record.steps = fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", trial + 1);
    record.error = cost_s > 0 ? store::kNoError : 4;
    if (cost_s > 0) record.costs_s = {cost_s};
    ASSERT_OK(store_->AddRecord(record).status());
  }

  std::unique_ptr<SharedSearch> Begin(std::vector<std::string> tuners_before = {}) {
    auto rows = store_->TasksOfJob("mine");
    EXPECT_OK(rows);
    return std::make_unique<SharedSearch>(
        SharedSearch::Job{.id = "mine",
                          .job = &job_,
                          .tasks = tasks_,
                          .device = kDevice,
                          .tuners = &tuners_,
                          .rows = *rows,
                          .tuners_before = std::move(tuners_before)},
        start_, *store_,
        [this](std::vector<LiveStatus::Known> known, std::vector<std::string> tuned_by) {
          known_ = std::move(known);
          tuned_by_ = std::move(tuned_by);
        });
  }

  // Returns the costs of the known results, by task.
  static std::vector<std::pair<int, double>> CostsOf(const search::NewsOfOthers& news) {
    std::vector<std::pair<int, double>> costs;
    for (const search::KnownResult& result : news.results)
      costs.emplace_back(result.task, result.observation.cost_s);
    return costs;
  }

  search::NewsOfOthers Take(SharedSearch& search) {
    auto news = search.Take();
    EXPECT_OK(news);
    return *std::move(news);
  }

  CheckedJob job_;
  std::vector<search::Task> tasks_;
  WarmStart start_;
  TaskTuners tuners_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  std::vector<LiveStatus::Known> known_;
  std::vector<std::string> tuned_by_;
};

TEST_F(SharedSearchTest, AJobAloneTunesAllItsTasks) {
  const auto search = Begin();
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kThisSearch, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 20u);
  EXPECT_THAT(news.results, IsEmpty());
  EXPECT_THAT(search->held(), ElementsAre(false, false));
}

TEST_F(SharedSearchTest, TheResultsOfTheOtherJobComeOnce) {
  AddTrial("other", 0, 0, 3e-3);
  AddTrial("other", 1, 1, 1e-3);  // another task
  AddTrial("other", 0, 3, 1e-3, "another device");
  tuners_.Set({"other", ""});
  const auto search = Begin();
  search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kOthers, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 10u) << "half of them are kept for the held task";
  EXPECT_THAT(CostsOf(news), ElementsAre(std::pair(0, 3e-3)));
  EXPECT_TRUE(news.results[0].is_new);
  EXPECT_THAT(tuned_by_, ElementsAre("other", ""));
  // Results come in any order.
  AddTrial("other", 0, 5, 2e-3);
  AddTrial("other", 0, 2, 0);
  news = Take(*search);
  EXPECT_THAT(CostsOf(news), ElementsAre(std::pair(0, 0.0), std::pair(0, 2e-3)));
  EXPECT_FALSE(news.results[0].observation.valid);
  EXPECT_EQ(known_[0].states, 3u);
  ASSERT_TRUE(known_[0].best.has_value());
  EXPECT_EQ(known_[0].best->cost_s, 2e-3);
  EXPECT_THAT(Take(*search).results, IsEmpty());
  // The store knows whose results the task has.
  ASSERT_OK_AND_ASSIGN(const auto rows, store_->TasksOfJob("mine"));
  EXPECT_EQ(rows[0].known_job, "other");
  EXPECT_EQ(rows[0].known_trials, 0u);
  EXPECT_EQ(KnownRemark(rows), "");
}

TEST_F(SharedSearchTest, TheTrialsOfAJobThatSucceedsCount) {
  for (uint32_t trial = 0; trial < 15; ++trial) AddTrial("other", 0, trial, 1e-3 + 1e-5 * trial);
  tuners_.Set({"other", ""});
  const auto search = Begin();
  EXPECT_EQ(Take(*search).results.size(), 15u);
  AddTrial("other", 0, 15, 5e-4);
  ASSERT_OK(store_->UpdateJobState("other", store::JobState::kSucceeded, "", 2));
  tuners_.Set({"", ""});
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(CostsOf(news), ElementsAre(std::pair(0, 5e-4))) << "the last results come, too";
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kNobody, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 10u);
  EXPECT_THAT(tuned_by_, ElementsAre("", ""));
  ASSERT_OK_AND_ASSIGN(const auto rows, store_->TasksOfJob("mine"));
  EXPECT_EQ(KnownRemark(rows), "known: 10 trials of job other");
  // A later run knows the best of it from the start.
  const auto later = Begin();
  const search::NewsOfOthers again = Take(*later);
  EXPECT_THAT(CostsOf(again), ElementsAre(std::pair(0, 5e-4)));
  EXPECT_FALSE(again.results[0].is_new);
  EXPECT_THAT(again.tuned_by, ElementsAre(TunedBy::kNobody, TunedBy::kThisSearch));
  EXPECT_EQ(again.trials, 10u);
}

// The other job still ran when it was looked up what is known, and has ended since.
TEST_F(SharedSearchTest, TheTrialsOfAJobThatSucceedsBeforeTheSearchBeginsCount) {
  for (uint32_t trial = 0; trial < 15; ++trial) AddTrial("other", 0, trial, 1e-3 + 1e-5 * trial);
  tuners_.Set({"", ""});
  const auto search = Begin({"other", ""});
  ASSERT_OK(store_->UpdateJobState("other", store::JobState::kSucceeded, "", 2));
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(CostsOf(news), ElementsAre(std::pair(0, 1e-3)));
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kNobody, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 10u);
  ASSERT_OK_AND_ASSIGN(const auto rows, store_->TasksOfJob("mine"));
  EXPECT_EQ(KnownRemark(rows), "known: 10 trials of job other");
}

TEST_F(SharedSearchTest, FewTrialsOfAJobThatSucceedsAreAddedTo) {
  for (uint32_t trial = 0; trial < 3; ++trial) AddTrial("other", 0, trial, 1e-3);
  tuners_.Set({"other", ""});
  const auto search = Begin();
  EXPECT_EQ(Take(*search).trials, 10u);
  ASSERT_OK(store_->UpdateJobState("other", store::JobState::kSucceeded, "", 2));
  tuners_.Set({"", ""});
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kThisSearch, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 17u);
}

TEST_F(SharedSearchTest, ATaskOfAJobThatEndsOtherwiseIsTunedHere) {
  for (uint32_t trial = 0; trial < 15; ++trial) AddTrial("other", 0, trial, 1e-3);
  tuners_.Set({"other", ""});
  const auto search = Begin();
  Take(*search);
  EXPECT_THAT(search->held(), ElementsAre(true, false));
  ASSERT_OK(store_->UpdateJobState("other", store::JobState::kCancelled, "", 2));
  tuners_.Set({"", ""});
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kThisSearch, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 20u);
  EXPECT_THAT(search->held(), ElementsAre(false, false));
  ASSERT_OK_AND_ASSIGN(const auto rows, store_->TasksOfJob("mine"));
  EXPECT_EQ(rows[0].known_job, "other") << "its results stay known";
}

TEST_F(SharedSearchTest, AnotherJobMayTakeTheTaskOver) {
  AddJob("urgent");
  AddTrial("other", 0, 0, 2e-3);
  AddTrial("urgent", 0, 0, 1e-3);
  tuners_.Set({"other", ""});
  const auto search = Begin();
  Take(*search);
  tuners_.Set({"urgent", ""});
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(CostsOf(news), ElementsAre(std::pair(0, 1e-3)));
  EXPECT_FALSE(news.results[0].is_new) << "the other job has measured the same candidate";
  EXPECT_THAT(tuned_by_, ElementsAre("urgent", ""));
  EXPECT_EQ(news.trials, 10u);
}

TEST_F(SharedSearchTest, IfEnoughOfAllIsKnownTheLastTrialsAreForAnyTask) {
  AddTrial("other", 0, 0, 1e-3);
  ASSERT_OK(store_->SetKnownTask("mine", 0, "other", 10));
  ASSERT_OK(store_->SetKnownTask("mine", 1, "other", 10));
  job_.spec.mutable_options()->set_trials(21);
  const auto search = Begin();
  const search::NewsOfOthers news = Take(*search);
  EXPECT_THAT(news.tuned_by, ElementsAre(TunedBy::kThisSearch, TunedBy::kThisSearch));
  EXPECT_EQ(news.trials, 1u);
}

TEST_F(SharedSearchTest, WhatTheJobKnewBeforeIsNotNew) {
  AddTrial("other", 0, 0, 1e-3);
  AddTrial("other", 0, 1, 2e-3);
  auto first = search::ParseCandidate(R"([["SP", 2, 0, 512, [1], 1]])");
  ASSERT_OK(first);
  start_.of_tasks[0].avoid = {first->hash};
  tuners_.Set({"other", ""});
  const auto search = Begin();
  const search::NewsOfOthers news = Take(*search);
  ASSERT_EQ(news.results.size(), 2u);
  EXPECT_FALSE(news.results[0].is_new);
  EXPECT_TRUE(news.results[1].is_new);
}

}  // namespace
}  // namespace kiln::scheduler
