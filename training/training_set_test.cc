#include "training/training_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "training/measured_testing.h"

namespace kiln::training {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class TrainingSetTest : public testing::Test {
 protected:
  TrainingSetTest() { KILN_CHECK(store_->AddJob({.id = "j"}).ok()); }

  StatusOr<TrainingSet> Read(const TrainingSetOptions& options = {}, bool backwards = false) {
    std::vector<store::Record> records;
    KILN_RETURN_IF_ERROR(
        store_->ForEachRecord({.include_errors = true}, [&](const store::Record& record) {
          records.push_back(record);
          return OkStatus();
        }));
    if (backwards) std::ranges::reverse(records);
    TrainingSetReader reader(*store_, options);
    for (const store::Record& record : records) KILN_RETURN_IF_ERROR(reader.Add(record));
    return reader.Finish(pool_);
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  ThreadPool pool_{2};
};

std::vector<int64_t> RecordsOf(const TrainingSet& set) {
  std::vector<int64_t> records;
  for (const TrainingProgram& program : set.programs) records.push_back(program.record);
  return records;
}

TEST_F(TrainingSetTest, IsTheProgramsOfEachTaskWithWhatTheyCost) {
  AddMeasured(*store_, "j", TestTask("matmul", "64,64,64"), 16);
  AddMeasured(*store_, "j", TestTask("matmul", "32,32,32"), 8, 16);
  ASSERT_OK_AND_ASSIGN(const TrainingSet set, Read());
  EXPECT_EQ(set.records, 24);
  EXPECT_TRUE(set.left_out.empty());
  ASSERT_THAT(set.tasks, SizeIs(2));
  EXPECT_EQ(set.tasks[0].programs, 16);
  EXPECT_EQ(set.tasks[0].failed, 2);
  EXPECT_EQ(set.tasks[0].device, "made up");
  EXPECT_EQ(set.tasks[1].programs, 8);
  EXPECT_EQ(set.gpu, (std::vector<bool>{false, false}));
  double best_s = 1;
  for (const TrainingProgram& program : set.programs) {
    ASSERT_GT(program.rows->rows(), 0);
    if (program.task == 0 && program.cost_s.has_value()) best_s = std::min(best_s, *program.cost_s);
  }
  EXPECT_EQ(set.tasks[0].best_s, best_s);
  const std::vector<costmodel::Sample> samples = SamplesOf(set);
  ASSERT_THAT(samples, SizeIs(24));
  std::set<uint64_t> tasks;
  for (const costmodel::Sample& sample : samples) tasks.insert(sample.task);
  EXPECT_THAT(tasks, SizeIs(2));
}

TEST_F(TrainingSetTest, OfTooManyTheFastestAndOthersByChanceEvenlyByTask) {
  AddMeasured(*store_, "j", TestTask("matmul", "64,64,64"), 48);
  AddMeasured(*store_, "j", TestTask("matmul", "32,32,32"), 12, 48);
  const TrainingSetOptions options = {.seed = 5, .programs = 20};
  ASSERT_OK_AND_ASSIGN(const TrainingSet set, Read(options));
  EXPECT_EQ(set.records, 60);
  ASSERT_THAT(set.programs, SizeIs(20));
  ASSERT_THAT(set.tasks, SizeIs(2));
  EXPECT_EQ(set.tasks[0].programs, 10);
  EXPECT_EQ(set.tasks[1].programs, 10);
  ASSERT_OK_AND_ASSIGN(const TrainingSet all, Read());
  for (const costmodel::ModelTask& task : set.tasks) {
    const auto whole =
        std::ranges::find(all.tasks, task.workload_id, &costmodel::ModelTask::workload_id);
    EXPECT_EQ(task.best_s, whole->best_s);
  }
  ASSERT_OK_AND_ASSIGN(const TrainingSet again, Read(options, /*backwards=*/true));
  EXPECT_EQ(RecordsOf(again), RecordsOf(set));
  ASSERT_OK_AND_ASSIGN(const TrainingSet other, Read({.seed = 6, .programs = 20}));
  EXPECT_NE(RecordsOf(other), RecordsOf(set));
}

TEST_F(TrainingSetTest, MoreTasksThanProgramsAreNoMoreThanAsked) {
  for (uint32_t i = 0; i < 6; ++i)
    AddMeasured(*store_, "j", TestTask("matmul", std::to_string(8 << i) + ",8,8"), 2, 2 * i);
  ASSERT_OK_AND_ASSIGN(const TrainingSet set, Read({.programs = 4}));
  EXPECT_THAT(set.programs, SizeIs(4));
}

TEST_F(TrainingSetTest, WhatIsNoneToLearnFromIsCountedWithItsReason) {
  const search::Task task = TestTask("matmul", "64,64,64");
  AddMeasured(*store_, "j", task, 4);
  uint32_t trial = 100;
  const auto add = [&](const std::function<void(store::Record&)>& change) {
    store::Record record = RecordOf(task, {}, 1e-3);
    record.job_id = "j";
    record.trial = trial++;
    change(record);
    ASSERT_OK(store_->AddRecord(record).status());
  };
  add([](store::Record& r) { r.steps = "[[\"SP\", 99, 0, 8, [2], 1]]"; });
  add([](store::Record& r) { r.steps = "no steps"; });
  add([](store::Record& r) { r.costs_s = {1e-15}; });
  add([](store::Record& r) { r.error = store::kUnknownError, r.costs_s.clear(); });
  add([](store::Record& r) { r.layout_rewrite_option = 1; });
  add([](store::Record& r) { r.target = "abacus"; });
  add([](store::Record& r) {
    r.dag.clear(), r.workload_id.clear(), r.workload_key = "[\"mine\", 1]";
  });
  ASSERT_OK_AND_ASSIGN(const TrainingSet set, Read());
  EXPECT_THAT(set.programs, SizeIs(4));
  std::map<std::string, int64_t> counts;
  for (const auto& [reason, left_out] : set.left_out) counts[reason] = left_out.records;
  EXPECT_EQ(counts,
            (std::map<std::string, int64_t>{{"of a computation that is not known", 1},
                                            {"that do not replay or lower", 2},
                                            {"that the workers failed", 1},
                                            {"whose computation or target does not parse", 1},
                                            {"with costs that no device can have", 1},
                                            {"with layouts rewritten by their programs", 1}}));
  EXPECT_THAT(set.left_out.at("that do not replay or lower").first, HasSubstr("record 5: "));
}

TEST_F(TrainingSetTest, ALineOfALogIsOfTheComputationThatItsKeyStandsFor) {
  const search::Task task = TestTask("matmul", "64,64,64");
  store::Record line = RecordOf(task, {}, 1e-3);
  const store::Computation computation = {
      .id = line.workload_id, .key = line.workload_key, .dag = line.dag, .flop_count = 1};
  line.job_id = "j";
  line.trial = 7;
  line.dag.clear();
  line.workload_id.clear();
  line.device.clear();
  ASSERT_OK(store_->AddRecord(line).status());
  ASSERT_OK_AND_ASSIGN(const TrainingSet before, Read());
  EXPECT_THAT(before.programs, SizeIs(0));
  ASSERT_OK(store_->AddComputations({&computation, 1}));
  ASSERT_OK_AND_ASSIGN(const TrainingSet after, Read());
  ASSERT_THAT(after.programs, SizeIs(1));
  EXPECT_EQ(after.tasks[0].workload_id, computation.id);
  // When a second computation has the key, the record has no computation until somebody binds the
  // key.
  store::Computation other = computation;
  other.id = std::string(64, 'a');
  ASSERT_OK(store_->AddComputations({&other, 1}));
  ASSERT_OK_AND_ASSIGN(const TrainingSet unclear, Read());
  EXPECT_THAT(unclear.programs, SizeIs(0));
  ASSERT_OK(store_->BindKey(computation));
  const int64_t ids[] = {1};
  ASSERT_OK(store_->BindRecords(computation, ids).status());
  ASSERT_OK_AND_ASSIGN(const TrainingSet bound, Read());
  EXPECT_THAT(bound.programs, SizeIs(1));
}

}  // namespace
}  // namespace kiln::training
