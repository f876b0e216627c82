// Tests tiles that the bulk copy engine brings, as the search samples and changes them. Over
// products and convolutions of all types and shapes, the CUDA text computes what the program says.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 3, of each workload) choose which and how
// many. A failure prints workload, seed and steps.
#include "search/space/bulk_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/numbers/integers.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_rows.h"
#include "search/space/matrix_tile.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;
using testing::Not;

int32_t BulkCopiesOf(const State& state) {
  const std::optional<int> s = MatrixStageOf(state);
  return s ? state.stage(*s).hints[ir::Hint::kBulkCopies] : 0;
}

std::vector<State> BulkStates(const Task& task, int32_t value, uint64_t seed, size_t count) {
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  return MatrixCandidates(task, GenerateSketches({task, parameters}), parameters, seed, 1000, count,
                          [&](const State& state) { return BulkCopiesOf(state) == value; });
}

// Rows that are whole groups and rows that are not; windows, strides of their own, batches; tails
// of rows, of sums and of columns.
constexpr dag::OpCase kCases[] = {
    {"matmul", "128,64,128", "", ir::kFloat16},
    {"matmul", "256,256,64", "relu", ir::kBFloat16},
    {"matmul", "64,40,152", "", ir::kFloat16},
    {"dense", "192,48,128", "bias", ir::kFloat16},
    {"dense", "64,100,72", "", ir::kFloat16},
    {"batch_matmul", "3,64,32,64", "", ir::kFloat16},
    {"batch_matmul", "2,128,48,64,transpose_b=1", "", ir::kFloat16},
    {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1", "bias,relu", ir::kFloat16},
    {"conv2d_nhwc", "2,7,7,24,16,3,3,1,1", "", ir::kFloat16},
    {"conv2d_nhwc", "2,15,15,16,64,3,3,2,1", "relu", ir::kBFloat16},
    {"conv2d_nhwc", "1,16,16,32,64,1,1,1,0", "", ir::kFloat16},
    {"dense", "128,48,64", "", ir::kFloat32},
    {"dense", "128,48,128", "", ir::kInt8},
    {"dense", "64,40,144", "", ir::kInt8},
    {"dense", "64,48,128", "", ir::kFloat8E4M3},
    {"matmul", "49,40,80", "", ir::kFloat16},
    {"dense", "197,48,128", "bias", ir::kBFloat16},
    {"dense", "200,48,128", "", ir::kInt8},
    {"dense", "72,64,64", "relu", ir::kFloat32},
    {"matmul", "128,128,64", "", ir::kFloat32},
    {"matmul", "72,96,128", "bias", ir::kFloat32},
    {"batch_matmul", "2,72,48,64", "", ir::kFloat16},
    {"conv2d_nhwc", "3,7,7,32,64,1,1,1,0", "bias,relu", ir::kFloat16},
};

// Products with at least two rows and two columns of tiles.
constexpr dag::OpCase kPairCases[] = {
    {"matmul", "256,256,128", "", ir::kFloat16},
    {"matmul", "512,256,152", "relu", ir::kBFloat16},
    {"dense", "256,192,128", "bias", ir::kFloat16},
    {"conv2d_nhwc", "1,16,16,128,32,3,3,1,1", "bias,relu", ir::kFloat16},
    {"dense", "256,128,64", "", ir::kFloat32},
    {"dense", "256,128,128", "", ir::kInt8},
    {"matmul", "245,256,128", "", ir::kFloat16},
};

void ExpectRight(std::span<const dag::OpCase> cases, int32_t value, std::string_view call) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : cases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MatrixTask(c);
    const std::vector<State> states =
        BulkStates(task, value, seed, EnvironmentOr("KILN_CANDIDATES", 3));
    EXPECT_GE(states.size(), 2u);
    for (const State& state : states) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr(call));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (!codegen::FindNvrtc().ok()) continue;
      ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
      EXPECT_EQ(cubin.log, "");
    }
  }
}

TEST(BulkCopies, CandidatesComputeWhatTheProgramSays) { ExpectRight(kCases, 1, "copy_box("); }

TEST(BulkCopies, PairsOfBlocksComputeWhatTheProgramSays) {
  ExpectRight(kPairCases, 2, "copy_box_to_pair(");
}

