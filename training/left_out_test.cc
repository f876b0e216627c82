#include "training/left_out.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "training/measured_testing.h"

namespace kiln::training {
namespace {

// WRONG_ANSWER_ERROR of proto/trial.proto.
constexpr int kWrongAnswer = 5;

TEST(LeftOutTest, ARecordOfAScheduleIsLearnedFrom) {
  const search::Task task = TestTask("matmul", "16,16,16");
  const store::Record record = RecordOf(task, {}, 2e-6);
  EXPECT_EQ(WhyLeftOut(record), "");
  EXPECT_OK(CheckMeasuredCosts(record, task));
}

TEST(LeftOutTest, AFailedCandidateIsLearnedFrom) {
  store::Record record = RecordOf(TestTask("matmul", "16,16,16"), {}, 2e-6);
  record.error = kWrongAnswer;
  record.costs_s.clear();
  EXPECT_EQ(WhyLeftOut(record), "");
}

TEST(LeftOutTest, EachReasonIsTold) {
  const store::Record record = RecordOf(TestTask("matmul", "16,16,16"), {}, 2e-6);
  store::Record failed = record;
  failed.error = store::kUnknownError;
  EXPECT_EQ(WhyLeftOut(failed), kWorkersFailed);
  store::Record kernel = record;
  kernel.steps = R"({"kernel":"3f2a","function":"f","parameters":{}})";
  EXPECT_EQ(WhyLeftOut(kernel), kHandWritten);
  store::Record rewritten = record;
  rewritten.layout_rewrite_option = 1;
  rewritten.workload_key = "";
  EXPECT_EQ(WhyLeftOut(rewritten), kRewrittenLayouts);
  store::Record marked = record;
  marked.mark = "the canary took 1.31 ms; 0.98 to 1.02 ms are usual";
  EXPECT_EQ(WhyLeftOut(marked), kMarked);
}

TEST(LeftOutTest, CostsThatNoDeviceCanHaveAreRefused) {
  const search::Task task = TestTask("matmul", "1024,1024,1024");
  EXPECT_FALSE(CheckMeasuredCosts(RecordOf(task, {}, 1e-12), task).ok());
}

TEST(LeftOutTest, MadeUpCostsPass) {
  const search::Task task = TestTask("matmul", "1024,1024,1024", "null");
  EXPECT_OK(CheckMeasuredCosts(RecordOf(task, {}, 1e-12), task));
}

}  // namespace
}  // namespace kiln::training
