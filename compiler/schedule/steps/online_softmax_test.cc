// All tests of the OS step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

StatusOr<State> Scheduled(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(text));
  return Replay(Attention(2, 32, 48, 16), steps);
}

TEST(OnlineSoftmax, PrintsAsItWasRead) {
  constexpr std::string_view kText = R"([["OS", 8, 16, 32, 4, 2, 1]])";
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(kText));
  EXPECT_EQ(PrintSteps(steps), kText);
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(kText));
  EXPECT_THAT(PrintLoops(state),
              HasSubstr("output online softmax: 4 warps of 16 rows, tiles of 32 keys, depth 2, "
                        "matrix units\n"));
  EXPECT_THAT(PrintPrimitives(state),
              HasSubstr("s[output].online_softmax(rows=16, keys=32, warps=4, depth=2, "
                        "matrix_unit=1)\n"));
  ASSERT_OK_AND_ASSIGN(const State four, Scheduled(R"([["OS", 8, 16, 64, 8, 2, 2]])"));
  EXPECT_THAT(PrintLoops(four), HasSubstr("depth 2, matrix units of four warps\n"));
}

TEST(OnlineSoftmax, PartsOfTheKeysAreSaidWhereThereAreSeveral) {
  constexpr std::string_view kText = R"([["OS", 8, 16, 64, 2, 1, 0, 4]])";
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(kText));
  EXPECT_EQ(PrintSteps(steps), kText);
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(kText));
  EXPECT_EQ(state.online()->parts, 4);
  EXPECT_THAT(PrintLoops(state), HasSubstr("2 warps of 16 rows, tiles of 64 keys in 4 parts"));
  EXPECT_THAT(PrintPrimitives(state), HasSubstr("matrix_unit=0, parts=4)\n"));
  ASSERT_OK_AND_ASSIGN(const auto one, ParseSteps(R"([["OS", 8, 16, 64, 2, 1, 0, 1]])"));
  EXPECT_EQ(PrintSteps(one), R"([["OS", 8, 16, 64, 2, 1, 0]])");
  EXPECT_NE(one[0]->Hash(), steps[0]->Hash());
}

TEST(OnlineSoftmax, BlocksThatShareTheKeysAreSaid) {
  for (const std::string_view text :
       {R"([["OS", 8, 16, 16, 2, 1, 0, 1, 3]])", R"([["OS", 8, 16, 16, 2, 1, 0, 1, 2, 1]])"}) {
    ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(text));
    EXPECT_EQ(PrintSteps(steps), text);
  }
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(R"([["OS", 8, 16, 16, 2, 1, 0, 1, 2, 1]])"));
  EXPECT_EQ(state.online()->splits, 2);
  EXPECT_TRUE(state.online()->is_cluster);
  EXPECT_THAT(PrintLoops(state), HasSubstr("depth 1, 2 blocks share the keys in a cluster\n"));
  EXPECT_THAT(PrintPrimitives(state), HasSubstr("matrix_unit=0, splits=2, is_cluster=1)\n"));
  ASSERT_OK_AND_ASSIGN(const auto two, ParseSteps(R"([["OS", 8, 16, 16, 2, 1, 0, 1, 2]])"));
  EXPECT_NE(two[0]->Hash(), state.steps()[0]->Hash());
  EXPECT_EQ(two[0]->ShapeHash(), state.steps()[0]->ShapeHash());
}

TEST(OnlineSoftmax, IsOfAllStages) {
  ASSERT_OK_AND_ASSIGN(const State state,
                       Scheduled(R"([["OS", 8, 16, 32, 4, 2, 0], ["PR", 8, 0, "min_blocks$3"]])"));
  ASSERT_NE(state.online(), nullptr);
  EXPECT_EQ(*state.online(), (OnlineTile{.rows = 16,
                                         .keys = 32,
                                         .warps = 4,
                                         .depth = 2,
                                         .matrix_unit = ir::MatrixUnitScope::kNone}));
  EXPECT_TRUE(state.concrete());
  for (int s = 0; s < 8; ++s) {
    if (state.stage(s).is_placeholder()) continue;
    EXPECT_EQ(state.attach(s).kind, Attach::kInlined) << s;
  }
  EXPECT_EQ(state.stage(8).hints[ir::Hint::kMinBlocks], 3);
}

TEST(OnlineSoftmax, BlanksAreZero) {
  for (const std::string_view tile :
       {"0, 16, 1, 1, 1", "16, 0, 1, 1, 1", "16, 16, 0, 1, 1", "16, 16, 1, 0, 1",
        "16, 16, 1, 1, 1, 0", "16, 16, 1, 1, 1, 1, 0"}) {
    ASSERT_OK_AND_ASSIGN(const State state, Scheduled(fmt::format("[[\"OS\", 8, {}]]", tile)));
    EXPECT_FALSE(state.concrete());
  }
}

