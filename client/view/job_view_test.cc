#include "client/view/job_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Returns an event of a job with one task of 2e9 FLOPs, whose unscheduled loops take 10 ms.
v1::JobEvent Event(uint32_t trials_done, double best_s) {
  v1::JobEvent event;
  v1::JobStatus& job = *event.mutable_status();
  job.set_id("4f3a");
  job.set_state(v1::RUNNING);
  job.set_trials_done(trials_done);
  job.set_elapsed_s(trials_done);
  job.mutable_spec()->mutable_options()->set_trials(100);
  v1::TaskStatus& task = *job.add_tasks();
  task.mutable_spec()->set_description("matmul 1000,1000,1000");
  task.mutable_spec()->set_weight(1);
  task.set_flop_count(2e9);
  task.set_trials(trials_done);
  task.set_best_cost_s(best_s);
  task.set_reference_cost_s(10e-3);
  return event;
}

v1::JobEvent Trial(uint32_t trial, double cost_s, double best_s) {
  v1::JobEvent event = Event(trial + 1, best_s);
  v1::Record& record = *event.mutable_record();
  record.set_trial(trial);
  record.set_flop_count(2e9);
  record.mutable_result()->add_costs_s(cost_s);
  return event;
}

v1::JobEvent FailedTrial(uint32_t trial, v1::ErrorKind kind) {
  v1::JobEvent event = Event(trial + 1, 0);
  event.mutable_record()->set_trial(trial);
  event.mutable_record()->mutable_result()->set_error(kind);
  event.mutable_record()->mutable_result()->set_message("element 7 is 3, expected 4\nmore");
  (*event.mutable_status()->mutable_error_counts())[kind] = 1;
  return event;
}

// The direct variant takes 2 ms, the other variant 1 ms, and another task 8 ms.
v1::JobEvent EventOfVariants() {
  v1::JobEvent event = Event(10, 2e-3);
  v1::TaskStatus& other = *event.mutable_status()->add_tasks();
  other.mutable_spec()->set_alternative_of(0);
  other.mutable_spec()->set_variant("winograd F(2,3)");
  other.mutable_spec()->set_weight(1);
  other.set_best_cost_s(1e-3);
  v1::TaskStatus& last = *event.mutable_status()->add_tasks();
  last.mutable_spec()->set_description("softmax 8,8");
  last.mutable_spec()->set_weight(1);
  last.set_best_cost_s(8e-3);
  return event;
}

// Returns the frame of a terminal that cuts nothing off.
JobView::Frame At(int number, double since_event_s) {
  return {.columns = 200, .rows = 50, .number = number, .since_event_s = since_event_s};
}

TEST(JobViewTest, OfVariantsTheFasterOneCounts) {
  v1::JobEvent event = EventOfVariants();
  JobView view;
  EXPECT_THAT(view.Observe(event), ElementsAre(HasSubstr("total latency 9.000 ms")));
  const auto lines = view.Lines(At(0, 0));
  EXPECT_THAT(
      lines, testing::Contains(AllOf(HasSubstr("1    or winograd F(2,3)"), HasSubstr("1.000 ms"))));
  v1::TuneOptions& options = *event.mutable_status()->mutable_spec()->mutable_options();
  options.set_objective("max");
  EXPECT_THAT(JobView().Observe(event), ElementsAre(HasSubstr("largest latency 8.000 ms")));
  options.set_objective("geometric-mean");
  EXPECT_THAT(JobView().Observe(event), ElementsAre(HasSubstr("mean latency 2.828 ms")));
  event.mutable_status()->mutable_tasks(2)->set_best_cost_s(0);
  EXPECT_THAT(JobView().Observe(event), ElementsAre(HasSubstr("mean latency -")));
}

TEST(JobViewTest, VariantsInWords) {
  v1::JobStatus job = EventOfVariants().status();
  EXPECT_EQ(VariantGroupsOf(job), (std::vector<std::vector<int>>{{0, 1}, {2}}));
  EXPECT_EQ(VariantText(job, VariantsOf(job, 1)),
            "winograd F(2,3): 2.00x faster than direct (2.000 ms)");
  EXPECT_EQ(VariantText(job, VariantsOf(job, 2)), "");
  job.mutable_tasks(1)->set_best_cost_s(0);
  EXPECT_EQ(VariantText(job, VariantsOf(job, 1)), "direct: winograd F(2,3) has no result");
  EXPECT_EQ(Fastest(job, VariantsOf(job, 1)), 0);
}