// Two blocks compute all tiles.
TEST(BulkCopies, PersistentBlocksGoFromTileToTile) {
  constexpr dag::OpCase kLarge[] = {{"matmul", "256,256,256", "relu", ir::kFloat16},
                                    {"dense", "384,192,256", "bias", ir::kInt8},
                                    {"matmul", "256,192,192", "", ir::kBFloat16},
                                    {"conv2d_nhwc", "2,16,16,64,32,3,3,1,1", "relu", ir::kFloat16}};
  for (const dag::OpCase& c : kLarge) {
    for (const int32_t value : {1, 2}) {
      if (value == 2 && std::string_view(c.op).starts_with("conv")) continue;
      const Task task = MatrixTask(c);
      int found = 0;
      for (const State& state : BulkStates(task, value, EnvironmentOr("KILN_SEED", 1), 40)) {
        const int root = RootsOfMatrixUnits(state).at(0);
        if (!CanPersist(state, root, 2)) continue;
        std::vector<schedule::StepPtr> steps = state.steps();
        std::erase_if(steps, [](const schedule::StepPtr& step) {
          return schedule::HintOf(*step, ir::Hint::kPersistentBlocks).has_value();
        });
        steps.push_back(schedule::HintStep(root, ir::Hint::kPersistentBlocks, 2));
        SCOPED_TRACE(fmt::format("{}: {}", c.Name(), schedule::PrintSteps(steps)));
        ASSERT_OK_AND_ASSIGN(const State persistent, schedule::Replay(task.dag, steps, task.stop));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(persistent, {.gpu = true}));
        ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
        const auto copies = [](const codegen::CudaKernel& kernel) {
          return kernel.copying_threads > 0;
        };
        EXPECT_EQ(std::ranges::find_if(source.kernels, copies)->grid[0], 2);
        ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
        if (++found == 2) break;
      }
      EXPECT_GE(found, 1) << c.Name() << " " << value;
    }
  }
}

// The terms of all sums are divided evenly among the blocks. Blocks begin and end within sums, and
// several blocks share a sum that is longer than a block's part. The results are the same as
// without streaming.
TEST(BulkCopies, StreamedSumsAreFinishedByTheNextBlock) {
  constexpr dag::OpCase kSums[] = {
      {"matmul", "256,128,256", "relu", ir::kFloat16},
      {"dense", "192,96,512", "bias,relu", ir::kInt8},
      {"dense", "64,64,512", "", ir::kFloat32},
      {"conv2d_nhwc", "2,8,8,64,32,3,3,1,1", "bias,relu", ir::kFloat16}};
  for (const dag::OpCase& c : kSums) {
    const Task task = MatrixTask(c);
    std::set<int32_t> seen;
    for (const State& state : BulkStates(task, 1, EnvironmentOr("KILN_SEED", 1), 40)) {
      const int root = RootsOfMatrixUnits(state).at(0);
      for (const int32_t blocks : {2, 3, 7}) {
        std::vector<schedule::StepPtr> steps = state.steps();
        std::erase_if(steps, [](const schedule::StepPtr& step) {
          return schedule::HintOf(*step, ir::Hint::kPersistentBlocks).has_value() ||
                 schedule::HintOf(*step, ir::Hint::kStreamK).has_value();
        });
        steps.push_back(schedule::HintStep(root, ir::Hint::kPersistentBlocks, blocks));
        steps.push_back(schedule::HintStep(root, ir::Hint::kStreamK, 1));
        ASSERT_OK_AND_ASSIGN(const State replayed, schedule::Replay(task.dag, steps, task.stop));
        ASSERT_OK_AND_ASSIGN(const State streamed, lower::FillExtents(replayed));
        if (!CanStream(streamed, root) || seen.contains(blocks)) continue;
        SCOPED_TRACE(fmt::format("{}: {}", c.Name(), schedule::PrintSteps(steps)));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(streamed, {.gpu = true}));
        ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
        ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
        EXPECT_THAT(source.text, HasSubstr("give_part<"));
        EXPECT_TRUE(source.is_stateful);
        ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
        seen.insert(blocks);
        if (!codegen::FindNvrtc().ok()) continue;
        ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
        EXPECT_EQ(cubin.log, "");
      }
    }
    EXPECT_GE(seen.size(), 2u) << c.Name();
  }
}

// Code can be made from every sample.
TEST(BulkCopies, SamplesFit) {
  for (const auto& [cases, value] : {std::pair(std::span<const dag::OpCase>(kCases), 1),
                                     {std::span<const dag::OpCase>(kPairCases), 2}}) {
    for (const dag::OpCase& c : cases) {
      SCOPED_TRACE(c.Name());
      const Task task = MatrixTask(c);
      for (const State& state : BulkStates(task, value, 7, 20)) {
        SCOPED_TRACE(schedule::PrintSteps(state.steps()));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
        ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
        SCOPED_TRACE(ir::ProgramText(program));
        EXPECT_OK(codegen::GenerateCuda(program).status());
      }
    }
  }
}

// The windows cover one axis of the image alone. Their rows may be interleaved if the array's rows
// are whole groups.
TEST(BulkCopies, WindowsOfLargeImagesFit) {
  const Task task = MatrixTask({"conv2d_nhwc", "16,224,224,64,64,3,3,1,1", "relu", ir::kFloat16});
  for (const State& state : BulkStates(task, 1, EnvironmentOr("KILN_SEED", 7), 400)) {
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK(codegen::GenerateCuda(program).status());
  }
}

