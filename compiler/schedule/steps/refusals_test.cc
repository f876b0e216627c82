// Every refusal has a test that matches its message and checks that the state is unchanged.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

struct Refusal {
  const char* name;
  dag::DagPtr (*dag)();
  // Steps that apply.
  const char* before;
  // The step that does not apply.
  const char* step;
  const char* message;
};

// The stages are A0 B1 C2(i j k) D3.
dag::DagPtr Matmul() { return MatmulRelu(8, 12, 16); }
dag::DagPtr Argmax() { return ArgMaxRows(4, 8); }
dag::DagPtr SoftmaxDag() { return Softmax(4, 8); }

// Returns one split of loop 0, of extent 8, into `pieces`.
std::string Pieces(int stage, int pieces) {
  std::string lengths = "1";
  for (int i = 2; i < pieces; ++i) lengths += ", 1";
  return fmt::format(R"(["SP", {}, 0, 8, [{}], 1])", stage, lengths);
}
const std::string kHundredsOfLoops = Pieces(2, 509);
// Splits loops of stages 1, 2 and 4 of softmax, and attaches 2 inside of 4.
std::string LoopsOfSoftmax(int of_first) {
  return fmt::format(R"({}, {}, {}, ["CA", 2, 4, 401])", Pieces(1, of_first), Pieces(2, 401),
                     Pieces(4, 401));
}
const std::string kLoopsOfSoftmax = LoopsOfSoftmax(401);
const std::string kDeepNest = LoopsOfSoftmax(200) + R"(, ["CA", 1, 2, 401])";
const std::string kMoreLoops = Pieces(4, 21);

