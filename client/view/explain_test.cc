#include "client/view/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kiln::client {
namespace {

using testing::ElementsAre;

TEST(ExplainTest, ATrial) {
  v1::Record record;
  record.set_trial(17);
  record.set_origin("sketch 1, tile sizes of C");
  record.set_score(0.9314);
  record.mutable_result()->add_costs_s(1e-3);
  EXPECT_EQ(ExplainTrial(record), "trial   17    1.000 ms  score 0.931  sketch 1, tile sizes of C");
  record.set_score(-9.314e-4);
  EXPECT_EQ(ExplainTrial(record),
            "trial   17    1.000 ms  predicted 931.4 us  sketch 1, tile sizes of C");
  record.set_score(std::nan(""));
  record.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
  EXPECT_EQ(ExplainTrial(record), "trial   17  wrong answer  no score  sketch 1, tile sizes of C");
}

TEST(ExplainTest, ARound) {
  v1::JobStatus job;
  job.add_tasks()->mutable_spec()->set_description("matmul 8,8,8");
  v1::Round round;
  round.set_number(3);
  round.set_search_s(1.5);
  round.set_trials(64);
  round.set_report("2048 sampled\n17 dropped: too many threads\n");
  EXPECT_THAT(ExplainRound(round, job),
              ElementsAre("round 3: task 0 (matmul 8,8,8), search 1.500 s, 64 trials so far",
                          "  2048 sampled", "  17 dropped: too many threads"));
}

TEST(ExplainTest, ARoundOfAFormSaysWhereTheFormsAre) {
  v1::JobStatus job;
  job.add_tasks()->mutable_spec()->set_description("matmul 8,8,8");
  job.add_tasks()->mutable_spec()->set_variant("winograd F(4,3)");
  job.mutable_tasks(1)->mutable_spec()->set_alternative_of(0);
  v1::Round round;
  round.add_best_s(1e-3);
  round.add_best_s(0);
  EXPECT_THAT(ExplainRound(round, job),
              testing::Contains("  variants: direct 1.000 ms, winograd F(4,3) -"));
}

TEST(ExplainTest, TheLatencyLog) {
  v1::Round round;
  round.set_elapsed_s(12.4);
  round.set_trials(128);
  round.set_task_index(1);
  round.add_best_s(1.23456e-3);
  round.add_best_s(0);
  EXPECT_EQ(
      LatencyLogLine(round),
      "ElapsedTime(s)\t12\tEstimatedLatency(ms)\tN/A\tTrials\t128\tTask\t1\tBest(ms)\t1.235\t-\n");
  round.set_total_latency_s(5e-3);
  EXPECT_THAT(LatencyLogLine(round), testing::HasSubstr("\tEstimatedLatency(ms)\t5.000\t"));
}

}  // namespace
}  // namespace kiln::client
