// The conformance suite, computations that share a key: the computation to which a record belongs.
#include <string>

#include "base/status_testing.h"
#include "store/record_testing.h"
#include "store/store_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Record RecordOf(const char* workload_id, const std::string& job, uint32_t trial, double cost_s) {
  Record record = TestRecord(job, trial, cost_s);
  record.workload_id = workload_id;
  record.dag = *workload_id == 0 ? "" : std::string("dag of ") + workload_id;
  return record;
}

TEST_P(StoreTest, RecordsAreOfTheirComputationWhateverTheKey) {
  AddJob("j");
  Add(RecordOf("2x2", "j", 0, 1e-3));
  Add(RecordOf("3x3", "j", 1, 2e-3));
  Add(RecordOf("3x3", "j", 2, 3e-3));
  const WorkloadRef small = {.id = "2x2", .keys = {kTestKey}}, large = {.id = "3x3"};
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords(large, kTestTarget)), ElementsAre(1));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(large, "")), ElementsAre(1, 2));
  EXPECT_THAT(Visited({.workload = large}), ElementsAre(1, 2));
  // The key alone means both computations; each has a best record.
  const WorkloadRef both = {.keys = {kTestKey}};
  EXPECT_THAT(Trials(store_->BestRecords(both, "")), ElementsAre(0, 1));
  EXPECT_THAT(Visited({.workload = both}), ElementsAre(0, 1, 2));
  ASSERT_OK_AND_ASSIGN(const auto known, store_->ComputationsOfKey(kTestKey));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].id, "2x2");
  EXPECT_EQ(known[1].dag, "dag of 3x3");
  EXPECT_THAT(*store_->ComputationsOfKey("other"), IsEmpty());
}

TEST_P(StoreTest, ARecordWithoutIdentityCountsWhereItsKeyFitsOneComputation) {
  AddJob("j");
  const WorkloadRef small = {.id = "2x2", .keys = {kTestKey}},
                    large = {.id = "3x3", .keys = {kTestKey}};
  Add(RecordOf("", "j", 0, 1e-3));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0)) << "the only one that asks";
  Add(RecordOf("2x2", "j", 1, 2e-3));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "2x2"}, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kTestKey}}, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(small, kTestTarget)), ElementsAre(0, 1));
  EXPECT_THAT(Trials(store_->BestRecords(large, "")), IsEmpty()) << "it would be the second one";
  // A second computation gets the key: the computation of the record is not known any more.
  const TaskRow task = {
      .index = 0, .workload_id = "3x3", .workload_key = kTestKey, .dag = "d", .target = "llvm"};
  ASSERT_OK(store_->AddTasks("j", {&task, 1}));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords(large, "")), IsEmpty());
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(small, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kTestKey}}, "")), ElementsAre(1, 0));
}

// Returns a record as an import makes it.
Record LoggedRecord(const char* key, uint32_t trial, double cost_s) {
  Record record = RecordOf("", "j", trial, cost_s);
  record.workload_key = key;
  record.device.clear();
  record.runner.clear();
  return record;
}

TEST_P(StoreTest, RecordsOfABoundKeyAreOfTheComputationOneByOne) {
  AddJob("j");
  constexpr const char kPool[] = "[\"pool\", 3]";
  Add(RecordOf("2x2", "j", 0, 1e-3));
  const int64_t fits = Add(LoggedRecord(kPool, 1, 2e-3));
  // The steps of this record do not fit.
  Add(LoggedRecord(kPool, 2, 1e-3));
  const int64_t other = Add(LoggedRecord("[\"pool\", 4]", 3, 1e-4));
  const Computation large = {.id = "3x3", .key = kPool, .dag = "text", .flop_count = 7};
  EXPECT_EQ(*store_->BoundTo(kPool), std::nullopt);
  ASSERT_OK(store_->BindKey(large));
  EXPECT_EQ(store_->BoundTo(kPool)->value().dag, "text");
  const int64_t wanted[] = {fits, other, 1};
  EXPECT_EQ(*store_->BindRecords(large, wanted), 1) << "of another key; of a computation already";
  EXPECT_EQ(*store_->BindRecords(large, wanted), 0);
  // The faster record that does not fit counts for no computation, though the key stands for one.
  EXPECT_THAT(Trials(store_->BestRecords({.id = "3x3"}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "3x3", .keys = {kPool}}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kPool}}, "")), ElementsAre(1, 2));
  ASSERT_OK_AND_ASSIGN(const auto bound, store_->RecordsOfWorkload({.id = "3x3"}, ""));
  ASSERT_EQ(bound.size(), 1u);
  EXPECT_EQ(bound[0].dag, "text");
  EXPECT_EQ(bound[0].flop_count, 7);
  EXPECT_EQ(bound[0].workload_id, "3x3");
  EXPECT_EQ(bound[0].workload_key, kPool);
  EXPECT_THAT(store_->BindKey({.id = "", .key = "k", .dag = "d"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("needs an id, a key and a DAG")));
}