TEST(JobViewTest, WhatEarlierJobsFoundIsSaidOnceAndKept) {
  JobView view;
  v1::JobEvent event = Event(0, 0);
  v1::TaskStatus& task = *event.mutable_status()->mutable_tasks(0);
  task.set_known_states(120);
  task.set_known_cost_s(12.8e-6);
  task.set_known_record_id(17);
  EXPECT_THAT(view.Observe(event),
              ElementsAre("120 states are known of earlier jobs, the best 12.80 us (record 17)"));
  EXPECT_THAT(view.Observe(event), IsEmpty());
  // The status of an ended job has no results of earlier jobs.
  v1::JobEvent end = Event(100, 2e-3);
  end.mutable_status()->set_state(v1::SUCCEEDED);
  view.Observe(end);
  EXPECT_EQ(view.status().tasks(0).known_states(), 120u);
  EXPECT_EQ(view.status().tasks(0).known_record_id(), 17);
  EXPECT_EQ(view.status().tasks(0).known_cost_s(), 12.8e-6);
}

TEST(JobViewTest, ANoticeIsSaidOnce) {
  JobView view;
  v1::JobEvent event = Event(0, 0);
  event.mutable_status()->add_notices("matmul: answers are compared at 100 elements");
  EXPECT_THAT(view.Observe(event), ElementsAre("matmul: answers are compared at 100 elements"));
  EXPECT_THAT(view.TakeNotices(), SizeIs(1));
  EXPECT_THAT(view.TakeNotices(), IsEmpty());
  EXPECT_THAT(view.Observe(event), IsEmpty());
  // The status of an ended job has no notices.
  EXPECT_THAT(view.Observe(Event(0, 0)), IsEmpty());
  EXPECT_THAT(view.Observe(event), IsEmpty());
}

TEST(JobViewTest, AnImprovementIsALineAndASlowerTrialIsNot) {
  JobView view;
  EXPECT_THAT(view.Observe(Trial(0, 2e-3, 2e-3)),
              ElementsAre(AllOf(HasSubstr("trial    0"), HasSubstr("2.000 ms"),
                                HasSubstr("1.000 TFLOP/s"), HasSubstr("5.00x over"))));
  EXPECT_THAT(view.Observe(Trial(1, 3e-3, 2e-3)), IsEmpty());
  v1::JobEvent unscheduled = Trial(2, 1.9e-3, 1.9e-3);
  unscheduled.mutable_record()->set_id(3);
  unscheduled.mutable_status()->mutable_tasks(0)->set_reference_record_id(3);
  EXPECT_THAT(view.Observe(unscheduled), ElementsAre(HasSubstr("FLOP/s  the unscheduled loops")));
  EXPECT_THAT(view.Observe(Trial(2, 1e-3, 1e-3)), ElementsAre(HasSubstr("10.0x over")));
}

TEST(JobViewTest, ATrialStoppedEarlyIsNoImprovement) {
  JobView view;
  v1::JobEvent event = Trial(0, 1e-3, 0);
  event.mutable_record()->mutable_result()->set_stopped_early(true);
  EXPECT_THAT(view.Observe(event), IsEmpty());
}

TEST(JobViewTest, TheFirstFailureOfAKindIsALine) {
  JobView view;
  EXPECT_THAT(view.Observe(FailedTrial(0, v1::WRONG_ANSWER_ERROR)),
              ElementsAre("trial    0  wrong answer: element 7 is 3, expected 4"));
  EXPECT_THAT(view.Observe(FailedTrial(1, v1::WRONG_ANSWER_ERROR)), IsEmpty());
  EXPECT_THAT(view.Observe(FailedTrial(2, v1::RUN_TIMEOUT_ERROR)), SizeIs(1));
}

TEST(JobViewTest, EveryTenthOfTheTrialsIsALine) {
  JobView view;
  int lines = 0;
  for (uint32_t trial = 0; trial < 100; ++trial) {
    for (const std::string& line : view.Observe(Trial(trial, 1, 1))) {
      lines += line.find("trials ") != std::string::npos;
    }
  }
  EXPECT_EQ(lines, 10);
}

TEST(JobViewTest, TheEndIsALineOnce) {
  JobView view;
  view.Observe(Trial(94, 1, 1));
  v1::JobEvent event = Event(97, 1);
  event.mutable_status()->set_state(v1::CANCELLED);
  EXPECT_THAT(view.Observe(event), ElementsAre(HasSubstr("trials 97/100")));
  EXPECT_THAT(view.Observe(event), IsEmpty());
}

TEST(JobViewTest, AWaitForAnotherJobIsSaidOnce) {
  JobView view;
  v1::JobEvent event = Event(0, 0);
  event.mutable_status()->set_state(v1::QUEUED);
  event.mutable_status()->mutable_tasks(0)->set_tuned_by_job("aaaa");
  event.mutable_status()->set_phase("waits for the results of job aaaa");
  EXPECT_THAT(view.Observe(event), ElementsAre("waits for the results of job aaaa"));
  EXPECT_THAT(view.Observe(event), IsEmpty());
  EXPECT_THAT(view.LastLines({}), testing::Contains(HasSubstr("the results of job aaaa")));
}

