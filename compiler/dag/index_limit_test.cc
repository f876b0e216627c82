#include "compiler/dag/index_limit.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

// Returns the limit of the input named `ids`.
int64_t LimitOfIds(std::string_view text) {
  const StatusOr<DagPtr> dag = ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  for (int i = 0; i < (*dag)->size(); ++i) {
    if ((*dag)->op(i).name() == "ids") return IndexLimits(**dag)[static_cast<size_t>(i)];
  }
  KILN_CHECK(false, "no input ids");
}

TEST(IndexLimit, ExtentOfTheIndexedDimension) {
  EXPECT_EQ(LimitOfIds(R"(
      input table: float32[5, 2]
      input ids: int32[3]
      out[i: 3, j: 2] = table[ids[i], j])"),
            5);
}

TEST(IndexLimit, TheSmallestOfSeveral) {
  EXPECT_EQ(LimitOfIds(R"(
      input table: float32[5, 2]
      input ids: int64[3]
      out[i: 3, j: 3] = table[ids[i], 0] + table[0, ids[j]])"),
            2);
}

TEST(IndexLimit, ThroughConversionsAndCopies) {
  EXPECT_EQ(LimitOfIds(R"(
      input table: float32[5, 2]
      input ids: int32[4]
      flipped[i: 4] = ids[3 - i]
      wide[i: 4] = int64(flipped[i])
      out[i: 4] = table[wide[i], 1])"),
            5);
}

TEST(IndexLimit, ThroughClamps) {
  EXPECT_EQ(LimitOfIds(R"(
      input table: float32[5]
      input ids: int32[4]
      out[i: 4] = table[min(max(ids[i], 0), 4)])"),
            5);
}

TEST(IndexLimit, NumbersThatAreNoIndices) {
  EXPECT_EQ(LimitOfIds(R"(
      input table: float32[5]
      input ids: int64[5]
      out[i: 5] = table[i] * float32(ids[i]))"),
            0);
}

}  // namespace
}  // namespace kiln::dag
