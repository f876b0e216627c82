#include "compiler/lower/bounds.h"

#include "base/status_testing.h"
#include "compiler/ir/text.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

using schedule::Attach;
using testing::HasSubstr;

std::string Text(const schedule::State& state, const Bounds& bounds, ir::Expr e) {
  ir::ExprNames names;
  names.var = [&](int32_t v) {
    const LoopOwner owner = bounds.owners[v];
    return fmt::format("{}.{}", state.stage(owner.stage).op->name(),
                       schedule::LoopName(state.stage(owner.stage), owner.loop));
  };
  return ir::ExprText(e, names);
}

// Returns "min:extent" for each dimension.
std::string RegionText(const schedule::State& state, Bounds& bounds, int s) {
  const StageBounds& stage = bounds.stages[s];
  std::vector<std::string> dimensions;
  for (size_t d = 0; d < stage.region_min.size(); ++d) {
    ir::Expr min = bounds.simplifier.ToExpr(stage.region_min[d]);
    dimensions.push_back(fmt::format("{}:{}", Text(state, bounds, min), stage.region_extent[d]));
  }
  return fmt::format("{}", fmt::join(dimensions, ", "));
}

std::string GuardText(const schedule::State& state, const Bounds& bounds, int s) {
  std::vector<std::string> guards;
  for (ir::Expr guard : bounds.stages[s].guards) guards.push_back(Text(state, bounds, guard));
  return fmt::format("{}", fmt::join(guards, "; "));
}

struct RegionCase {
  std::string name;
  std::string_view dag, steps;
  std::string_view stage;
  // "min:extent" for each dimension.
  std::string_view region;
  // Joined by "; ".
  std::string_view guards = "";
};

void PrintTo(const RegionCase& c, std::ostream* out) { *out << c.name; }

class Region : public testing::TestWithParam<RegionCase> {};

TEST_P(Region, IsWhatTheReadersTouch) {
  const RegionCase& c = GetParam();
  const schedule::State state = StateFrom(c.dag, c.steps);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Bounds> bounds, InferBounds(state, /*gpu=*/false));
  const int s = StageNamed(state, c.stage);
  EXPECT_EQ(RegionText(state, *bounds, s), c.region);
  EXPECT_EQ(GuardText(state, *bounds, s), c.guards);

  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Bounds> extents, InferExtents(state, /*gpu=*/false));
  EXPECT_EQ(RegionText(state, *extents, s), c.region);
  for (int i = 0; i < state.num_stages(); ++i)
    EXPECT_EQ(extents->stages[i].iter_extents, bounds->stages[i].iter_extents) << i;
}

constexpr std::string_view kConv = R"(
    input data: float32[14]
    input w: float32[3]
    pad[x: 16] = if(x >= 1 && x < 15, data[x - 1], 0.0)
    conv[x: 14] = sum(r: 3) pad[x + r] * w[r])";
constexpr std::string_view kRows = R"(
    input A: float32[6, 8]
    B[y: 6, x: 8] = A[y, x] + 1.0
    out[y: 6, x: 8] = B[y, x] * 2.0)";