// The rows of these images lie in the order in which units read them, so nothing comes through
// registers. There are tails along both axes, several images, weights along the sum and across it,
// and all types.
TEST(BulkCopies, UnitsReadWindowsThemselves) {
  constexpr dag::OpCase kImages[] = {
      {"conv2d_nhwc", "1,18,20,32,32,3,3,1,1", "bias,relu", ir::kFloat16},
      {"conv2d_nhwc", "4,6,7,24,64,3,3,1,1", "", ir::kBFloat16},
      {"conv2d_nhwc", "8,4,6,32,32,3,2,1,1,2", "", ir::kFloat16},
      {"conv3d_ndhwc", "1,4,9,16,16,32,2,3,3,1,1", "", ir::kFloat16},
      {"conv2d_nhwc", "4,9,8,32,32,3,3,1,1,output_first=1", "", ir::kFloat32},
      {"conv2d_nhwc", "4,9,8,32,64,3,3,1,1,output_first=1", "", ir::kInt8}};
  for (const dag::OpCase& c : kImages) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    size_t found = 0;
    for (const State& state : BulkStates(task, 1, EnvironmentOr("KILN_SEED", 1), 40)) {
      const MatrixSplits splits = MatrixSplitsOf(state, *MatrixStageOf(state));
      const auto is_outside = [](const MatrixSplits::Reduction& split) {
        return split.extent > 3 || split.lengths == std::vector<int64_t>{1, 1};
      };
      const std::optional<MatrixProduct> product = TiledProductOf(state, *MatrixStageOf(state));
      if (!HasRowsInOrder(*product, splits.lengths) ||
          !std::ranges::all_of(splits.reductions, is_outside))
        continue;
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, Not(HasSubstr("load_tiles(")));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (++found == EnvironmentOr("KILN_CANDIDATES", 3)) break;
    }
    EXPECT_GE(found, 2u);
  }
}

// If an array's rows are no whole groups, its interleaved rows are copied 8 at a time.
TEST(BulkCopies, RowsThatAreNoWholeGroupsComeInPieces) {
  const Task task = MatrixTask({"matmul", "200,64,128", "", ir::kFloat16});
  const std::vector<State> states = BulkStates(task, 1, EnvironmentOr("KILN_SEED", 1), 5);
  ASSERT_FALSE(states.empty());
  for (const State& state : states) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    EXPECT_THAT(source.text, HasSubstr("for (int piece = 0; piece < "));
  }
}

// Columns that do not fill whole lines of 128 bytes are padded to whole lines. No more of the last
// line is copied than the tile has; in a pair, each block copies it for one half of the rows.
TEST(BulkCopies, RowsArePaddedToWholeLines) {
  for (const auto& [c, value] :
       {std::pair(dag::OpCase{"matmul", "256,288,128", "", ir::kFloat16}, 1),
        {{"conv2d_nhwc", "1,16,16,320,32,3,3,1,1", "bias,relu", ir::kBFloat16}, 1},
        {{"matmul", "512,288,128", "", ir::kFloat16}, 2}}) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    size_t found = 0;
    for (const State& state : BulkStates(task, value, EnvironmentOr("KILN_SEED", 1), 200)) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      const MatrixSplits splits = MatrixSplitsOf(state, *MatrixStageOf(state));
      const int64_t columns = ProductOfCounts(splits.lengths.back());
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      const auto is_padded = [&](const ir::Buffer& buffer) {
        return buffer.scope == ir::Scope::kShared && buffer.shape.back() > columns &&
               buffer.shape.back() == RoundUp(columns, 64) && columns > 64;
      };
      if (std::ranges::none_of(program.buffers, is_padded)) continue;
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr("matrix_descriptor<128, "));
      EXPECT_THAT(source.text, HasSubstr("_last_map"));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (++found == EnvironmentOr("KILN_CANDIDATES", 3)) break;
    }
    EXPECT_GE(found, 2u);
  }
}

// Rows of a window, and sums of rows that no vector divides, get no bulk copies.
TEST(BulkCopies, WhatDoesNotFitGetsNone) {
  for (const dag::OpCase& c : {dag::OpCase{"conv1d_nwc", "1,64,32,32,3,1,1", "", ir::kFloat16},
                               dag::OpCase{"matmul", "64,40,147", "", ir::kFloat16}}) {
    SCOPED_TRACE(c.Name());
    EXPECT_TRUE(BulkStates(MatrixTask(c), 1, 3, 1).empty());
  }
}

}  // namespace
}  // namespace kiln::search
