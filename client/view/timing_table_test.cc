#include "client/view/timing_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::client {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

v1::TrialResult Trial(double load_s) {
  v1::TrialResult result;
  result.add_costs_s(1e-3);
  result.set_build_s(0.5);
  result.set_run_s(0.025);
  result.mutable_times()->set_load_s(load_s);
  result.mutable_times()->set_timed_runs_s(0.02);
  return result;
}

TEST(TimingTableTest, QuantilesOfEachPart) {
  TimingTable table;
  for (int i = 1; i <= 11; ++i) table.Add(Trial(1e-3 * i));
  const std::string text = table.ToString(11);
  EXPECT_THAT(text, ContainsRegex("  load +6.000 ms +10.00 ms"));
  EXPECT_THAT(text, ContainsRegex("overhead: run less timed runs +5.000 ms +5.000 ms"));
  EXPECT_THAT(text, HasSubstr("builds of one process: 2.00 per second"));
  EXPECT_THAT(text, HasSubstr("trials: 1.00 per second"));
  EXPECT_THAT(text, Not(HasSubstr("reference"))) << "no trial ran one";
}

TEST(TimingTableTest, TheReferenceIsNotTheTrials) {
  v1::TrialResult first = Trial(1e-3);
  first.set_run_s(10.025);
  first.mutable_times()->set_reference_s(10);
  TimingTable table;
  table.Add(first);
  EXPECT_THAT(table.ToString(0), ContainsRegex("overhead: run less timed runs +5.000 ms"));
  EXPECT_THAT(table.ToString(0), ContainsRegex("reference +10.00 s"));
}

TEST(TimingTableTest, FailedTrialsHaveNoOverhead) {
  v1::TrialResult failed = Trial(1e-3);
  failed.set_error(v1::RUN_TIMEOUT_ERROR);
  TimingTable table;
  table.Add(failed);
  EXPECT_THAT(table.ToString(0), Not(HasSubstr("overhead")));
  EXPECT_THAT(table.ToJson(), HasSubstr("\"load\":{\"p50_s\":0.001"));
}

}  // namespace
}  // namespace kiln::client