std::vector<RegionCase> RegionCases() {
  return {
      {"ConvTile", kConv, R"([["SP", 3, 0, 14, [2], 1], ["CA", 1, 3, 0]])", "pad", "conv.x.0*2:4"},
      {"ConvTileThatDoesNotDivide", kConv, R"([["SP", 3, 0, 14, [4], 1], ["CA", 1, 3, 0]])", "pad",
       "conv.x.0*4:6", "conv.x.0*4 + pad.x < 16"},
      {"ConvInsideTheWindow", kConv, R"([["CA", 1, 3, 1]])", "pad", "conv.x + conv.r:1"},
      {"ConvStride", R"(
           input data: float32[15]
           input w: float32[3]
           pad[x: 17] = if(x >= 1 && x < 16, data[x - 1], 0.0)
           conv[x: 8] = sum(r: 3) pad[x*2 + r] * w[r])",
       R"([["SP", 3, 0, 8, [2], 1], ["CA", 1, 3, 0]])", "pad", "conv.x.0*4:5"},
      {"ConvDilation", R"(
           input data: float32[16]
           input w: float32[3]
           pad[x: 16] = data[x] + 1.0
           conv[x: 12] = sum(r: 3) pad[x + r*2] * w[r])",
       R"([["SP", 3, 0, 12, [4], 1], ["CA", 1, 3, 0]])", "pad", "conv.x.0*4:8"},
      {"Pool", R"(
           input data: float32[9, 9]
           scaled[y: 9, x: 9] = data[y, x] * 2.0
           pool[y: 4, x: 4] = max(r: 3, s: 3) scaled[y*2 + r, x*2 + s])",
       R"([["CA", 1, 2, 0]])", "scaled", "pool.y*2:3, 0:9"},
      {"WholeWhenNothingStands", kRows, R"([["SP", 2, 0, 6, [6], 1], ["CA", 1, 2, 0]])", "B",
       "0:6, 0:8"},
      {"TwoReadsAtAConstantDistance", R"(
           input A: float32[10]
           B[x: 10] = A[x] + 1.0
           out[x: 6] = B[x + 4] + B[x])",
       R"([["CA", 1, 2, 0]])", "B", "out.x:5"},
      {"TwoReadersAtAConstantDistance", R"(
           input A: float32[12]
           B[x: 12] = A[x] + 1.0
           C[x: 9] = B[x + 3] * 2.0
           out[x: 9] = B[x] + C[x])",
       R"([["CA", 2, 3, 0], ["CA", 1, 3, 0]])", "B", "out.x:4"},
      {"NoConstantDistance", R"(
           input A: float32[8]
           B[x: 8] = A[x] + 1.0
           out[x: 8] = B[x] + B[7 - x])",
       R"([["CA", 1, 2, 0]])", "B", "0:8"},
      {"Reversed", R"(
           input A: float32[8]
           B[x: 8] = A[x] + 1.0
           out[x: 8] = B[7 - x])",
       R"([["SP", 2, 0, 8, [2], 1], ["CA", 1, 2, 0]])", "B", "6 - out.x.0*2:2"},
      {"ClippedBelow", R"(
           input A: float32[4, 8]
           B[y: 4, x: 8] = A[y, x] + 1.0
           out[y: 4, x: 4] = if(x >= 1, B[y, x - 1], 0.0))",
       R"([["CA", 1, 2, 0]])", "B", "out.y:1, 0:3"},
      {"ClippedAbove", R"(
           input A: float32[4, 8]
           B[y: 4, x: 8] = A[y, x] + 1.0
           out[y: 4, x: 4] = if(x < 2, B[y, x + 6], 0.0))",
       R"([["CA", 1, 2, 0]])", "B", "out.y:1, 6:2"},
      {"GuardedWhereAMovingRegionSticksOut", R"(
           input A: float32[8]
           B[x: 8] = A[x] + 1.0
           out[x: 8] = if(x >= 1 && x < 7, B[x - 1] + B[x + 1], 0.0))",
       R"([["CA", 1, 2, 0]])", "B", "out.x - 1:3", "out.x + B.x - 1 < 8; out.x + B.x - 1 >= 0"},
      {"FusedOneRow", kRows, R"([["FU", 2, [0, 1]], ["SP", 2, 0, 48, [8], 1], ["CA", 1, 2, 0]])",
       "B", "out.y@x@.0:1, 0:8"},
      {"FusedHalfARow", kRows, R"([["FU", 2, [0, 1]], ["SP", 2, 0, 48, [4], 1], ["CA", 1, 2, 0]])",
       "B", "out.y@x@.0 // 2:1, (out.y@x@.0 % 2)*4:4"},
      {"FusedRowAndAHalf", kRows,
       R"([["FU", 2, [0, 1]], ["SP", 2, 0, 48, [12], 1], ["CA", 1, 2, 0]])", "B",
       "(out.y@x@.0*3) // 2:2, 0:8"},
      {"Gather", R"(
           input A: float32[8, 4]
           input ids: int32[3]
           T[y: 8, x: 4] = A[y, x] + 1.0
           out[i: 3, x: 4] = T[int64(ids[i]), x])",
       R"([["CA", 2, 3, 0]])", "T", "0:8, 0:4"},
      {"GatherWithinARow", R"(
           input A: float32[8, 4]
           input ids: int32[3]
           T[y: 8, x: 4] = A[y, x] + 1.0
           out[i: 3, x: 4] = T[ids[i], x])",
       R"([["CA", 2, 3, 1]])", "T", "0:8, out.x:1"},
      {"ThroughAnInlinedStage", R"(
           input A: float32[12]
           B[x: 12] = A[x] + 1.0
           shifted[x: 10] = B[x + 2] * 2.0
           out[x: 5] = shifted[x*2] + shifted[x*2 + 1])",
       R"([["CI", 2], ["CA", 1, 3, 0]])", "B", "out.x*2 + 2:2"},
      {"BesideWhatAnInlinedStageReadsElsewhere", R"(
           input A: float32[12]
           B[x: 12] = A[x] + 1.0
           other[x: 10] = A[x + 1] * 2.0
           out[x: 10] = if(other[x] < other[9 - x], B[x + 1], B[x + 2]))",
       R"([["CI", 1], ["CA", 2, 3, 0]])", "B", "out.x + 1:2"},
      {"AttachedToAnAttachedStage", R"(
           input A: float32[16]
           B[x: 16] = A[x] + 1.0
           C[x: 14] = B[x] + B[x + 2]
           out[x: 12] = C[x] + C[x + 2])",
       R"([["SP", 3, 0, 12, [4], 1], ["CA", 2, 3, 0], ["CA", 1, 2, 0]])", "B", "out.x.0*4 + C.x:3"},
      {"BesideAnAttachedStage", R"(
           input A: float32[16]
           B[x: 16] = A[x] + 1.0
           C[x: 14] = B[x] + B[x + 2]
           out[x: 12] = C[x] + C[x + 2])",
       R"([["SP", 3, 0, 12, [4], 1], ["CA", 2, 3, 0], ["CA", 1, 3, 0]])", "B", "out.x.0*4:8"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, Region, testing::ValuesIn(RegionCases()),
                         [](const auto& info) { return info.param.name; });

