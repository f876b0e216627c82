// The effects of each step on loops, stages and attachments.
#include "compiler/schedule/state.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/schedule/buffer_shape.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

State Scheduled(dag::DagPtr dag, std::string_view steps) {
  StatusOr<std::vector<StepPtr>> parsed = ParseSteps(steps);
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  StatusOr<State> state = Replay(std::move(dag), *parsed);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *std::move(state);
}

// Returns "i.0:4 j:12 k:?", with annotations in front of the loops.
std::string Loops(const State& state, int stage) {
  std::string result;
  const Stage& s = state.stage(stage);
  for (int i = 0; i < static_cast<int>(s.loops.size()); ++i) {
    if (i > 0) result += ' ';
    if (s.annotation(i) != Annotation::kNone) {
      result += fmt::format("{} ", AnnotationName(s.annotation(i)));
    }
    const int64_t extent = s.loop(i).extent;
    result += fmt::format("{}:{}", LoopName(s, i),
                          extent == kUnknownExtent ? "?" : std::to_string(extent));
  }
  return result;
}

Attach At(int stage, int loop) { return {Attach::kIter, stage, loop}; }
dag::DagPtr Matmul() { return MatmulRelu(8, 12, 16); }

TEST(State, StartsAtRootWithTheAxesAsLoops) {
  const State state(Matmul());
  EXPECT_EQ(state.num_stages(), 4);
  EXPECT_EQ(Loops(state, 0), "");
  EXPECT_EQ(Loops(state, 2), "i:8 j:12 k:16");
  EXPECT_EQ(state.stage(2).loop(1).kind, IterKind::kSpatial);
  EXPECT_EQ(state.stage(2).loop(2).kind, IterKind::kReduce);
  EXPECT_EQ(state.attach(2), Attach{});
  EXPECT_TRUE(state.concrete());
}

TEST(State, SplitInnerToOuterRoundsTheOutermostUp) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 1, 12, [2, 5], 1]])");
  EXPECT_EQ(Loops(state, 2), "i:8 j.0:2 j.1:2 j.2:5 k:16");
  EXPECT_EQ(LoopLevel(state.stage(2), 0), -1);
  EXPECT_EQ(LoopLevel(state.stage(2), 3), 2);
}

TEST(State, SplitOuterToInnerGivesNumbersOfParts) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 1, 12, [2, 5], 0]])");
  EXPECT_EQ(Loops(state, 2), "i:8 j.0:2 j.1:5 j.2:2 k:16");
}

TEST(State, SplitKeepsTheKindAndMovesAttachments) {
  const State state =
      Scheduled(Softmax(4, 8), R"([["CA", 1, 4, 0], ["CA", 3, 4, 1], ["SP", 4, 0, 4, [2, 1], 1]])");
  // The stage was attached to the split loop, and is now attached to its innermost piece.
  EXPECT_EQ(state.attach(1), At(4, 2));
  EXPECT_EQ(state.attach(3), At(4, 3));
  EXPECT_THAT(state.AttachedTo(4, 2), ElementsAre(1));
  EXPECT_TRUE(state.HasAttached(4, 3));
  EXPECT_FALSE(state.HasAttached(4, 0));
}

TEST(State, SplitOfReductionIsReduction) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 2, 16, [4], 1]])");
  EXPECT_EQ(state.stage(2).loop(2).kind, IterKind::kReduce);
  EXPECT_EQ(state.stage(2).loop(3).kind, IterKind::kReduce);
  EXPECT_THAT(AxesOf(state.stage(2), state.stage(2).loops[3].iter), ElementsAre(2));
}

TEST(State, BlankLengthsMakeASketch) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 1, 12, [0, 3], 1]])");
  EXPECT_EQ(Loops(state, 2), "i:8 j.0:? j.1:? j.2:3 k:16");
  EXPECT_FALSE(state.concrete());
}

TEST(State, SplitWithoutLengthsRenames) {
  EXPECT_EQ(Loops(Scheduled(Matmul(), R"([["SP", 2, 1, 12, [], 1]])"), 2), "i:8 j.0:12 k:16");
}

