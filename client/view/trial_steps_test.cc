#include "client/view/trial_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kBegin_us = 1'795'972'383'000'000;

v1::Record MeasuredTrial() {
  v1::Record record;
  record.set_job_id("3f2a");
  record.set_trial(17);
  v1::TrialResult& result = *record.mutable_result();
  result.set_trace_id("0af7");
  result.set_builder("b1");
  result.set_runner("r1");
  result.set_build_s(0.4);
  result.set_run_s(1.0);
  v1::TrialTimes& times = *result.mutable_times();
  times.set_build_wait_s(0.1);
  times.set_instantiate_s(0.05);
  times.set_compile_s(0.3);
  times.set_load_s(0.25);
  times.set_timing_s(0.7);
  v1::TrialInstants& at = *result.mutable_instants();
  at.set_chosen_us(kBegin_us);
  at.set_build_sent_us(kBegin_us + 1'000'000);
  at.set_build_received_us(kBegin_us + 1'600'000);
  at.set_run_sent_us(kBegin_us + 1'700'000);
  at.set_run_received_us(kBegin_us + 2'900'000);
  at.set_committed_us(kBegin_us + 3'000'000);
  return record;
}

std::vector<std::string> Describe(const std::vector<TrialStep>& steps) {
  std::vector<std::string> texts;
  for (const TrialStep& step : steps) {
    texts.push_back(std::string(step.kind == StepKind::kPhase ? "- " : "") +
                    std::string(step.name) + " " +
                    std::to_string((step.begin_us - kBegin_us) / 1000) + " to " +
                    std::to_string((step.end_us - kBegin_us) / 1000));
  }
  return texts;
}

TEST(TrialStepsTest, AllTimeIsSomewhere) {
  const auto steps = StepsOf(MeasuredTrial().result());
  EXPECT_THAT(
      Describe(steps),
      ElementsAre("wait for a builder 0 to 1000", "build 1000 to 1600",
                  "- wait for a build process 1000 to 1100", "- instantiate 1100 to 1150",
                  "- compile 1150 to 1450", "- rest of the build 1450 to 1500",
                  "- to the builder and back 1500 to 1600", "wait for a runner 1600 to 1700",
                  "run 1700 to 2900", "- load 1700 to 1950", "- timing 1950 to 2650",
                  "- rest of the run 2650 to 2700", "- to the runner and back 2700 to 2900",
                  "wait for the commit 2900 to 3000"));
}

TEST(TrialStepsTest, ATrialThatDidNotBuildEndsThere) {
  v1::TrialResult result = MeasuredTrial().result();
  result.mutable_instants()->clear_run_sent_us();
  result.mutable_instants()->clear_run_received_us();
  const auto texts = Describe(StepsOf(result));
  ASSERT_FALSE(texts.empty());
  EXPECT_EQ(texts.back(), "wait for the commit 1600 to 3000");
}

TEST(TrialStepsTest, WithoutInstantsThereAreNoSteps) {
  EXPECT_THAT(StepsOf(v1::TrialResult()), IsEmpty());
  EXPECT_EQ(StepsText({}, {}, 0), "");
}

TEST(TrialStepsTest, PhasesStayWithinTheirCall) {
  v1::TrialResult result = MeasuredTrial().result();
  result.mutable_times()->set_compile_s(1e9);
  result.mutable_times()->set_load_s(std::numeric_limits<double>::quiet_NaN());
  result.mutable_times()->set_timing_s(-1);
  result.set_run_s(std::numeric_limits<double>::infinity());
  for (const TrialStep& step : StepsOf(result)) {
    EXPECT_LE(step.begin_us, step.end_us) << step.name;
    EXPECT_LE(step.end_us, kBegin_us + 3'000'000) << step.name;
  }
}

TEST(TrialStepsTest, ImpossibleInstantsDoNoHarm) {
  v1::TrialResult result = MeasuredTrial().result();
  result.mutable_instants()->set_chosen_us(std::numeric_limits<int64_t>::min());
  result.mutable_instants()->set_run_sent_us(kBegin_us);  // the clock was set back
  result.mutable_instants()->set_committed_us(std::numeric_limits<int64_t>::max());
  for (const TrialStep& step : StepsOf(result)) {
    EXPECT_GE(step.begin_us, kBegin_us) << step.name;
    EXPECT_LE(step.begin_us, step.end_us) << step.name;
  }
}

TEST(TrialStepsTest, TextHasATableWithBars) {
  const v1::Record record = MeasuredTrial();
  const std::string text = StepsText(record, StepsOf(record.result()), 80);
  EXPECT_THAT(text, HasSubstr("trial 3f2a/17, built by b1, run by r1\n3.000 s from its choice"));
  EXPECT_THAT(text, HasSubstr("trace 0af7"));
  EXPECT_THAT(text, testing::ContainsRegex("wait for a builder +0[^\n]* +1.000 s +[.]+\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nrun +1.700 s +1.200 s +#+\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  compile +1.150 s +300.0 ms +-+\n"));
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(text.substr(at, end - at).size(), 80u);
  }
}

TEST(TrialStepsTest, JsonSaysWhatIsWithinWhat) {
  const v1::Record record = MeasuredTrial();
  const auto json = nlohmann::json::parse(StepsJson(record, StepsOf(record.result())));
  EXPECT_EQ(json["trial"].get<std::string>(), "3f2a/17");
  EXPECT_EQ(json["seconds"].get<double>(), 3.0);
  ASSERT_EQ(json["steps"].size(), 14u);
  EXPECT_EQ(json["steps"][4]["step"].get<std::string>(), "compile");
  EXPECT_EQ(json["steps"][4]["within"].get<std::string>(), "build");
  EXPECT_NEAR(json["steps"][4]["seconds"].get<double>(), 0.3, 1e-9);
  EXPECT_EQ(json["steps"][7]["within"].get<std::string>(), "");
}

}  // namespace
}  // namespace kiln::client
