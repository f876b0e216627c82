#include "scheduler/dispatch/worker_replies.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr std::chrono::milliseconds kLimit{10'000};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class WorkerRepliesTest : public testing::Test {
 protected:
  WorkerRepliesTest() {
    request_.mutable_options()->set_repeat(3);
    v1::TrialResult& result = *reply_.mutable_result();
    for (int i = 0; i < 3; ++i) result.add_costs_s(1e-3);
    result.set_run_s(0.5);
    result.mutable_times()->set_load_s(0.1);
    reply_.set_reference_cost_s(0.2);
  }
  Status Bound() { return BoundReply(request_, kLimit, reply_); }
  void ExpectRefused(const std::string& why) {
    EXPECT_THAT(Bound(), StatusIs(StatusCode::kDataLoss, HasSubstr("the runner answered " + why)));
  }

  v1::MeasureRequest request_;
  v1::MeasureReply reply_;
};

TEST_F(WorkerRepliesTest, ARightOneStaysAsItIs) {
  const std::string before = reply_.SerializeAsString();
  EXPECT_OK(Bound());
  EXPECT_EQ(reply_.SerializeAsString(), before);
}

TEST_F(WorkerRepliesTest, NoMoreCostsThanWereAskedFor) {
  reply_.mutable_result()->add_costs_s(1e-3);
  v1::MeasureReply idle = reply_;
  ExpectRefused("4 costs, expected at most 3");
  request_.mutable_options()->set_idle_ms(50);
  EXPECT_OK(BoundReply(request_, kLimit, idle));
  EXPECT_THAT(idle.result().costs_s(), SizeIs(4));
  for (int i = 0; i < 97; ++i) idle.mutable_result()->add_costs_s(1e-3);
  EXPECT_THAT(BoundReply(request_, kLimit, idle),
              StatusIs(StatusCode::kDataLoss, HasSubstr("costs")));
}

TEST_F(WorkerRepliesTest, FiguresAreNumbers) {
  const v1::MeasureReply right = reply_;
  reply_.mutable_result()->set_max_error(kNaN);
  ExpectRefused("a largest error of nan");
  reply_ = right;
  reply_.mutable_result()->set_run_s(std::numeric_limits<double>::infinity());
  ExpectRefused("a run of inf s");
  reply_ = right;
  reply_.mutable_result()->mutable_times()->set_check_s(kNaN);
  ExpectRefused("check_s of nan s");
  reply_ = right;
  reply_.set_reference_cost_s(-1);
  ExpectRefused("a reference of -1 s");
}

TEST_F(WorkerRepliesTest, AnErrorIsOneOfTheKinds) {
  for (const int error : {-1, 9}) {
    reply_.mutable_result()->set_error(static_cast<v1::ErrorKind>(error));
    ExpectRefused(fmt::format("error kind {}, which is unknown", error));
  }
}

TEST_F(WorkerRepliesTest, NothingTakesNextToNoTime) {
  reply_.mutable_result()->set_costs_s(2, 1e-15);
  EXPECT_OK(Bound());
  EXPECT_EQ(reply_.result().error(), v1::UNKNOWN_ERROR);
  EXPECT_THAT(reply_.result().message(), HasSubstr("a cost 1e-15 s is not plausible"));
  EXPECT_THAT(reply_.result().costs_s(), SizeIs(0));
  EXPECT_EQ(reply_.reference_cost_s(), 0);
}

TEST_F(WorkerRepliesTest, NothingTakesLongerThanTheCall) {
  const v1::MeasureReply right = reply_;
  reply_.mutable_result()->set_costs_s(1, 11);
  ExpectRefused("a cost of 11 s");
  reply_ = right;
  reply_.mutable_result()->mutable_times()->set_timing_s(11);
  ExpectRefused("timing_s of 11 s");
}

TEST_F(WorkerRepliesTest, TextsAndUnknownFieldsAreBounded) {
  v1::TrialResult& result = *reply_.mutable_result();
  result.set_message(std::string(1 << 20, 'x'));
  result.set_device(std::string(1 << 20, 'x'));
  result.mutable_times()
      ->GetReflection()
      ->MutableUnknownFields(result.mutable_times())
      ->AddLengthDelimited(999, std::string(1 << 20, 'x'));
  EXPECT_OK(Bound());
  EXPECT_LT(reply_.ByteSizeLong(), 10'000u);
  EXPECT_EQ(reply_.result().error(), v1::NO_ERROR);
}

TEST_F(WorkerRepliesTest, ASampleIsThereWhereOneWasAskedFor) {
  reply_.mutable_result()->set_sampled_outputs(10);
  ExpectRefused("a sample of 10 elements");
}

TEST_F(WorkerRepliesTest, BuildersTimesAreTimes) {
  v1::BuildReply built;
  built.set_build_s(kNaN);
  built.mutable_times()->set_compile_s(1e9);
  BoundReply(kLimit, built);
  EXPECT_EQ(built.build_s(), 0);
  EXPECT_FALSE(built.has_times());
}

}  // namespace
}  // namespace kiln::scheduler