TEST(State, FollowSplitMergesTheRest) {
  const std::string source = R"([["SP", 2, 1, 12, [3, 2, 2], 1], )";
  const auto loops = [&](std::string_view follow) {
    return Loops(Scheduled(Matmul(), source + std::string(follow) + "]"), 3);
  };
  EXPECT_EQ(loops(R"(["FSP", 3, 1, 0, 1])"), "i:8 j.0:1 j.1:12");
  EXPECT_EQ(loops(R"(["FSP", 3, 1, 0, 2])"), "i:8 j.0:1 j.1:3 j.2:4");
  EXPECT_EQ(loops(R"(["FSP", 3, 1, 0, 3])"), "i:8 j.0:1 j.1:3 j.2:2 j.3:2");
  EXPECT_EQ(loops(R"(["FSP", 3, 1, 0, 4])"), "i:8 j.0:1 j.1:3 j.2:2 j.3:2 j.4:1");
}

TEST(State, FollowSplitOfABlankIsBlank) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 1, 12, [3, 0], 1], ["FSP", 3, 1, 0, 2]])");
  EXPECT_EQ(Loops(state, 3), "i:8 j.0:? j.1:3 j.2:?");
  EXPECT_FALSE(state.concrete());
}

TEST(State, FollowFusedSplitMultipliesOneLevel) {
  const std::string sources = R"([["SP", 2, 0, 8, [1, 2], 1], ["SP", 2, 3, 12, [2, 3], 1], )";
  EXPECT_EQ(Loops(Scheduled(Matmul(), sources + R"(["FFSP", 3, 1, [1, 0], 1, 1]])"), 3),
            "i:8 j.0:2 j.1:6");
  EXPECT_EQ(Loops(Scheduled(Matmul(), sources + R"(["FFSP", 3, 1, [1, 0], 1, 0]])"), 3),
            "i:8 j.0:6 j.1:2");
}

TEST(State, FuseMultipliesAndMovesAttachments) {
  const State state = Scheduled(
      Softmax(4, 8),
      R"([["SP", 4, 1, 8, [2, 2], 1], ["CA", 1, 4, 2], ["CA", 3, 4, 3], ["FU", 4, [1, 2]]])");
  EXPECT_EQ(Loops(state, 4), "i:4 j.0@j.1@:4 j.2:2");
  EXPECT_EQ(state.attach(1), At(4, 1));
  EXPECT_EQ(state.attach(3), At(4, 2));
}

TEST(State, FuseOfKinds) {
  const State state = Scheduled(Matmul(), R"([["FU", 2, [1, 2]]])");
  EXPECT_EQ(Loops(state, 2), "i:8 j@k@:192");
  EXPECT_EQ(state.stage(2).loop(1).kind, IterKind::kMixed);
  EXPECT_THAT(AxesOf(state.stage(2), state.stage(2).loops[1].iter), ElementsAre(1, 2));
  EXPECT_EQ(Scheduled(Matmul(), R"([["FU", 2, [0, 1]]])").stage(2).loop(0).kind,
            IterKind::kSpatial);
}

TEST(State, FuseDropsAnnotations) {
  EXPECT_EQ(Loops(Scheduled(Matmul(), R"([["AN", 2, 0, 3], ["FU", 2, [0, 1]]])"), 2),
            "i@j@:96 k:16");
}

TEST(State, FuseOfNothingGivesAScalarOneLoop) {
  // S.local has reduce loops, S has none.
  const State state = Scheduled(ReduceAll(dag::Combiner::kSum, 4, 8),
                                R"([["CHW", 1, "local"], ["FU", 2, []], ["CA", 1, 2, 0]])");
  EXPECT_EQ(Loops(state, 2), "unit:1");
  EXPECT_EQ(state.stage(2).loop(0).kind, IterKind::kSpecial);
  EXPECT_EQ(Loops(state, 1), "i:? j:?");
}

TEST(State, ReorderLeavesAttachmentsWhereTheyAre) {
  const State state =
      Scheduled(Matmul(), R"([["SP", 3, 1, 12, [4], 1], ["CA", 2, 3, 1], ["RE", 3, [1, 2, 0]]])");
  EXPECT_EQ(Loops(state, 3), "j.0:3 j.1:4 i:8");
  EXPECT_EQ(state.attach(2), At(3, 1));
}

