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
  const bool raw = name == "is_gpu" || name == "row_work" || name == "row_register_share" ||
                   name == "row_async" || name == "kernel_wave_share";
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

// The two sums of a mean and a variance of 32x56x56x256 in float32 over all but the channels. The
// values, and the times on an H200, are those of two measured kernels: 25.9 and 119.5 us.
TEST_F(AnalyticModelTest, MemoryNeedsThreadsThatRead) {
  const Values many = {
      {"is_gpu", 1},
      {"row_work", 1},
      {"row_thread_trips", 196},
      {"row_thread_instructions", 990},
      {"row_chains", 1},
      {"row_reduce_len", 196},
      {"kernel_blocks", 128},
      {"kernel_parallel_tasks", 128},
      {"kernel_threads", 1024},
      {"kernel_blocks_per_core", 2},
      {"kernel_thread_instructions", 994},
      {"kernel_thread_sectors", 784},
      {"kernel_thread_global_requests", 196},
      {"kernel_barriers", 1},
      {"kernel_stages", 1},
      {"kernel_unique_bytes", 1.028e8},
      {"kernel_global_bytes", 1.028e8},
      {"program_cores", 132},
      {"kernel_cluster_cores", 132},
  };
  Values few = many;
  few["row_thread_trips"] = 3136;
  few["row_thread_instructions"] = 8600;
  few["row_chains"] = 2;
  few["row_reduce_len"] = 1568;
  few["kernel_blocks"] = few["kernel_parallel_tasks"] = 256;
  few["kernel_threads"] = few["kernel_blocks_per_core"] = 32;
  few["kernel_thread_instructions"] = 8650;
  few["kernel_thread_sectors"] = 12540;
  few["kernel_thread_global_requests"] = 1568;
  EXPECT_NEAR(-Score(Program(many)) * 1e6, 25.9, 6);
  EXPECT_NEAR(-Score(Program(few)) * 1e6, 119.5, 20);
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
  EXPECT_EQ(Score(with_copies(2)), Score(with_copies(3)));
  EXPECT_LT(Score(with_copies(0)) / Score(with_copies(2)), 1.3);
  EXPECT_GT(Score(with_copies(0)) / Score(with_copies(2)), 1.02);
}

// Asynchronous copies move their sectors faster than loads do.
TEST_F(AnalyticModelTest, AsynchronousCopiesAreFasterThanLoads) {
  const auto with_copies = [&](double async) {
    Values values = kGpu;
    values["kernel_thread_sectors"] = 64000;
    FloatMatrix rows = Program(values);
    AddRow(rows, {{"is_gpu", 1},
                  {"row_work", 1},
                  {"row_async", async},
                  {"row_reduce_len", 1},
                  {"row_thread_trips", 1},
                  {"row_global_read_bytes", 1e9}});
    return rows;
  };
  EXPECT_GT(Score(with_copies(0)) / Score(with_copies(1)), 1.25);
}

// A product of 16-bit elements by units of four warps, with tiles of `rows` x `columns` results and
// `depth` terms in a ring of buffers.
struct Product {
  double rows = 128, columns = 256, depth = 64, buffers = 4;
  double tiles = 250, terms = 2560, launched = 132, pieces = 128;
  double async = 2, spilled = 0, window = 1;
};

class ProductTest : public AnalyticModelTest {
 protected:
  // The program's time in microseconds.
  double Us(const Product& p) const {
    const double iterations = p.terms / p.depth, all = p.tiles * iterations;
    const double of_first = p.rows * p.depth * 2 / p.window, of_second = p.columns * p.depth * 2;
    const double threads = 256, results = p.rows * p.columns;
    const Values kernel = {{"is_gpu", 1},
                           {"row_work", 1},
                           {"kernel_blocks", p.launched},
                           {"kernel_parallel_tasks", p.tiles},
                           {"kernel_threads", threads},
                           {"kernel_blocks_per_core", 1},
                           {"kernel_cluster_cores", 132},
                           {"kernel_barriers", iterations},
                           {"kernel_copies_ahead", p.buffers - 2},
                           {"kernel_shared_bytes", p.buffers * (of_first + of_second)},
                           {"kernel_spilled", p.spilled},
                           {"kernel_wave_share", p.launched > p.tiles ? 1 : 0.5},
                           {"kernel_unique_bytes", 1e7}};
    FloatMatrix rows(static_cast<int>(names_.size()));
    const auto add = [&](Values more) {
      more.insert(kernel.begin(), kernel.end());
      AddRow(rows, more);
    };
    for (const double bytes : {of_first, of_second}) {
      add({{"row_async", p.async},
           {"row_reduce_len", 1},
           {"row_vector_bytes", p.pieces},
           {"row_global_read_bytes", bytes * all}});
    }
    add({{"row_reduce_len", p.terms},
         {"row_thread_trips", results / threads * p.terms},
         {"row_flops", 2 * results * p.terms * p.tiles * 0.84 / 16}});
    return -Score(rows) * 1e6;
  }
};

// A dense layer of 1280 x 6400 x 2560. On an H200 these tiles took 58.4, 74.0 and 69 us.
TEST_F(ProductTest, LargeTilesThatFillTheDevice) {
  const double best = Us({});
  EXPECT_NEAR(best, 58.4, 4);
  EXPECT_GT(Us({.columns = 224, .tiles = 290}), 1.2 * best);
  EXPECT_GT(Us({.columns = 192, .buffers = 5, .tiles = 340}), 1.1 * best);
  EXPECT_GT(Us({.tiles = 250, .launched = 250}), 1.01 * best);  // each block begins anew
  EXPECT_GT(Us({.async = 3}), 1.01 * best);
  EXPECT_GT(Us({.spilled = 25}), 3 * best);
}

TEST_F(ProductTest, CopiesTakeTheirTime) {
  // Two buffers, one of which is read.
  EXPECT_GT(Us({.columns = 128, .buffers = 2}), 1.3 * Us({.columns = 128}));
  // Rows of 32 bytes, which the units read as whole lines.
  EXPECT_GT(Us({.depth = 16, .buffers = 8, .pieces = 32}), 1.5 * Us({}));
  // Each element of a window is read for three products, through registers.
  EXPECT_GT(Us({.window = 3}), 1.2 * Us({}));
}

// 56 tiles of 4,608 terms: streamed sums keep all multiprocessors busy.
TEST_F(ProductTest, StreamedSums) {
  const Product apart = {.columns = 128, .tiles = 56, .terms = 4608, .launched = 56};
  Product streamed = apart;
  streamed.launched = 132;
  EXPECT_LT(Us(streamed), 0.9 * Us(apart));
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