TEST(JobViewTest, ATaskThatAnotherJobTunesIsSaidOnce) {
  JobView view;
  v1::JobEvent event = Event(0, 0);
  v1::TaskStatus& task = *event.mutable_status()->mutable_tasks(0);
  task.set_tuned_by_job("aaaa");
  task.set_known_states(3);
  EXPECT_THAT(view.Observe(event), ElementsAre(AllOf(HasSubstr("job aaaa tunes "),
                                                     HasSubstr(": its results are taken"))));
  EXPECT_THAT(view.Observe(event), IsEmpty());
  task.set_tuned_by_job("bbbb");
  EXPECT_THAT(view.Observe(event), ElementsAre(HasSubstr("job bbbb tunes ")));
}

TEST(JobViewTest, ALongWaitIsSaidOnce) {
  JobView view;
  v1::JobEvent event = Event(0, 0);
  event.mutable_status()->set_waiting_for_workers(1);
  EXPECT_THAT(view.Observe(event), IsEmpty()) << "of no time yet";
  event.mutable_status()->set_elapsed_s(5);
  event.mutable_status()->set_message("no runner serves 'llvm'");
  EXPECT_THAT(view.Observe(event), ElementsAre("waiting for workers: no runner serves 'llvm'"));
  EXPECT_THAT(view.Observe(event), IsEmpty());
}

TEST(JobViewTest, TheTableHasARowForEachTaskAndTheTotals) {
  JobView view;
  v1::JobEvent event = Event(25, 1e-3);
  v1::TaskStatus& second = *event.mutable_status()->add_tasks();
  second.mutable_spec()->set_description("softmax 8,1000");
  second.mutable_spec()->set_weight(3);
  second.set_best_cost_s(1e-3);
  second.set_flop_count(-1);
  view.Observe(event);
  const auto lines = view.Lines(At(0, 5));
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("ID"), HasSubstr("Task"), HasSubstr("Latency"),
                              HasSubstr("Speed"), HasSubstr("Trials")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("matmul 1000,1000,1000"), HasSubstr("1.000 ms"),
                              HasSubstr("2.000 TFLOP/s"), HasSubstr("10.0x"), HasSubstr("25")));
  EXPECT_THAT(lines[3], AllOf(HasSubstr("softmax 8,1000"), HasSubstr(" - ")));
  // The latency is 1 * 1 ms + 3 * 1 ms; 25 trials took 30 s, so the other 75 will take 90 s.
  EXPECT_EQ(
      lines[4],
      "total latency 4.000 ms  trials 25/100  errors 0  time 30.0 s  left 1m 30s  1 trials/s");
  EXPECT_EQ(lines[5], "| job 4f3a running");
  EXPECT_EQ(view.Lines(At(1, 5))[5], "/ job 4f3a running");
}

TEST(JobViewTest, ThePaceAndTheNextTaskAreAmongTheTotals) {
  JobView view;
  v1::JobEvent event = Event(25, 1e-3);
  event.mutable_status()->add_tasks();
  event.mutable_status()->set_trials_per_s_last_minute(8.314);
  event.mutable_status()->set_busy_share_last_minute(0.934);
  event.mutable_status()->set_busy_share(0.891);
  event.mutable_status()->set_devices(1);
  event.mutable_status()->set_next_task(2);
  event.mutable_status()->set_phase("measuring the 8 best candidates again");
  view.Observe(event);
  const auto lines = view.Lines(At(0, 0));
  EXPECT_THAT(lines[4], HasSubstr("  8.31 trials/s  measuring 93% of the last minute  next 1"));
  EXPECT_EQ(lines[5], "| job 4f3a measuring the 8 best candidates again");
  event.mutable_status()->set_elites_share(0.345);
  event.mutable_status()->set_elites_share_last_minute(0.404);
  view.Observe(event);
  EXPECT_THAT(
      view.Lines(At(0, 0))[4],
      HasSubstr("  measuring 93% of the last minute (40% the best candidates again)  next 1"));
  event.mutable_status()->set_state(v1::SUCCEEDED);
  view.Observe(event);
  EXPECT_THAT(
      view.Lines(At(0, 0))[4],
      AllOf(HasSubstr("1 trials/s  measuring 89% of the time (34% the best candidates again)"),
            Not(HasSubstr("next"))));
}

