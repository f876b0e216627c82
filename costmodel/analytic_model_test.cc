#include "costmodel/analytic_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "base/status_testing.h"

namespace kiln::costmodel {
namespace {

using testing::HasSubstr;
using Values = std::map<std::string, double, std::less<>>;

// Scales a value as the features do. Shares and flags are raw.
float Scaled(std::string_view name, double value) {
  const bool raw =
      name == "is_gpu" || name == "row_work" || name == "row_register_share" || name == "row_async";
  return static_cast<float>(raw ? value : std::log2(value + 1));
}

// A matrix product in one kernel: 132 blocks of 256 threads, shared tiles in 32 stages.
const Values kGpu = {
    {"is_gpu", 1},
    {"row_work", 1},
    {"row_thread_trips", 32768},
    {"row_thread_instructions", 36000},
    {"row_chains", 64},
    {"row_reduce_len", 512},
    {"kernel_blocks", 132},
    {"kernel_parallel_tasks", 132},
    {"kernel_threads", 256},
    {"kernel_blocks_per_core", 2},
    {"kernel_thread_instructions", 40000},
    {"kernel_thread_shared_wavefronts", 2000},
    {"kernel_thread_sectors", 2000},
    {"kernel_thread_global_requests", 500},
    {"kernel_spilled", 0},
    {"kernel_barriers", 64},
    {"kernel_stages", 32},
    {"kernel_global_bytes", 1e7},
    {"program_cores", 132},
    {"kernel_cluster_cores", 132},
    {"kernel_cluster_barriers", 0},
    {"kernel_thread_remote_bytes", 0},
};
// The same product on four cores with vectors of 64 bytes.
const Values kCpu = {
    {"row_work", 1},
    {"row_thread_trips", 1 << 27},
    {"row_thread_instructions", 1 << 24},
    {"row_thread_accesses", 1 << 22},
    {"row_chains", 128},
    {"row_reduce_len", 512},
    {"row_lanes", 16},
    {"row_vector_bytes", 64},
    {"row_register_share", 0.7},
    {"row_miss_32k", 1e7},
    {"row_miss_1m", 1e6},
    {"kernel_unique_bytes", 1e8},
    {"kernel_parallel_tasks", 64},
    {"program_cores", 4},
    {"program_vector_bytes", 64},
};

class AnalyticModelTest : public testing::Test {
 protected:
  AnalyticModelTest() : names_(AnalyticModel::Columns().begin(), AnalyticModel::Columns().end()) {
    auto made = AnalyticModel::Make(names_);
    KILN_CHECK(made.ok(), "{}", Message(made.status()));
    model_ = *std::move(made);
  }

  void AddRow(FloatMatrix& rows, const Values& values) const {
    const std::span<float> row = rows.AddRow();
    for (const auto& [name, value] : values) {
      const auto it = std::find(names_.begin(), names_.end(), name);
      KILN_CHECK(it != names_.end(), "{}", name);
      row[static_cast<size_t>(it - names_.begin())] = Scaled(name, value);
    }
  }
  FloatMatrix Program(const Values& values) const {
    FloatMatrix rows(static_cast<int>(names_.size()));
    AddRow(rows, values);
    return rows;
  }
  double Score(const FloatMatrix& program) const {
    const FloatMatrix* const programs[] = {&program};
    return model_->Predict(programs)[0];
  }
  // Returns how many times slower the program is with one value changed.
  double Slower(const Values& values, std::string_view name, double value) const {
    Values changed = values;
    changed.at(std::string(name)) = value;
    return Score(Program(changed)) / Score(Program(values));
  }

