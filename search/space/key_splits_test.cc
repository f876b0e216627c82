#include "search/space/key_splits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/online_tiles.h"

namespace kiln::search {
namespace {

using schedule::OnlineTile;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Ge;
using testing::IsEmpty;
using testing::Not;

constexpr OnlineTile kTile = {.rows = 16,
                              .keys = 64,
                              .warps = 1,
                              .depth = 2,
                              .matrix_unit = ir::MatrixUnitScope::kWarp,
                              .parts = 4};

Task TaskOf(std::string_view args, std::string_view target = "cuda -arch=sm_90") {
  StatusOr<dag::DagPtr> dag = dag::BuildOp("attention", args, {.dtype = ir::kFloat16});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return Task(*std::move(dag), *target::ParseTarget(target), {}, "[]");
}

TEST(KeySplits, FewRowsWithManyKeysShareThem) {
  const auto may = [](std::string_view args, const Parameters& parameters = {}) {
    return MayShareKeys(KeySharingOf(TaskOf(args)), parameters);
  };
  EXPECT_TRUE(may("8,1,64,keys=6144"));
  EXPECT_TRUE(may("8,64,64,keys=6144"));
  EXPECT_FALSE(may("12,128,64"));
  EXPECT_FALSE(may("16,1024,64"));
  EXPECT_FALSE(may("400,1,64,keys=6144"));
  Parameters without;
  without.key_splits = false;
  EXPECT_FALSE(may("8,1,64,keys=6144", without));
  Parameters more;
  more.least_split_keys = 8192;
  EXPECT_FALSE(may("8,1,64,keys=6144", more));
}

// Every number that is offered is accepted by the step, and leaves the device with some blocks for
// each multiprocessor.
TEST(KeySplits, EveryNumberIsLegal) {
  for (const std::string_view args :
       {"8,1,64,keys=6144", "40,1,128,keys=3000", "3,40,8,keys=515"}) {
    const Task task = TaskOf(args);
    const KeySharing sharing = KeySharingOf(task);
    for (const int keys : {16, 48, 128}) {
      OnlineTile tile = kTile;
      tile.keys = keys;
      tile.parts = 1;
      const std::vector<KeySplit> splits = KeySplitsOf(tile, sharing);
      EXPECT_EQ(splits[0], KeySplit{});
      EXPECT_THAT(splits, Contains(KeySplit{2, true}));
      EXPECT_THAT(splits, Contains(Field(&KeySplit::blocks, Ge(4))));
      for (const KeySplit& split : splits) {
        tile.splits = split.blocks;
        tile.is_cluster = split.is_cluster;
        schedule::State state(task.dag);
        SCOPED_TRACE(fmt::format("{}, {} keys, {} blocks", args, keys, split.blocks));
        EXPECT_OK(
            state.Apply(std::make_shared<schedule::OnlineSoftmaxStep>(task.dag->size() - 1, tile)));
        EXPECT_LE(split.blocks * sharing.problems, 4 * sharing.multiprocessors);
      }
    }
  }
}

TEST(KeySplits, DrawsFillTheDevice) {
  const KeySharing sharing = KeySharingOf(TaskOf("8,1,64,keys=6144"));
  Rng rng(1);
  bool any_cluster = false;
  for (int i = 0; i < 50; ++i) {
    const KeySplit split = DrawKeySplit(kTile, sharing, rng);
    EXPECT_GE(split.blocks * 8, split.is_cluster ? 44 : 66);
    any_cluster |= split.is_cluster;
  }
  EXPECT_TRUE(any_cluster);
  // Three tiles of keys are too few to fill it.
  OnlineTile large = kTile;
  large.keys = 256;
  const KeySharing few = KeySharingOf(TaskOf("1,1,64,keys=700"));
  EXPECT_EQ(DrawKeySplit(large, few, rng).blocks, 3);
}

TEST(KeySplits, ClustersAreThoseOfTheDevice) {
  const KeySharing sharing = KeySharingOf(TaskOf("8,1,64,keys=6144", "cuda -arch=sm_80"));
  EXPECT_THAT(KeySplitsOf(kTile, sharing), Each(Field(&KeySplit::is_cluster, false)));
}

TEST(KeySplits, FourWarpsTogetherHaveAllKeys) {
  OnlineTile four = kTile;
  four.matrix_unit = ir::MatrixUnitScope::kWarpgroup;
  EXPECT_THAT(KeySplitsOf(four, KeySharingOf(TaskOf("8,1,64,keys=6144"))), ElementsAre(KeySplit{}));
}

TEST(KeySplits, NeighboursAreOneStepAway) {
  const KeySharing sharing = KeySharingOf(TaskOf("8,1,64,keys=6144"));
  OnlineTile tile = kTile;
  tile.splits = 8;
  // 96 tiles of keys in 8, 10 or 6 blocks.
  EXPECT_THAT(KeySplitsNear(tile, sharing),
              ElementsAre(KeySplit{6}, KeySplit{10}, KeySplit{8, true}));
  tile.is_cluster = true;
  EXPECT_THAT(KeySplitsNear(tile, sharing), ElementsAre(KeySplit{4, true}, KeySplit{8}));
}

// A change of another number keeps the split as far as the new tiles of keys allow it.
TEST(KeySplits, ChangedTilesAreLegal) {
  const Task task = TaskOf("2,1,64,keys=800");
  const OnlineSpace space = OnlineSpaceOf(task, Parameters());
  ASSERT_TRUE(space.sharing);
  Rng rng(3);
  OnlineTile tile{.matrix_unit = ir::MatrixUnitScope::kWarp, .parts = 0, .splits = 0};
  tile = RandomOnlineTile(tile, space, 0.5, rng);
  int split = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<OnlineTile> near = OnlineTilesNear(tile, space);
    ASSERT_THAT(near, Not(IsEmpty()));
    for (const OnlineTile& next : near) {
      EXPECT_THAT(KeySplitsOf(next, *space.sharing),
                  Contains(KeySplit{next.splits, next.is_cluster}));
    }
    tile = PickFrom(rng, near);
    split += tile.splits > 1;
  }
  EXPECT_GT(split, 20);
}

// Samples of units of four warps stay whole groups of warps, and have all keys in one block.
TEST(KeySplits, SamplesOfFourWarpsAreLegal) {
  const Task task = TaskOf("2,64,64,keys=2048");
  const OnlineSpace space = OnlineSpaceOf(task, Parameters());
  ASSERT_TRUE(space.sharing);
  Rng rng(7);
  for (int i = 0; i < 20; ++i) {
    const OnlineTile tile = RandomOnlineTile(
        {.matrix_unit = ir::MatrixUnitScope::kWarp, .parts = 0, .splits = 0}, space, 1, rng);
    EXPECT_EQ(tile.matrix_unit, ir::MatrixUnitScope::kWarpgroup);
    schedule::State state(task.dag);
    EXPECT_OK(
        state.Apply(std::make_shared<schedule::OnlineSoftmaxStep>(task.dag->size() - 1, tile)));
  }
}

// A block has one warp for the keys' rows if there is a single one.
TEST(KeySplits, SamplesHaveAsFewRowsAsThereAre) {
  const OnlineSpace space = OnlineSpaceOf(TaskOf("8,1,64,keys=6144"), Parameters());
  Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    const OnlineTile tile = RandomOnlineTile(
        {.matrix_unit = ir::MatrixUnitScope::kWarp, .parts = 0, .splits = 0}, space, 0.5, rng);
    EXPECT_EQ(tile.rows, 16);
    EXPECT_EQ(tile.warps, 1);
    EXPECT_EQ(tile.matrix_unit, ir::MatrixUnitScope::kWarp);
    EXPECT_GT(tile.splits, 1);
  }
}

}  // namespace
}  // namespace kiln::search
