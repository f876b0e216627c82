#include "client/shipped/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/record_testing.h"

namespace kiln::client {
namespace {

using store::Record;
using store::TestRecord;
using testing::ElementsAre;

std::vector<uint32_t> TrialsOf(ShippedSelection& selection) {
  std::vector<uint32_t> trials;
  for (const Record& record : selection.Finish()) trials.push_back(record.trial);
  return trials;
}

TEST(ShippedSelectionTest, KeepsTheBestOfEachComputationTargetAndDevice) {
  ShippedSelection selection({});
  selection.Add(TestRecord("job", 1, 3e-3));
  selection.Add(TestRecord("job", 2, 1e-3));
  selection.Add(TestRecord("job", 3, 2e-3));
  Record other = TestRecord("job", 4, 5e-3);
  other.device = "NVIDIA L4";
  selection.Add(other);
  other = TestRecord("job", 5, 5e-3);
  other.workload_id = "77";
  selection.Add(other);
  other = TestRecord("job", 6, 5e-3);
  other.target = "llvm";
  selection.Add(other);
  EXPECT_THAT(TrialsOf(selection), ElementsAre(2, 5, 4, 6));
}

TEST(ShippedSelectionTest, LeavesOutWhatSaysNothingElsewhere) {
  ShippedSelection selection({});
  selection.Add(store::FailedRecord("job", 1, 5));
  Record record = TestRecord("job", 2);
  record.steps = store::kNoSteps;
  selection.Add(record);
  record = TestRecord("job", 3);
  record.device.clear();
  selection.Add(record);
  record = TestRecord("job", 4);
  record.dag.clear();
  selection.Add(record);
  record = TestRecord("job", 5);
  record.mark = "the canary took 2 ms; 1 ms is usual";
  selection.Add(record);
  record = TestRecord("job", 6);
  record.stopped_early = true;
  selection.Add(record);
  record = TestRecord("job", 7);
  record.layout_rewrite_option = 1;
  selection.Add(record);
  EXPECT_EQ(selection.left_out().unknown, 2);
  EXPECT_EQ(selection.left_out().no_schedule, 2);
  EXPECT_EQ(selection.left_out().doubtful, 2);
  EXPECT_THAT(TrialsOf(selection), ElementsAre());
}

TEST(ShippedSelectionTest, TakesOnlyTheWantedDevicesAndComputations) {
  Record other = TestRecord("job", 2);
  other.workload_id = "77";
  ShippedSelection by_device({.device = "L4", .workloads = {}});
  by_device.Add(TestRecord("job", 1));
  EXPECT_THAT(TrialsOf(by_device), ElementsAre());
  ShippedSelection by_workload({.device = "H200", .workloads = std::set<std::string>{"77"}});
  by_workload.Add(TestRecord("job", 1));
  by_workload.Add(other);
  EXPECT_THAT(TrialsOf(by_workload), ElementsAre(2));
}

}  // namespace
}  // namespace kiln::client