TEST_P(StoreTest, AKeyStandsForWhatItWasBoundToLast) {
  AddJob("j");
  constexpr const char kPool[] = "[\"pool\", 3]";
  // A record that was measured here keeps its computation.
  Add(RecordOf("2x2", "j", 0, 5e-3));
  const int64_t logged = Add(LoggedRecord(kPool, 1, 2e-3));
  const Computation first = {.id = "2x2", .key = kPool, .dag = "a"};
  const Computation second = {.id = "3x3", .key = kPool, .dag = "b"};
  for (const Computation& computation : {first, first, second}) {
    ASSERT_OK(store_->BindKey(computation));
    ASSERT_OK(store_->BindRecords(computation, {&logged, 1}));
  }
  EXPECT_THAT(Trials(store_->BestRecords({.id = "2x2"}, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "3x3"}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kPool}}, "")), ElementsAre(1));
  EXPECT_EQ(store_->BoundTo(kPool)->value().id, "3x3");
}

// Computations that share one key share the others too, even keys that the store does not know.
TEST_P(StoreTest, AComputationIsFoundByEachOfItsKeys) {
  AddJob("j");
  Add(LoggedRecord("other key", 0, 1e-3));
  Add(RecordOf("2x2", "j", 1, 2e-3));
  const WorkloadRef small = {.id = "2x2", .keys = {kTestKey, "other key"}};
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "2x2"}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {"other key"}}, "")), ElementsAre(0));
  Add(RecordOf("3x3", "j", 2, 3e-3));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(1));
  const WorkloadRef large = {.id = "3x3", .keys = {kTestKey, "other key"}};
  EXPECT_THAT(Trials(store_->BestRecords(large, "")), ElementsAre(2));
}

TEST_P(StoreTest, WhatALineOfALogSaysBesideIsKept) {
  AddJob("j");
  Record record = LoggedRecord(kTestKey, 0, 1e-3);
  record.target_host = "llvm -mcpu=core-avx2";
  record.layout_rewrite_option = 2;
  record.input_names = {"data", "we\"ight"};
  ASSERT_OK_AND_ASSIGN(const Record kept, store_->GetRecord(Add(record)));
  EXPECT_EQ(kept.target_host, record.target_host);
  EXPECT_EQ(kept.layout_rewrite_option, 2);
  EXPECT_EQ(kept.input_names, record.input_names);
}

TEST_P(StoreTest, ComputationsCanBeMadeKnown) {
  const Computation two[] = {{.id = "a", .key = kTestKey, .dag = "x"},
                             {.id = "b", .key = kTestKey, .dag = "y"}};
  ASSERT_OK(store_->AddComputations(two));
  ASSERT_OK(store_->AddComputations(two));
  ASSERT_OK_AND_ASSIGN(const auto known, store_->ComputationsOfKey(kTestKey));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[1].id, "b");
  EXPECT_EQ(known[1].dag, "y");
  AddJob("j");
  Add(RecordOf("", "j", 0, 1e-3));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "a"}, "")), IsEmpty());
}

TEST_P(StoreTest, AMeasurementOfAnotherComputationIsNotTheSame) {
  AddJob("j");
  const Record record = RecordOf("2x2", "j", 0, 1e-3);
  Add(record);
  const auto of = [&](const char* workload_id) {
    Record other = record;
    other.workload_id = workload_id;
    return store_->HasMeasurement(other);
  };
  EXPECT_TRUE(*of("2x2"));
  EXPECT_FALSE(*of("3x3"));
  EXPECT_TRUE(*of("")) << "a line has the key alone";
}

}  // namespace
}  // namespace kiln::store
