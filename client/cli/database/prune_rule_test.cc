#include "client/cli/database/prune_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Records {
 public:
  // Adds a record; cost_s 0 is a failed trial. Returns the record for further changes.
  v1::Record& Add(const std::string& workload_id, double cost_s, int64_t timestamp_s = 100) {
    v1::Record& record = all_.emplace_back();
    record.set_id(static_cast<int64_t>(all_.size()));
    record.set_job_id("j");
    record.set_workload_id(workload_id);
    record.set_target("llvm");
    record.mutable_result()->set_timestamp_s(timestamp_s);
    if (cost_s > 0) {
      record.mutable_result()->add_costs_s(cost_s);
    } else {
      record.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
    }
    return record;
  }

  std::vector<int64_t> Deleted(Pruner& pruner) const {
    for (const v1::Record& record : all_) pruner.See(CandidateOf(record));
    std::vector<int64_t> ids;
    for (const v1::Record& record : all_) {
      if (!pruner.Deletes(CandidateOf(record))) continue;
      pruner.CountDeleted(CandidateOf(record));
      ids.push_back(record.id());
    }
    return ids;
  }
  std::vector<int64_t> Deleted(const PruneRule& rule) const {
    Pruner pruner(rule);
    return Deleted(pruner);
  }

 private:
  std::vector<v1::Record> all_;
};

TEST(Pruner, KeepsTheBestOfEachComputationAndTarget) {
  Records records;
  records.Add("a", 3);
  records.Add("a", 1);
  records.Add("a", 0);
  records.Add("a", 2);
  records.Add("b", 9);
  records.Add("a", 5).set_target("cuda");
  EXPECT_THAT(records.Deleted({.keep = 1}), ElementsAre(1, 3, 4));
  EXPECT_THAT(records.Deleted({.keep = 2}), ElementsAre(1, 3));
  EXPECT_THAT(records.Deleted({.keep = 9}), ElementsAre(3));
  EXPECT_THAT(records.Deleted({.keep = 0}), SizeIs(6));
}

TEST(Pruner, OfEquallyGoodOnesTheOlderStaysAndOneThatWasStoppedEarlyGoesFirst) {
  Records records;
  records.Add("a", 1).mutable_result()->set_stopped_early(true);
  records.Add("a", 2);
  records.Add("a", 2);
  EXPECT_THAT(records.Deleted({.keep = 1}), ElementsAre(1, 3));
  EXPECT_THAT(records.Deleted({.keep = 2}), ElementsAre(1));
}

TEST(Pruner, KeepsWhatIsNewerAndWhatJobsStillNeed) {
  Records records;
  records.Add("a", 1, 10);
  records.Add("a", 2, 10);
  records.Add("a", 3, 20);
  records.Add("a", 4, 10).set_job_id("running");
  EXPECT_THAT(records.Deleted({.keep = 1, .before_s = 20, .open_jobs = {"running"}}),
              ElementsAre(2));
  EXPECT_THAT(records.Deleted({.keep = 1, .before_s = 10}), IsEmpty());
}

TEST(Pruner, DevicesAndWaysOfMeasuringDoNotCompete) {
  Records records;
  records.Add("a", 3).mutable_result()->set_device("H200");
  records.Add("a", 1).mutable_result()->set_device("A100");
  records.Add("a", 2).mutable_result()->set_device("A100");
  v1::TrialResult& stream = *records.Add("a", 9).mutable_result();
  stream.set_device("A100");
  stream.set_measured_as("stream/warm/free");
  EXPECT_THAT(records.Deleted({.keep = 1}), ElementsAre(3));
}

TEST(Pruner, KeepsWhatAJobNamesAndWhatSomebodyHasSet) {
  Records records;
  records.Add("a", 1);
  records.Add("a", 2);
  records.Add("a", 3).set_steps("[1]");
  records.Add("a", 4);
  records.Add("b", 5).set_steps("[1]");
  records.Add("b", 1);
  EXPECT_THAT(records.Deleted({.keep = 1, .named = {2}, .pinned = {{"a", "llvm", "[1]"}}}),
              ElementsAre(4, 5));
}

TEST(Pruner, WhatCameMeanwhileStays) {
  Records records;
  records.Add("a", 1);
  Pruner pruner({.keep = 1});
  EXPECT_THAT(records.Deleted(pruner), IsEmpty());
  v1::Record later = records.Add("a", 2);
  EXPECT_FALSE(pruner.Deletes(CandidateOf(later)));
}

TEST(Pruner, CostsOfRewrittenLayoutsDoNotCompete) {
  Records records;
  records.Add("a", 3);
  records.Add("a", 1).set_layout_rewrite_option(1);
  EXPECT_THAT(records.Deleted({.keep = 1}), IsEmpty());
}

TEST(Pruner, CountsWhatGoes) {
  Records records;
  records.Add("a", 3);
  records.Add("a", 1);
  records.Add("a", 0);
  Pruner pruner({.keep = 1});
  records.Deleted(pruner);
  ASSERT_THAT(pruner.rows(), SizeIs(1));
  const Pruner::Row& row = pruner.rows().begin()->second;
  EXPECT_EQ(row.records, 3);
  EXPECT_EQ(row.failed, 1);
  EXPECT_EQ(row.deleted, 2);
  EXPECT_EQ(row.best_s, 1);
  EXPECT_EQ(pruner.deleted(), 2);
}

TEST(Pruner, OfTemplatesTheBestOfEachWorkloadAndTargetStay) {
  const std::vector<store::AutotvmRecord> records = {
      {.id = 1, .target = "cuda", .task = "t", .args = "[1]", .costs_s = {3}, .timestamp_s = 9.5},
      {.id = 2, .target = "cuda", .task = "t", .args = "[1]", .costs_s = {1, 2}},
      {.id = 3, .target = "cuda", .task = "t", .args = "[2]", .costs_s = {9}},
      {.id = 4, .target = "llvm", .task = "t", .args = "[1]", .costs_s = {9}},
      {.id = 5, .target = "cuda", .task = "t", .args = "[1]", .costs_s = {1e9}, .error = 4},
      {.id = 6, .target = "cuda", .task = "u", .args = "[1]", .costs_s = {1e9}, .error = 4}};
  const auto deleted = [&](const PruneRule& rule) {
    Pruner pruner(rule);
    for (const store::AutotvmRecord& record : records) pruner.See(CandidateOf(record));
    std::vector<int64_t> ids;
    for (const store::AutotvmRecord& record : records) {
      if (pruner.Deletes(CandidateOf(record))) ids.push_back(record.id);
    }
    return ids;
  };
  EXPECT_THAT(deleted({.keep = 1}), ElementsAre(1, 5, 6));
  EXPECT_THAT(deleted({.keep = 2}), ElementsAre(5, 6));
  EXPECT_THAT(deleted({.keep = 1, .before_s = 9, .open_jobs = {"running"}}), ElementsAre(5, 6));
  EXPECT_THAT(deleted({.keep = 0}), SizeIs(6));
}

}  // namespace
}  // namespace kiln::client
