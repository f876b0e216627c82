#include "search/evolution/matrix_moves.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "search/evolution/mutation.h"
#include "search/evolution/rebuild.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/gpu_validity.h"
#include "search/space/sketch.h"

namespace kiln::search {
namespace {

using schedule::State;

Task HalfTask(const char* op, const char* args) {
  auto dag = dag::BuildOp(op, args, {.dtype = ir::kFloat16});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  target::HardwareParams hardware;
  hardware.max_shared_memory_per_block_bytes = 227 * 1024;
  return Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), hardware, "[]");
}

// Returns the first sample that matrix units compute, taking the sketches in turn, and its sketch.
std::pair<State, Sketch> MatrixSample(const Task& task, Rng& rng) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  for (size_t draw = 0; draw < 2000; ++draw) {
    const Sketch& sketch = sketches[draw % sketches.size()];
    StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
    if (state.ok() && MatrixStageOf(*state)) return {*std::move(state), sketch};
  }
  KILN_CHECK(false, "no sample in 2000 draws");
}

TEST(MatrixMoves, MostStayTilesThatFit) {
  for (const auto& [op, args] :
       {std::pair{"matmul", "256,256,256"}, std::pair{"conv2d_nhwc", "1,14,14,64,64,3,3,1,1"},
        std::pair{"conv2d_nhwc", "1,7,7,512,512,3,3,1,1"}}) {
    SCOPED_TRACE(args);
    const Task task = HalfTask(op, args);
    Rng rng(5);
    int tried = 0, fit = 0;
    std::set<std::vector<std::vector<int64_t>>> seen;
    for (int i = 0; i < 8; ++i) {
      const auto [start, sketch] = MatrixSample(task, rng);
      State state = start;
      for (int move = 0; move < 100; ++move) {
        const auto mutation = MutateAs(MutationKind::kTileSize, task, Parameters(),
                                       {state.steps(), sketch.steps}, rng);
        if (!mutation.ok()) continue;
        ++tried;
        Drop why = Drop::kIllegal;
        StatusOr<State> moved = Rebuild(task, mutation->steps, why);
        if (!moved.ok()) continue;
        ++fit;
        state = *std::move(moved);
        ASSERT_TRUE(MatrixStageOf(state).has_value());
        seen.insert(MatrixTilesOf(state).front().splits.lengths);
      }
    }
    EXPECT_GE(fit * 3, tried) << fit << " of " << tried;
    EXPECT_GE(seen.size(), 20u);
  }
}

TEST(MatrixMoves, RowsOfOddImagesMoveBetweenTheirAxes) {
  const Task task = HalfTask("conv2d_nhwc", "1,14,14,64,64,3,3,1,1");
  Rng rng(3);
  const auto [state, sketch] = MatrixSample(task, rng);
  const std::vector<MatrixTiles> all = MatrixTilesOf(state);
  ASSERT_EQ(all.size(), 1u);
  const MatrixTiles* const tiles = &all.front();
  EXPECT_EQ(tiles->splits.extents, (std::vector<int64_t>{1, 14, 14, 64}));
  std::map<size_t, std::set<int64_t>> threads;
  for (int i = 0; i < 2000; ++i) {
    MatrixTiles moved = *tiles;
    if (!MoveMatrixTiles(moved, rng)) continue;
    EXPECT_EQ(moved.splits.lengths.back()[3], tiles->splits.lengths.back()[3]);
    EXPECT_NE(moved.splits, tiles->splits);
    for (const size_t axis : {1, 2}) threads[axis].insert(moved.splits.lengths[axis][1]);
    // The batch has no elements to share out.
    EXPECT_EQ(moved.splits.lengths[0], (std::vector<int64_t>{1, 1, 1, 1}));
  }
  EXPECT_GE(threads[1].size(), 2u);
  EXPECT_GE(threads[2].size(), 2u);
}

TEST(MatrixMoves, OtherSchedulesHaveNone) {
  const Task task = HalfTask("matmul", "64,64,64");
  EXPECT_TRUE(MatrixTilesOf(State(task.dag)).empty());
}

}  // namespace
}  // namespace kiln::search
