#include "costmodel/forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/status_testing.h"

namespace kiln::costmodel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Computes row[2] < 5 ? (row[0] < 1 ? 10 : 20) : 30.
Tree SmallTree() {
  return {.left = {1, 3, -1, -1, -1},
          .right = {2, 4, -1, -1, -1},
          .column = {2, 0, 0, 0, 0},
          .threshold = {5, 1, 30, 10, 20}};
}
Tree Leaf(float value) {
  return {.left = {-1}, .right = {-1}, .column = {0}, .threshold = {value}};
}

std::vector<float> Predict(const Forest& forest, const std::vector<std::vector<float>>& rows) {
  std::vector<const float*> pointers;
  for (const auto& row : rows) pointers.push_back(row.data());
  return forest.Predict(pointers);
}

TEST(ForestTest, WalksItsTrees) {
  Forest forest(3);
  EXPECT_THAT(Predict(forest, {{0, 0, 0}}), ElementsAre(0));
  ASSERT_OK(forest.Add(SmallTree()));
  EXPECT_THAT(Predict(forest, {{0, 0, 4}, {1, 0, 4}, {0, 0, 5}}), ElementsAre(10, 20, 30));
  ASSERT_OK(forest.Add(Leaf(0.5)));
  EXPECT_THAT(Predict(forest, {{0, 0, 4}}), ElementsAre(10.5));
  EXPECT_EQ(forest.trees(), 2);
}

TEST(ForestTest, RowsOfEachBlockGetTheirOwnSums) {
  Forest forest(3);
  ASSERT_OK(forest.Add(SmallTree()));
  std::vector<std::vector<float>> rows;
  std::vector<float> expected;
  for (int i = 0; i < 203; ++i) {
    rows.push_back({static_cast<float>(i % 2), 0, static_cast<float>(i % 7)});
    expected.push_back(i % 7 >= 5 ? 30.0F : i % 2 == 0 ? 10.0F : 20.0F);
  }
  EXPECT_EQ(Predict(forest, rows), expected);
}

TEST(ForestTest, ValuesThatAreNotFiniteStayInsideTheTree) {
  Forest forest(3);
  ASSERT_OK(forest.Add(SmallTree()));
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Predict(forest, {{nan, nan, nan}, {inf, inf, inf}, {-inf, -inf, -inf}, {nan, 0, 0}}),
              ElementsAre(30, 30, 10, 20));
}

TEST(ForestTest, RefusesWhatIsNoTree) {
  Forest forest(3);
  Tree tree = SmallTree();
  tree.column[0] = 3;
  EXPECT_THAT(forest.Add(tree), StatusIs(StatusCode::kInvalidArgument, HasSubstr("column 3 of 3")));
  tree = SmallTree();
  tree.left[1] = 5;
  EXPECT_THAT(forest.Add(tree), StatusIs(StatusCode::kInvalidArgument, HasSubstr("child 5")));
  tree.left[1] = 1;  // the node is its own child
  EXPECT_THAT(forest.Add(tree), StatusIs(StatusCode::kInvalidArgument, HasSubstr("form a tree")));
  tree = SmallTree();
  tree.threshold[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(forest.Add(tree), StatusIs(StatusCode::kInvalidArgument, HasSubstr("")));
  EXPECT_THAT(forest.Add(Tree()), StatusIs(StatusCode::kInvalidArgument, HasSubstr("0 left")));
  EXPECT_EQ(forest.trees(), 0);
}

TEST(ForestTest, SaysWhatSplitsAtEachColumnGained) {
  Forest forest(3);
  EXPECT_THAT(forest.Importance(), ElementsAre());
  ASSERT_OK(forest.Add(Leaf(1)));
  EXPECT_THAT(forest.Importance(), ElementsAre());
  Tree tree = SmallTree();
  tree.gain = {2, 5, 0, 0, 0};
  ASSERT_OK(forest.Add(tree));
  ASSERT_OK(forest.Add(SmallTree()));  // the gains of this tree are not known
  EXPECT_THAT(forest.Importance(),
              ElementsAre(ColumnImportance{.column = 0, .splits = 2, .gain = 5},
                          ColumnImportance{.column = 2, .splits = 2, .gain = 2}));
  ASSERT_OK_AND_ASSIGN(const Forest loaded, Forest::Load(forest.Save()));
  EXPECT_EQ(loaded.Importance(), forest.Importance());
  tree.gain.pop_back();
  EXPECT_THAT(forest.Add(tree), StatusIs(StatusCode::kInvalidArgument, HasSubstr("4 gains")));
  tree.gain.push_back(0);
  tree.gain[1] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(forest.Add(tree), StatusIs(StatusCode::kInvalidArgument, HasSubstr("gains inf")));
}

TEST(ForestTest, LoadsWhatItSaved) {
  Forest forest(3);
  ASSERT_OK(forest.Add(SmallTree()));
  ASSERT_OK(forest.Add(Leaf(-1)));
  ASSERT_OK(forest.Add(SmallTree()));
  const std::string bytes = forest.Save();
  ASSERT_OK_AND_ASSIGN(const Forest loaded, Forest::Load(bytes));
  const std::vector<std::vector<float>> rows = {{0, 0, 4}, {1, 0, 4}, {0, 0, 5}};
  EXPECT_EQ(Predict(loaded, rows), Predict(forest, rows));
  EXPECT_EQ(loaded.Save(), bytes);
}

TEST(ForestTest, RefusesDamagedBytesWhereverTheyEnd) {
  Forest forest(3);
  ASSERT_OK(forest.Add(SmallTree()));
  const std::string bytes = forest.Save();
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(Forest::Load(bytes.substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(Forest::Load(bytes + "x").ok());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    const auto loaded = Forest::Load(damaged);  // refused, or another forest that is sound
    if (loaded.ok() && loaded->columns() == 3) Predict(*loaded, {{0, 0, 0}});
  }
}

TEST(ForestTest, RefusesNumbersThatNoForestHas) {
  Forest forest(3);
  ASSERT_OK(forest.Add(SmallTree()));
  const auto with = [&](size_t at, int32_t number) {
    std::string bytes = forest.Save();
    std::memcpy(bytes.data() + at, &number, sizeof number);
    return Forest::Load(bytes).status();
  };
  constexpr size_t kColumns = 0, kFirstChild = 12;
  constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(with(kColumns, kLargest),
              StatusIs(StatusCode::kDataLoss, HasSubstr("2147483647 columns, expected 0 to")));
  EXPECT_THAT(with(kFirstChild, kLargest),
              StatusIs(StatusCode::kDataLoss, HasSubstr("has child 2147483647")));
}

}  // namespace
}  // namespace kiln::costmodel