TEST(OnlineSoftmax, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([["OS", 0, 16, 16, 1, 1, 1]])", "online softmax #0 (OS) of stage 0 (Q): a placeholder"},
      {R"([["OS", 7, 16, 16, 1, 1, 1]])", "the softmax ends in stage 8 (output)"},
      {R"([["OS", 8, 24, 16, 1, 1, 1]])", "24 rows of a warp; expected a multiple of 16 up to 64"},
      {R"([["OS", 8, 16, 512, 1, 1, 1]])",
       "512 keys of a tile; expected a multiple of 16 up to 256"},
      {R"([["OS", 8, 16, 16, 17, 1, 1]])", "17 warps; expected 1 to 16"},
      {R"([["OS", 8, 16, 16, 1, 9, 1]])", "9 tiles of keys at once; expected 1 to 8"},
      {R"([["SP", 8, 0, 2, [2], 1], ["OS", 8, 16, 16, 1, 1, 1]])", "expected no steps before it"},
      {R"([["OS", 8, 16, 16, 1, 1, 1], ["SP", 8, 0, 2, [2], 1]])",
       "an online softmax computes all stages; expected no more steps than hints of its stage, 8"},
      {R"([["OS", 8, 16, 16, 1, 1, 1], ["PR", 4, 0, "min_blocks$1"]])",
       "expected no more steps than hints of its stage, 8"},
      {R"([["OS", 8, 16, 128, 1, 1, 1, 9]])", "9 parts of the keys; expected 1 to 8"},
      {R"([["OS", 8, 16, 48, 1, 1, 1, 2]])",
       "48 keys of a tile in 2 parts; expected a multiple of 16 in each"},
      {R"([["OS", 8, 16, 64, 9, 1, 1, 4]])",
       "9 warps for each of 4 parts; expected at most 32 in all"},
      {R"([["OS", 8, 16, 64, 4, 1, 2, 2]])",
       "2 parts of the keys; expected 1 for the units of four warps"},
      {R"([["OS", 8, 16, 64, 4, 1, 2, 1, 2]])",
       "2 blocks share the keys; expected 1 for the units of four warps"},
      {R"([["OS", 8, 16, 16, 1, 1, 1, 1, 3, 1]])",
       "3 blocks share the keys in a cluster; expected 2, 4 or 8"},
      {R"([["OS", 8, 16, 16, 1, 1, 1, 1, 4]])", "4 blocks share 3 tiles of keys, 1 in each"},
      {R"([["OS", 8, 16, 16, 1, 1, 1, 1, 129]])", "129 blocks that share the keys; expected 1 to"},
      {R"([["OS", 8, 16, 16, 1, 1, 1, 1, 2, 2]])", "cluster"},
      {R"([["OS", 8, 16, 16, 1, 1, 3]])", "matrix unit 3; expected 0, 1 (of one warp) or 2"},
      {R"([["OS", 8, 16, 64, 6, 1, 2]])", "6 warps of 16 rows; expected a multiple of 4 warps"},
      {R"([["OS", 8, 32, 64, 4, 1, 2]])", "4 warps of 32 rows; expected a multiple of 4 warps"}};
  for (const auto& [steps, message] : cases) {
    EXPECT_THAT(Scheduled(steps).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << steps;
  }
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(R"([["OS", 3, 16, 16, 1, 1, 1]])"));
  EXPECT_THAT(Replay(MatmulRelu(4, 4, 4), steps).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no product of a softmax")));
}

// Only the tile may be chosen anew by a search.
TEST(OnlineSoftmax, TilesHaveOneShape) {
  ASSERT_OK_AND_ASSIGN(const auto steps,
                       ParseSteps(R"([["OS", 8, 16, 32, 4, 2, 1], ["OS", 8, 32, 16, 2, 3, 1],)"
                                  R"( ["OS", 8, 16, 32, 4, 2, 0], ["OS", 8, 16, 64, 4, 2, 2]])"));
  EXPECT_NE(steps[0]->Hash(), steps[1]->Hash());
  EXPECT_NE(steps[0]->Hash(), steps[2]->Hash());
  EXPECT_EQ(steps[0]->ShapeHash(), steps[1]->ShapeHash());
  EXPECT_NE(steps[0]->ShapeHash(), steps[2]->ShapeHash());
  EXPECT_NE(steps[0]->Hash(), steps[3]->Hash());
  EXPECT_EQ(steps[0]->ShapeHash(), steps[3]->ShapeHash());
  EXPECT_TRUE(steps[0]->IsExtension());
}

}  // namespace
}  // namespace kiln::schedule