TEST(JobViewTest, EachTrialOfATemplateHasALineAsAutotvmPrintsIt) {
  JobView view;
  const auto turned = [&](v1::JobEvent event, int64_t config) {
    event.mutable_status()->mutable_spec()->mutable_options()->set_policy("template.xgb");
    event.mutable_record()->set_flop_count(2e9);
    event.mutable_record()->set_origin(
        fmt::format("template dense, config {}: tile_k=[-1,{}]", config, config));
    return event;
  };
  EXPECT_THAT(view.Observe(turned(Trial(0, 2e-3, 2e-3), 4)),
              testing::Contains("trial    0    2.000 ms  current/best 1000/1000 GFLOP/s  1/100  "
                                "1.0 s  template dense, config 4: tile_k=[-1,4]"));
  // A trial that is slower than the best has a line, too.
  EXPECT_THAT(view.Observe(turned(Trial(1, 4e-3, 2e-3), 8)),
              ElementsAre("trial    1    4.000 ms  current/best 500/1000 GFLOP/s  2/100  2.0 s  "
                          "template dense, config 8: tile_k=[-1,8]"));
  EXPECT_THAT(view.Lines(At(0, 0)), testing::Contains(HasSubstr("current/best 500/1000")));
  for (uint32_t trial : {2u, 3u}) {
    EXPECT_THAT(
        view.Observe(turned(FailedTrial(trial, v1::WRONG_ANSWER_ERROR), 2)),
        testing::Contains(AllOf(HasSubstr("wrong answer  current/best 0/1000 GFLOP/s"),
                                HasSubstr("config 2: tile_k=[-1,2]: element 7 is 3, expected 4"))));
  }
}

TEST(JobViewTest, ATaskWithoutAResultLeavesTheTotalOpen) {
  JobView view;
  v1::JobEvent event = Event(25, 1e-3);
  event.mutable_status()->add_tasks();
  view.Observe(event);
  EXPECT_THAT(view.Lines(At(0, 0))[4], HasSubstr("total latency -  "));
}

TEST(JobViewTest, AFinishedJobHasNoTimeLeftAndItsClockStands) {
  JobView view;
  v1::JobEvent event = Event(25, 1e-3);
  event.mutable_status()->set_state(v1::CANCELLED);
  view.Observe(event);
  EXPECT_THAT(view.Lines(At(0, 100))[3], AllOf(HasSubstr("time 25.0 s"), Not(HasSubstr("left"))));
  EXPECT_EQ(view.Lines(At(0, 0))[4], "  job 4f3a cancelled");
}

// Returns an event of 24 tasks with 1, 2, ... ms; the last task has no result yet.
v1::JobEvent EventOfMany() {
  v1::JobEvent event = Event(100, 1e-3);
  for (int i = 1; i < 24; ++i) {
    v1::TaskStatus& task = *event.mutable_status()->add_tasks();
    task.mutable_spec()->set_description(
        "conv2d_winograd_nhwc 1,14,14,256,256 + residual + bias + relu");
    task.mutable_spec()->set_weight(1);
    task.set_reference_cost_s(10e-3);
    task.set_flop_count(2e9);
    if (i < 23) task.set_best_cost_s(1e-3 * (i + 1));
  }
  return event;
}

TEST(JobViewTest, OfMoreTasksThanFitSomeAreShown) {
  JobView view;
  view.Observe(EventOfMany());
  const auto lines = view.Lines({.columns = 80, .rows = 23});
  ASSERT_THAT(lines, SizeIs(23));
  EXPECT_THAT(lines, testing::Each(testing::ResultOf(
                         [](const std::string& line) { return line.size(); }, testing::Le(80u))));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("ID"), HasSubstr("Trials")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr(" 0  matmul 1000,1000,1000"), HasSubstr("1.000 ms")));
  EXPECT_THAT(lines[19],
              AllOf(HasSubstr("22  conv2d_winograd"), HasSubstr("... "), HasSubstr("23.00 ms")));
  EXPECT_EQ(lines[20], "... and 6 more, 1 of them without a result");
  EXPECT_THAT(lines[21], HasSubstr("total latency -  trials 100/100"));
  EXPECT_THAT(view.Lines({.columns = 200, .rows = 49}), SizeIs(28));
  EXPECT_THAT(view.Lines({.columns = 200, .rows = 28}), SizeIs(28));
  EXPECT_THAT(view.Lines({.columns = 200, .rows = 27}),
              testing::Contains("... and 2 more, 1 of them without a result"));
}

TEST(JobViewTest, OnATinyTerminalTheTotalsAreLeft) {
  JobView view;
  view.Observe(EventOfMany());
  for (size_t rows = 0; rows < 15; ++rows) {
    const auto lines = view.Lines({.columns = 10, .rows = static_cast<int>(rows)});
    EXPECT_THAT(lines.back(), HasSubstr("job 4f3a")) << rows;
    EXPECT_LE(lines.size(), std::max<size_t>(rows, 7))
        << "the totals take 6 rows and the state one";
  }
}

}  // namespace
}  // namespace kiln::client