  std::vector<std::string_view> names_;
  std::unique_ptr<AnalyticModel> model_;
};

TEST_F(AnalyticModelTest, RefusesColumnsThatLackOne) {
  names_.erase(std::find(names_.begin(), names_.end(), "kernel_barriers"));
  EXPECT_THAT(AnalyticModel::Make(names_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a column 'kernel_barriers'")));
}

TEST_F(AnalyticModelTest, EstimatesSecondsOfAGpu) {
  // 8 warps of 40,000 instructions on four schedulers: 80,000 cycles at 1.7 GHz, and latencies.
  EXPECT_GT(-Score(Program(kGpu)), 47e-6);
  EXPECT_LT(-Score(Program(kGpu)), 90e-6);
}

TEST_F(AnalyticModelTest, WhatIsSlowOnAGpu) {
  EXPECT_GT(Slower(kGpu, "kernel_thread_instructions", 80000), 1.5);
  EXPECT_GT(Slower(kGpu, "kernel_thread_shared_wavefronts", 64000), 2);
  EXPECT_GT(Slower(kGpu, "kernel_thread_sectors", 64000), 2);
  EXPECT_GT(Slower(kGpu, "kernel_blocks", 133), 1.2);  // one multiprocessor has two blocks
  // Each persistent block computes three tiles.
  EXPECT_GT(Slower(kGpu, "kernel_parallel_tasks", 3 * 132), 1.5);
  EXPECT_GT(Slower(kGpu, "kernel_stages", 512), 1.5);
  EXPECT_GT(Slower(kGpu, "kernel_spilled", 26), 1.5);
  EXPECT_LT(Slower(kGpu, "kernel_spilled", 5000), 8);
  EXPECT_GT(Slower(kGpu, "row_chains", 1), 1.2);
  EXPECT_LT(Slower(kGpu, "kernel_global_bytes", 1e6), 1.0001);  // hidden
  // The 132 blocks, in clusters of 4, do not run at once.
  EXPECT_GT(Slower(kGpu, "kernel_cluster_cores", 120), 1.2);
  EXPECT_GT(Slower(kGpu, "kernel_cluster_barriers", 40), 1.1);
  EXPECT_GT(Slower(kGpu, "kernel_thread_remote_bytes", 4096), 1.2);
}

// Tiles that the bulk copy engine brings cost no instructions and have no latency, and the engine
// is faster than threads.
TEST_F(AnalyticModelTest, BulkCopiesCostLess) {
  const auto with_copies = [&](double async) {
    FloatMatrix rows = Program(kGpu);
    AddRow(rows, {{"is_gpu", 1},
                  {"row_work", 1},
                  {"row_async", async},
                  {"row_reduce_len", 1},
                  {"row_thread_trips", 1024},
                  {"row_thread_instructions", 1200},
                  {"row_thread_accesses", 960},
                  {"row_global_read_bytes", 5e8}});
    return rows;
  };
  EXPECT_EQ(Score(with_copies(0)), Score(with_copies(1)));
  EXPECT_EQ(Score(with_copies(2)), Score(with_copies(3)));
  EXPECT_LT(Score(with_copies(1)) / Score(with_copies(2)), 1.3);
  EXPECT_GT(Score(with_copies(1)) / Score(with_copies(2)), 1.02);
}

// An online softmax by units of four warps: copies have values of their own.
TEST_F(AnalyticModelTest, GroupsOfWarpsMultiplyInTurn) {
  const auto seconds = [&](double groups, double resident, double async, double work = 1) {
    Values kernel = kGpu;
    kernel["kernel_threads"] = 128 * groups;
    kernel["kernel_blocks"] = kernel["kernel_parallel_tasks"] = 132 * 8 / groups;
    kernel["kernel_blocks_per_core"] = resident;
    kernel["row_work"] = work;
    FloatMatrix rows = Program(kernel);
    AddRow(rows, {{"is_gpu", 1},
                  {"row_work", 1},
                  {"row_async", async},
                  {"row_reduce_len", 1},
                  {"row_global_read_bytes", 5e6}});
    return -Score(rows);
  };
  constexpr double kThreadsCopy = 5, kBulk = 6;
  // A second group multiplies while the first one computes exponentials, in its block or another.
  EXPECT_GT(seconds(1, 1, kBulk) / seconds(2, 1, kBulk), 1.2);
  EXPECT_GT(seconds(1, 1, kBulk) / seconds(1, 2, kBulk), 1.2);
  // Groups that copy meet at barriers.
  EXPECT_GT(seconds(2, 1, kThreadsCopy) / seconds(2, 1, kBulk), 1.01);
  // Under a mask the longest of few blocks takes twice as long as the average one.
  EXPECT_GT(seconds(8, 1, kBulk, 0.5) / seconds(8, 1, kBulk), 1.7);
}

// A warp has one of four schedulers, however few other warps there are.
TEST_F(AnalyticModelTest, LoneWarpsTakeTheirTime) {
  Values lone = kGpu;
  lone["kernel_threads"] = 32;
  EXPECT_GT(-Score(Program(lone)), 40000 / 1.7e9);
  Values four = lone;
  four["kernel_threads"] = 128;
  EXPECT_LT(Score(Program(lone)) / Score(Program(four)), 1.05);
}

TEST_F(AnalyticModelTest, WhatIsSlowOnACpu) {
  EXPECT_GT(Slower(kCpu, "row_thread_instructions", 1 << 26), 3);
  EXPECT_GT(Slower(kCpu, "row_chains", 16), 3);
  EXPECT_GT(Slower(kCpu, "row_miss_1m", 1e9), 3);
  EXPECT_GT(Slower(kCpu, "row_register_share", 4), 1.2);
  EXPECT_GT(Slower(kCpu, "kernel_parallel_tasks", 1), 3.5);  // 4, except for the fork
  EXPECT_GT(Slower(kCpu, "kernel_parallel_tasks", 5), 1.4);
}

// The data of a kernel are in the cache from the run before.
TEST_F(AnalyticModelTest, ACpuMissesOnlyWhatDoesNotStayInItsCaches) {
  Values small = kCpu;
  small["kernel_unique_bytes"] = 1e5;
  EXPECT_EQ(Slower(small, "row_miss_1m", 1e9), 1);
  EXPECT_LT(Slower(kCpu, "kernel_unique_bytes", 1e5), 1);
}

TEST_F(AnalyticModelTest, AProgramIsTheSumOfItsRows) {
  FloatMatrix program = Program(kGpu);
  Values second = kGpu;
  second["kernel_index"] = 1;
  AddRow(program, second);
  const std::vector<double> rows = model_->PredictRows(program);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[0], Score(Program(kGpu)), 1e-9);
  EXPECT_NEAR(rows[0] + rows[1], Score(program), 1e-12);
  EXPECT_LT(Score(program), Score(Program(kGpu)));
  EXPECT_EQ(Score(FloatMatrix(1)), -std::numeric_limits<double>::infinity());
}

TEST_F(AnalyticModelTest, HasNothingToLearnOrToSave) {
  EXPECT_TRUE(model_->trained());
  ASSERT_OK(model_->Update({}));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, model_->Save());
  EXPECT_OK(model_->Load(bytes));
  EXPECT_THAT(model_->Load("forest"), StatusIs(StatusCode::kInvalidArgument, testing::_));
}

}  // namespace
}  // namespace kiln::costmodel