TEST(InferBounds, UnitLoopsHaveNoVariable) {
  const schedule::State state = StateFrom(kRows, R"([["SP", 2, 1, 8, [8], 1], ["CI", 1]])");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Bounds> bounds, InferBounds(state, false));
  EXPECT_FALSE(bounds->stages[0].computed) << "a placeholder";
  EXPECT_FALSE(bounds->stages[1].computed) << "inlined";
  EXPECT_THAT(bounds->stages[2].loop_vars, testing::ElementsAre(0, -1, 1));
}

TEST(InferBounds, RefusesBlankLengths) {
  const schedule::State state = StateFrom(kRows, R"([["SP", 2, 0, 6, [0], 1]])");
  EXPECT_THAT(InferBounds(state, false),
              StatusIs(StatusCode::kFailedPrecondition,
                       "stage 2 (out): a split has a blank length; fill all tile sizes before "
                       "lowering"));
}

TEST(InferBounds, RefusesAReaderOutsideTheLoop) {
  const schedule::State state = StateFrom(R"(
      input A: float32[8]
      B[x: 8] = A[x] + 1.0
      C[x: 8] = B[x] * 2.0
      out[x: 8] = B[x] + C[x])",
                                          R"([["CA", 1, 3, 0]])");
  EXPECT_THAT(InferBounds(state, false),
              StatusIs(StatusCode::kFailedPrecondition,
                       "stage 1 (B) is computed inside loop 0 of stage 3 (out) but stage 2 (C) "
                       "reads it outside that loop"));
}