const Refusal kRefusals[] = {
    {"StageTooLarge", Matmul, "", R"(["CI", 4])",
     "compute inline #0 (CI) of stage 4: the state has stages 0 to 3"},
    {"StageNegative", Matmul, "", R"(["CI", -1])", "of stage -1: the state has stages 0 to 3"},
    {"BufferingOfPlaceholder", Matmul, "", R"(["BF", 0, 2])", "a placeholder has no loops"},
    {"BufferingAsynchronousAtOnce", Matmul, "", R"(["BF", 2, 1, 1])",
     "depth 1 is out of range; expected 2 to 8 for asynchronous copies"},
    {"BufferingTooDeep", Matmul, "", R"(["BF", 2, 3])",
     "depth 3 is out of range; expected 1, or 2"},
    {"SplitOfPlaceholder", Matmul, "", R"(["SP", 0, 0, 8, [2], 1])",
     "split #0 (SP) of stage 0 (A): a placeholder has no loops"},
    {"SplitOfMissingLoop", Matmul, "", R"(["SP", 2, 3, 8, [2], 1])",
     "split #0 (SP) of stage 2 (C): loop 3 does not exist, the stage has loops 0 to 2"},
    {"SplitOfNegativeLoop", Matmul, "", R"(["SP", 2, -1, 8, [2], 1])", "loop -1 does not exist"},
    {"SplitAfterReorder", SoftmaxDag, R"(["RE", 4, [1, 0]])", R"(["SP", 4, 2, 0, [2], 1])",
     "split #1 (SP) of stage 4 (norm): loop 2 does not exist, the stage has loops 0 to 1"},
    {"SplitOfAnnotated", Matmul, R"(["AN", 2, 0, 3])", R"(["SP", 2, 0, 8, [2], 1])",
     "split #1 (SP) of stage 2 (C): loop 0 (i) is already annotated with parallel; expected a loop "
     "without annotation"},
    {"SplitByNegative", Matmul, "", R"(["SP", 2, 0, 8, [2, -3], 1])",
     "length -3 is out of range; expected 1 to 2^40, or 0 for a blank"},
    {"SplitByTooMuch", Matmul, "", R"(["SP", 2, 0, 8, [1048576, 1048576, 2], 1])",
     "the product of the lengths is above 2^40"},
    {"SplitByHugeLength", Matmul, "", R"(["SP", 2, 0, 8, [9223372036854775807], 1])",
     "length 9223372036854775807 is out of range"},
    {"SplitIntoTooManyLoops", Matmul, kHundredsOfLoops.c_str(), R"(["SP", 2, 0, 8, [1, 1], 1])",
     "split #1 (SP) of stage 2 (C): the stage would have 513 loops, expected at most 512"},
    {"NestTooDeep", SoftmaxDag, kDeepNest.c_str(), kMoreLoops.c_str(),
     "with what is computed inside, 1025 loops would stand in each other, expected at most 1024"},
    {"AttachedTooDeep", SoftmaxDag, kLoopsOfSoftmax.c_str(), R"(["CA", 1, 2, 401])",
     "loops would stand in each other, expected at most 1024"},
    {"FollowOfLaterStep", Matmul, "", R"(["FSP", 2, 0, 0, 1])",
     "follow split #0 (FSP) of stage 2 (C): followed step #0 does not exist"},
    {"FollowOfNoSplit", Matmul, R"(["FU", 2, [0, 1]])", R"(["FSP", 3, 0, 0, 1])",
     "followed step #0 is a fuse (FU); expected a split (SP)"},
    {"FollowTooManyLengths", Matmul, R"(["SP", 2, 0, 8, [2, 2], 1])", R"(["FSP", 3, 0, 0, 4])",
     "n_split 4 is out of range; followed step #0 has 2 lengths, expected 1 to 3"},
    {"FollowNoLengths", Matmul, R"(["SP", 2, 0, 8, [2], 1])", R"(["FSP", 3, 0, 0, 0])",
     "n_split 0 is out of range"},
    {"FollowFusedNothing", Matmul, "", R"(["FFSP", 2, 0, [], 0, 1])",
     "the list of followed steps is empty"},
    {"FollowFusedOfNoSplit", Matmul, R"(["FU", 2, [0, 1]], ["SP", 3, 0, 8, [2], 1])",
     R"(["FFSP", 3, 2, [1, 0], 0, 1])", "followed step #0 is a fuse (FU); expected a split (SP)"},
    {"FollowFusedLevel", Matmul, R"(["SP", 2, 0, 8, [2, 2], 1])", R"(["FFSP", 3, 0, [0], 2, 1])",
     "follow fused split #1 (FFSP) of stage 3 (D): level 2 is out of range; followed step #0 has "
     "lengths 0 to 1"},
    {"FuseNotConsecutive", Matmul, "", R"(["FU", 2, [0, 2]])",
     "fuse #0 (FU) of stage 2 (C): loops [0, 2] are not consecutive"},
    {"FuseBackwards", Matmul, "", R"(["FU", 2, [1, 0]])", "loops [1, 0] are not consecutive"},
    {"FuseOutOfRange", Matmul, "", R"(["FU", 2, [2, 3]])", "loop 3 does not exist"},
    {"FuseNothing", Matmul, "", R"(["FU", 2, []])", "nothing to fuse"},
    {"FuseOverAttached", Matmul, R"(["CA", 2, 3, 0])", R"(["FU", 3, [0, 1]])",
     "fuse #1 (FU) of stage 3 (D): stages 2 (C) are computed at loop 0 (i); expected nothing "
     "attached to a fused loop "
     "except the last"},
    {"ReorderTooShort", Matmul, "", R"(["RE", 2, [1, 0]])",
     "reorder #0 (RE) of stage 2 (C): [1, 0] is not a permutation; expected every number from 0 to "
     "2 once"},
    {"ReorderTwice", Matmul, "", R"(["RE", 2, [1, 0, 1]])", "is not a permutation"},
    {"ReorderOutOfRange", Matmul, "", R"(["RE", 2, [0, 1, 3]])", "is not a permutation"},
    {"AnnotateAnnotated", Matmul, R"(["AN", 2, 0, 3])", R"(["AN", 2, 0, 1])",
     "annotate #1 (AN) of stage 2 (C): loop 0 (i) is already annotated with parallel"},
    {"AnnotateMissingLoop", Matmul, "", R"(["AN", 2, 7, 1])", "loop 7 does not exist"},
    {"PragmaUnknown", Matmul, "", R"(["PR", 2, 0, "auto_unroll_max_step$x"])",
     "pragma #0 (PR) of stage 2 (C): unknown pragma \"auto_unroll_max_step$x\"; expected "
     "\"auto_unroll_max_step$N\", "},
    {"PragmaNegative", Matmul, "", R"(["PR", 2, 0, "auto_unroll_max_step$-4"])", "unknown pragma"},
    {"PragmaMissingLoop", Matmul, "", R"(["PR", 2, 3, "auto_unroll_max_step$4"])",
     "loop 3 does not exist"},
    {"AlignSplitLoop", Matmul, R"(["SP", 2, 0, 8, [2], 1])", R"(["SA", 2, 1, 8, 0])",
     "storage align #1 (SA) of stage 2 (C): loop 1 (i.1) is not a spatial axis"},
    {"AlignReduction", Matmul, "", R"(["SA", 2, 2, 8, 0])", "loop 2 (k) is not a spatial axis"},
    {"AlignFactor", Matmul, "", R"(["SA", 2, 0, 0, 0])", "factor 0 and offset 0 are out of range"},
    {"AlignOffset", Matmul, "", R"(["SA", 2, 0, 8, 8])", "factor 8 and offset 8 are out of range"},
    {"ComputeAtItself", Matmul, "", R"(["CA", 2, 2, 0])",
     "compute at #0 (CA) of stage 2 (C): a stage cannot be computed at itself"},
    {"ComputeAtNoReader", Matmul, "", R"(["CA", 3, 2, 0])",
     "target stage 2 (C) does not read it, directly or through others; its readers are none"},
    {"ComputeAtBackwards", Matmul, R"(["CA", 2, 3, 0])", R"(["CA", 3, 2, 0])", "does not read it"},
    {"ComputeAtPlaceholder", Matmul, "", R"(["CA", 2, 0, 0])",
     "target stage 0 (A) is a placeholder"},
    {"ComputeAtMissingStage", Matmul, "", R"(["CA", 2, 9, 0])",
     "target stage 9 does not exist, the state has stages 0 to 3"},
    {"ComputeAtMissingLoop", Matmul, "", R"(["CA", 2, 3, 2])",
     "target stage 3 (D): loop 2 does not exist, the stage has loops 0 to 1"},
    {"ComputeAtInlined", SoftmaxDag, R"(["CI", 2])", R"(["CA", 1, 2, 0])",
     "target stage 2 (exp) is inlined"},
    {"ComputeAtOfPlaceholder", Matmul, "", R"(["CA", 0, 2, 0])", "a placeholder has no loops"},
    {"InlineOutput", Matmul, "", R"(["CI", 3])",
     "compute inline #0 (CI) of stage 3 (D): an output cannot be inlined"},
    {"InlineReduction", Matmul, "", R"(["CI", 2])", "a reduction cannot be inlined"},
    {"InlinePlaceholder", Matmul, "", R"(["CI", 0])", "a placeholder cannot be inlined"},
    {"InlineAttached", SoftmaxDag, R"(["CA", 1, 2, 0])", R"(["CI", 2])",
     "compute inline #1 (CI) of stage 2 (exp): stages 1 (max) are computed at loop 0 (i); expected "
     "nothing attached"},
    {"RootOfPlaceholder", Matmul, "", R"(["CR", 1])", "a placeholder has no loops"},
    {"CacheReadNoReader", Matmul, "", R"(["CHR", 0, "shared", [3]])",
     "cache read #0 (CHR) of stage 0 (A): stage 3 does not read it; its readers are 2 (C)"},
    {"CacheReadNobody", Matmul, "", R"(["CHR", 0, "shared", []])", "the list of readers is empty"},
    {"CacheReadTwice", Matmul, "", R"(["CHR", 0, "shared", [2, 2]])", "reader 2 is listed twice"},
    {"CacheReadOutput", Matmul, "", R"(["CHR", 3, "shared", [3]])", "its readers are none"},
    {"CacheReadOrder", Matmul, "", R"(["CHR", 0, "shared", [2], [0, 2]])",
     "[0, 2] is not an order of 2 dimensions; expected each number from 0 once"},
    {"CacheReadShortOrder", Matmul, "", R"(["CHR", 0, "shared", [2], [0]])",
     "[0] is not an order of 2 dimensions"},
    {"CacheReadScope", Matmul, "", R"(["CHR", 0, "", [2]])", "scope \"\" is not a word"},
    {"CacheReadScopeWord", Matmul, "", R"(["CHR", 0, "a.b", [2]])", "scope \"a.b\" is not a word"},
    {"CacheWritePlaceholder", Matmul, "", R"(["CHW", 0, "local"])", "a placeholder is not written"},
    {"CacheWriteAfterSplit", Matmul, R"(["SP", 2, 0, 8, [2], 1])", R"(["CHW", 2, "local"])",
     "cache write #1 (CHW) of stage 2 (C): the stage was split or fused before"},
    {"CacheWriteAfterReorder", Matmul, R"(["RE", 2, [1, 0, 2]])", R"(["CHW", 2, "local"])",
     "the stage was reordered or annotated before"},
    {"CacheWriteAfterAnnotate", Matmul, R"(["AN", 2, 0, 3])", R"(["CHW", 2, "local"])",
     "the stage was reordered or annotated before"},
    {"CacheWriteWithAttached", Matmul, R"(["CA", 2, 3, 0])", R"(["CHW", 3, "local"])",
     "stages 2 (C) are computed at loop 0 (i); expected nothing attached"},
    {"CacheWriteInlined", SoftmaxDag, R"(["CI", 2])", R"(["CHW", 2, "local"])",
     "an inlined stage is not written"},
    {"CacheReadTwoOutputs", Argmax, "", R"(["CHR", 1, "local", [2]])", "it has 2 outputs"},
    {"RfactorSpatial", Matmul, "", R"(["RF", 2, 0, 0])",
     "rfactor #0 (RF) of stage 2 (C): loop 0 (i) is not a reduction loop"},
    {"RfactorNoReduction", Matmul, "", R"(["RF", 3, 0, 0])", "loop 0 (i) is not a reduction loop"},
    {"RfactorMissingLoop", Matmul, "", R"(["RF", 2, 3, 0])", "loop 3 does not exist"},
    {"RfactorPosition", Matmul, "", R"(["RF", 2, 2, 3])",
     "position 3 of the new axis is out of range; expected 0 to 2"},
    {"RfactorPositionNegative", Matmul, "", R"(["RF", 2, 2, -1])", "position -1 of the new axis"},
    {"RfactorAfterSpatialSplit", Matmul, R"(["SP", 2, 0, 8, [2], 1])", R"(["RF", 2, 3, 0])",
     "loop 0 (i.0) is not the next spatial axis"},
    {"RfactorMixed", Matmul, R"(["FU", 2, [1, 2]])", R"(["RF", 2, 1, 0])",
     "loop 1 (j@k@) is not a reduction loop"},
    {"RfactorAnnotated", Matmul, R"(["AN", 2, 0, 3])", R"(["RF", 2, 2, 0])",
     "loop 0 (i) is annotated with parallel, which would be lost"},
    {"RfactorBlank", Matmul, R"(["SP", 2, 2, 16, [0], 1])", R"(["RF", 2, 3, 0])",
     "a split has a blank length"},
    {"RfactorWithAttached", SoftmaxDag, R"(["CA", 2, 3, 1])", R"(["RF", 3, 1, 0])",
     "stages 2 (exp) are computed at loop 1 (k); expected nothing attached"},
};

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, SaysWhyAndChangesNothing) {
  const Refusal& refusal = GetParam();
  State state(refusal.dag());
  ASSERT_OK_AND_ASSIGN(auto before, ParseSteps(fmt::format("[{}]", refusal.before)));
  for (const StepPtr& step : before) ASSERT_OK(state.Apply(step));
  const std::string loops = PrintLoops(state, false);
  const size_t count = state.steps().size();

  ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(fmt::format("[{}]", refusal.step)));
  EXPECT_THAT(state.Apply(steps[0]),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(refusal.message)));
  EXPECT_EQ(PrintLoops(state, false), loops);
  EXPECT_EQ(state.steps().size(), count);
  EXPECT_EQ(state.num_stages(), state.dag()->size());
}

INSTANTIATE_TEST_SUITE_P(All, RefusalTest, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::schedule