TEST(State, AnnotateMovesWithItsLoop) {
  const State state =
      Scheduled(Matmul(), R"([["AN", 2, 1, 2], ["AN", 2, 0, 3], ["RE", 2, [0, 2, 1]]])");
  EXPECT_EQ(Loops(state, 2), "parallel i:8 k:16 vectorize j:12");
}

TEST(State, PragmaSetsUnrollOrDetaches) {
  const State state = Scheduled(Matmul(), R"([["PR", 2, 0, "auto_unroll_max_step$64"]])");
  EXPECT_EQ(state.stage(2).hints[ir::Hint::kUnroll], 64);
  EXPECT_EQ(
      Scheduled(Matmul(), R"([["CA", 2, 3, 0], ["PR", 2, 0, "debug_skip_region"]])").attach(2),
      Attach{});
}

TEST(State, StorageAlign) {
  const State state = Scheduled(Matmul(), R"([["SA", 2, 0, 16, 1]])");
  EXPECT_EQ(state.stage(2).align_axis, 0);
  EXPECT_EQ(state.stage(2).align_factor, 16);
  EXPECT_EQ(state.stage(2).align_offset, 1);
}

TEST(State, ComputeAtMakesExtentsUnknown) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 2, 16, [4], 1], ["CA", 2, 3, 0]])");
  EXPECT_EQ(Loops(state, 2), "i:? j:? k.0:? k.1:?");
  EXPECT_EQ(state.attach(2), At(3, 0));
  const State root = Scheduled(
      Matmul(), R"([["CA", 2, 3, 0], ["CA", 2, 3, 1], ["CR", 2], ["SP", 2, 2, 0, [4], 1]])");
  EXPECT_EQ(root.attach(2), Attach{});
  EXPECT_EQ(Loops(root, 2), "i:? j:? k.0:? k.1:4");
}

TEST(State, InlineAndBack) {
  const State state = Scheduled(Softmax(4, 8), R"([["CA", 2, 4, 0], ["CI", 2]])");
  EXPECT_EQ(state.attach(2).kind, Attach::kInlined);
  // The readers are found through exp.
  EXPECT_THAT(state.Consumers(1), ElementsAre(3, 4));
  EXPECT_THAT(state.Consumers(0), ElementsAre(1, 3, 4));
  EXPECT_THAT(state.Producers(4), ElementsAre(0, 1, 3));
  EXPECT_EQ(Scheduled(Softmax(4, 8), R"([["CI", 2], ["CR", 2]])").attach(2), Attach{});
}

TEST(State, CacheReadInsertsACopy) {
  const State state = Scheduled(
      Softmax(4, 8),
      R"([["CA", 2, 4, 0], ["CA", 3, 4, 0], ["CHR", 2, "shared", [3]], ["CHR", 2, "shared", [5]]])");
  // The stages are data max exp exp.d.shared exp.shared sum norm.
  EXPECT_EQ(state.dag()->op(4).name(), "exp.shared");
  EXPECT_EQ(state.dag()->op(3).name(), "exp.d.shared");
  EXPECT_EQ(Loops(state, 3), "ax0:4 ax1:8");
  EXPECT_THAT(state.dag()->consumers(2), ElementsAre(3, 4));
  EXPECT_THAT(state.dag()->consumers(3), ElementsAre(6));
  EXPECT_THAT(state.dag()->consumers(4), ElementsAre(5));
  EXPECT_EQ(state.attach(2), At(6, 0));
  EXPECT_EQ(state.attach(3), Attach{});
  EXPECT_EQ(state.attach(5), At(6, 0));
  EXPECT_EQ(state.initial_dag()->size(), 5);
}

TEST(State, CacheReadLeavesReadersLoopsAlone) {
  const State state =
      Scheduled(Matmul(), R"([["SP", 2, 0, 8, [2], 1], ["CHR", 0, "shared", [2]]])");
  EXPECT_EQ(Loops(state, 3), "i.0:4 i.1:2 j:12 k:16");
  EXPECT_EQ(state.dag()->op(1).name(), "A.shared");
  EXPECT_THAT(state.dag()->producers(3), ElementsAre(1, 2));
  // Bodies are shared.
  EXPECT_EQ(&state.dag()->op(3), &state.initial_dag()->op(2));
}