TEST(InferBounds, RefusesAReaderInAnOuterLoop) {
  const schedule::State state = StateFrom(R"(
      input A: float32[4, 8]
      B[y: 4, x: 8] = A[y, x] + 1.0
      C[y: 4, x: 8] = B[y, x] * 2.0
      out[y: 4, x: 8] = B[y, x] + C[y, x])",
                                          R"([["CA", 2, 3, 0], ["CA", 1, 3, 1]])");
  EXPECT_THAT(InferBounds(state, false),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("reads it outside that loop")));
}

TEST(InferBounds, RefusesMoreIterationsThanFit64Bits) {
  const schedule::State state = StateFrom(R"(
      input A: float32[1]
      B[x: 1099511627776] = sum(k: 1099511627776) A[0])",
                                          R"([["FU", 1, [0, 1]]])");
  EXPECT_THAT(InferBounds(state, false),
              StatusIs(StatusCode::kFailedPrecondition,
                       "stage 1 (B): its loops have more than 2^60 iterations"));
}

// The tile has the rows that 8 elements of e number, and zeros behind the end of e.
TEST(InferBounds, ATileHasTheRowsThatAnInputChooses) {
  const schedule::State state = StateFrom(
      R"(
      input x: float32[50, 16]
      input e: int32[44]
      input w: float32[16, 8]
      c[i: 44, j: 8] = sum(k: 16) x[e[i], k] * w[k, j])",
      R"([["SP", 3, 0, 44, [8], 1], ["CHR", 1, "shared", [3]], ["CA", 2, 4, 0]])");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Bounds> bounds, InferBounds(state, /*gpu=*/true));
  const int tile = StageNamed(state, "x.shared");
  EXPECT_EQ(RegionText(state, *bounds, tile), "c.i.0*8:8, 0:16");
  ASSERT_EQ(bounds->stages[tile].fill_guards.size(), 1u);
  EXPECT_EQ(Text(state, *bounds, bounds->stages[tile].fill_guards[0]),
            "c.i.0*8 + x.shared.ax0 < 44");
  // On a CPU a tile is in no memory of its own, and has whatever may be read.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Bounds> on_cpu, InferBounds(state, /*gpu=*/false));
  EXPECT_EQ(RegionText(state, *on_cpu, tile), "0:50, 0:16");
}

TEST(InferBounds, EndsWhenItIsStopped) {
  const schedule::State state = StateFrom("input A: float32[8]\nB[x: 8] = A[x] + 1.0", "[]");
  std::stop_source stop;
  EXPECT_OK(InferBounds(state, false, stop.get_token()));
  stop.request_stop();
  EXPECT_THAT(InferBounds(state, false, stop.get_token()),
              StatusIs(StatusCode::kCancelled, "stopped"));
}

// No step leads to these states, because the steps are refused when they are applied.
TEST(InferBounds, RefusesAnAttachedOutput) {
  schedule::State state = StateFrom(R"(
      input A: float32[8]
      B[x: 8] = A[x] + 1.0
      C[x: 8] = A[x] * 2.0)",
                                    "[]");
  state.SetAttach(1, {Attach::kIter, 2, 0});
  EXPECT_THAT(InferBounds(state, false),
              StatusIs(StatusCode::kFailedPrecondition,
                       "stage 1 (B) is an output and cannot be attached to stage 2 (C)"));
}

TEST(InferBounds, RefusesAttachmentToAnInlinedStage) {
  schedule::State state = StateFrom(R"(
      input A: float32[8]
      B[x: 8] = A[x] + 1.0
      C[x: 8] = B[x] * 2.0
      D[x: 8] = C[x] - 1.0)",
                                    R"([["CI", 2]])");
  state.SetAttach(1, {Attach::kIter, 2, 0});
  EXPECT_THAT(InferBounds(state, false),
              StatusIs(StatusCode::kFailedPrecondition,
                       "stage 1 (B) is attached to stage 2 (C), which is not computed in a loop "
                       "nest of its own"));
}

}  // namespace
}  // namespace kiln::lower
