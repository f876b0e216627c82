#include "runner/output_sample.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

v1::ArgSpec Arg(const std::string& name, std::vector<int64_t> shape, v1::ArgSpec::Role role) {
  v1::ArgSpec arg;
  arg.set_name(name);
  arg.set_dtype("float32");
  arg.mutable_shape()->Assign(shape.begin(), shape.end());
  arg.set_role(role);
  return arg;
}

std::vector<Argument> Plan(std::vector<v1::ArgSpec> args) {
  v1::LaunchPlan plan;
  for (v1::ArgSpec& arg : args) *plan.add_args() = std::move(arg);
  return *ParseArguments(plan);
}

class OutputSampleTest : public testing::Test {
 protected:
  // The sample has elements (1, 0), (1, 3), (3, 0) and (3, 3) of a 4 x 5 output.
  OutputSampleTest() {
    v1::OutputSample& sample = *samples_.Add();
    sample.add_offset(1);
    sample.add_offset(0);
    sample.add_stride(2);
    sample.add_stride(3);
  }
  StatusOr<std::vector<SampledOutput>> Parse() {
    return ParseSamples(samples_, program_, reference_);
  }

  std::vector<Argument> program_ =
      Plan({Arg("a", {7}, v1::ArgSpec::INPUT), Arg("c", {4, 5}, v1::ArgSpec::OUTPUT)});
  std::vector<Argument> reference_ =
      Plan({Arg("a", {7}, v1::ArgSpec::INPUT), Arg("c", {2, 2}, v1::ArgSpec::OUTPUT)});
  google::protobuf::RepeatedPtrField<v1::OutputSample> samples_;
};

TEST_F(OutputSampleTest, GathersItsElements) {
  ASSERT_OK_AND_ASSIGN(const auto samples, Parse());
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(ElementsOf(samples), 4);
  std::vector<float> whole(20);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(i);
  const auto bytes = Gather(samples[0], program_[1], std::as_bytes(std::span(whole)));
  std::vector<float> gathered(4);
  ASSERT_EQ(bytes.size(), 4 * sizeof(float));
  std::memcpy(gathered.data(), bytes.data(), bytes.size());
  EXPECT_EQ(gathered, (std::vector<float>{5, 8, 15, 18}));
}

TEST_F(OutputSampleTest, RefusesGridsThatLeaveTheOutput) {
  samples_[0].set_offset(1, 2);
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument,
                                HasSubstr("2 elements from 2 on, 3 apart, in dimension 1")));
  samples_[0].set_offset(1, -1);
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("from -1 on")));
  samples_[0].set_offset(1, 0);
  samples_[0].set_stride(1, int64_t{1} << 62);
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("apart")));
  samples_[0].set_stride(1, 0);
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("0 apart")));
  samples_[0].add_stride(1);
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("3 strides")));
}

TEST_F(OutputSampleTest, RefusesOtherInterfaces) {
  samples_[0].set_output(1);
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("output 1")));
  samples_[0].set_output(0);
  reference_[0].name = "b";
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("in the reference")));
  reference_[0].name = "a";
  samples_.Add();
  EXPECT_THAT(Parse(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("2 samples for 1")));
}

TEST_F(OutputSampleTest, WhatIsStillPoisonWasNotWritten) {
  std::vector<std::byte> bytes(static_cast<size_t>(program_[1].bytes));
  for (const Poison poison : {Poison::kNaN, Poison::kStale}) {
    FillPoison(bytes, DType::kFloat32, poison);
    EXPECT_EQ(CountUnwritten(program_[1], bytes, poison), 20);
    const float one = 1;
    std::memcpy(bytes.data() + 4, &one, 4);
    EXPECT_EQ(CountUnwritten(program_[1], bytes, poison), 19);
  }
  Argument integers = program_[1];
  integers.dtype = DType::kInt32;
  FillPoison(bytes, DType::kInt32, Poison::kNaN);
  EXPECT_EQ(CountUnwritten(integers, bytes, Poison::kNaN), 0);
}

}  // namespace
}  // namespace kiln::runner