TEST(State, CacheWriteMovesTheComputation) {
  const State state = Scheduled(Matmul(), R"([["CA", 2, 3, 0], ["CHW", 2, "local"]])");
  EXPECT_EQ(state.dag()->op(2).name(), "C.local");
  EXPECT_EQ(state.dag()->op(3).name(), "C");
  EXPECT_EQ(Loops(state, 2), "i:8 j:12 k:16");
  // The stage is still attached, so its region is unknown.
  EXPECT_EQ(Loops(state, 3), "i:? j:?");
  EXPECT_EQ(state.attach(2), Attach{});
  EXPECT_EQ(state.attach(3), At(4, 0));
  EXPECT_THAT(state.dag()->producers(3), ElementsAre(2));
  EXPECT_THAT(state.dag()->producers(4), ElementsAre(3));
}

TEST(State, RfactorInsertsThePartialReduction) {
  const State state = Scheduled(Matmul(), R"([["SP", 2, 2, 16, [4], 1], ["RF", 2, 3, 2]])");
  EXPECT_EQ(state.dag()->op(2).name(), "C.rf");
  EXPECT_EQ(Loops(state, 2), "i:8 j:12 k_1:4 k_0:4");
  EXPECT_EQ(state.stage(2).loop(2).kind, IterKind::kSpatial);
  EXPECT_EQ(state.stage(2).loop(3).kind, IterKind::kReduce);
  EXPECT_EQ(Loops(state, 3), "i:8 j:12 k_1:4");
  const State first = Scheduled(Matmul(), R"([["SP", 2, 2, 16, [4], 1], ["RF", 2, 2, 0]])");
  EXPECT_EQ(Loops(first, 2), "k_0:4 i:8 j:12 k_1:4");
}

TEST(State, CopiesShareUntilOneChanges) {
  const State original = Scheduled(Matmul(), R"([["SP", 2, 0, 8, [2], 1]])");
  State copy = original;
  EXPECT_EQ(copy.stage_ptr(2), original.stage_ptr(2));
  ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(R"([["FU", 2, [0, 1]]])"));
  ASSERT_OK(copy.Apply(steps[0]));
  EXPECT_EQ(Loops(original, 2), "i.0:4 i.1:2 j:12 k:16");
  EXPECT_EQ(Loops(copy, 2), "i.0@i.1@:8 j:12 k:16");
  EXPECT_EQ(copy.stage_ptr(3), original.stage_ptr(3));
  EXPECT_EQ(original.steps().size(), 1u);
}

TEST(State, SetExtents) {
  State state = Scheduled(Matmul(), R"([["CA", 2, 3, 0]])");
  const State before = state;
  state.SetExtents(2, std::vector<int64_t>{1, 12, 16});
  EXPECT_EQ(Loops(state, 2), "i:1 j:12 k:16");
  EXPECT_EQ(Loops(before, 2), "i:? j:? k:?");
}

TEST(State, AxisNamesAreCleaned) {
  dag::DagPtr matmul = Matmul();
  const State state = Scheduled(matmul, R"([["SP", 2, 0, 8, [2], 1], ["FU", 2, [1, 2]]])");
  EXPECT_EQ(LoopName(state.stage(2), 1), "i.1@j@");
  EXPECT_THAT(state.AttachedTo(2, 0), IsEmpty());
}

TEST(Replay, NamesTheStepThatFails) {
  ASSERT_OK_AND_ASSIGN(auto steps,
                       ParseSteps(R"([["SP", 2, 0, 8, [2], 1], ["SP", 2, 9, 8, [2], 1]])"));
  EXPECT_THAT(Replay(Matmul(), steps),
              StatusIs(StatusCode::kInvalidArgument,
                       "split #1 (SP) of stage 2 (C): loop 9 does not exist, the stage has loops "
                       "0 to 3"));
}

}  // namespace
}  // namespace kiln::schedule
