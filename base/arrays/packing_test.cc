#include "base/arrays/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Packs the elements 1, 2, 3, ...; 0 is padding.
std::vector<int32_t> Packed(const Packing& packing) {
  int64_t elements = 1;
  for (const int64_t extent : packing.shape) elements *= extent;
  std::vector<int32_t> plain(static_cast<size_t>(elements));
  std::iota(plain.begin(), plain.end(), 1);
  std::vector<int32_t> packed(static_cast<size_t>(PackedElements(packing)), -1);
  Pack(packing, sizeof(int32_t), std::as_bytes(std::span(plain)),
       std::as_writable_bytes(std::span(packed)));
  return packed;
}

TEST(PackingTest, OrderOfLoops) {
  const Packing packing{.shape = {2, 4}, .dims = {{1, 2, 2}, {0, 2, 1}, {1, 2, 1}}};
  ASSERT_OK(CheckPacking(packing));
  EXPECT_THAT(PackedShape(packing), ElementsAre(2, 2, 2));
  EXPECT_THAT(Packed(packing), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_EQ(PackingText(packing), "[2, 4] by [1: 2, 0: 1, 1: 1]");
}

TEST(PackingTest, TailsAreZeros) {
  EXPECT_THAT(Packed({.shape = {5}, .dims = {{0, 2, 3}, {0, 3, 1}}}),
              ElementsAre(1, 2, 3, 4, 5, 0));
  EXPECT_THAT(Packed({.shape = {3, 2}, .dims = {{0, 2, 2}, {1, 2, 1}, {0, 2, 1}}}),
              ElementsAre(1, 3, 2, 4, 5, 0, 6, 0));
  // The tail is a whole dimension, further out.
  EXPECT_THAT(Packed({.shape = {3, 1}, .dims = {{0, 2, 1}, {0, 2, 2}}}), ElementsAre(1, 3, 2, 0));
}

TEST(PackingTest, OverlappingStepsRepeatElements) {
  EXPECT_THAT(Packed({.shape = {4}, .dims = {{0, 2, 2}, {0, 3, 1}}}),
              ElementsAre(1, 2, 3, 3, 4, 0));
}

TEST(PackingTest, NoDimensions) {
  EXPECT_THAT(Packed({.shape = {1, 1}, .dims = {}}), ElementsAre(1));
  EXPECT_THAT(Packed({.shape = {}, .dims = {}}), ElementsAre(1));
}

TEST(PackingTest, ElementsOfAnySize) {
  const Packing packing{.shape = {2, 2}, .dims = {{1, 2, 1}, {0, 2, 1}}};
  const std::string plain = "aabbccdd";
  std::string packed(plain.size(), '?');
  Pack(packing, 2, std::as_bytes(std::span(plain)), std::as_writable_bytes(std::span(packed)));
  EXPECT_EQ(packed, "aaccbbdd");
}

// Cuts an axis into three loops in all ways, and orders them in all ways among the loops of a
// second axis. Every element is there once; the rest is padding.
TEST(PackingTest, EveryElementOnceHoweverTheAxisIsCut) {
  for (int64_t extent = 1; extent <= 12; ++extent) {
    for (int64_t a = 1; a <= extent; ++a) {
      for (int64_t b = 1; a * b <= 2 * extent; ++b) {
        const PackedDim outer{0, (extent + a * b - 1) / (a * b), a * b}, middle{0, b, a},
            inner{0, a, 1}, other{1, 3, 1};
        std::vector<PackedDim> dims = {outer, middle, inner, other};
        std::vector<int> order = {0, 1, 2, 3};
        do {
          Packing packing{.shape = {extent, 3}, .dims = {}};
          for (const int i : order) packing.dims.push_back(dims[static_cast<size_t>(i)]);
          ASSERT_OK(CheckPacking(packing));
          std::multiset<int32_t> found;
          for (const int32_t value : Packed(packing)) {
            if (value != 0) found.insert(value);
          }
          std::multiset<int32_t> all;
          for (int32_t i = 1; i <= extent * 3; ++i) all.insert(i);
          ASSERT_EQ(found, all) << PackingText(packing);
        } while (std::ranges::next_permutation(order).found);
      }
    }
  }
}

TEST(PackingTest, Refusals) {
  const auto why = [](Packing packing) {
    const Status status = CheckPacking(packing);
    return std::string(status.message());
  };
  EXPECT_THAT(why({.shape = {4}, .dims = {{1, 4, 1}}}), HasSubstr("axis 1, expected one below 1"));
  EXPECT_THAT(why({.shape = {4}, .dims = {{-1, 4, 1}}}), HasSubstr("axis -1"));
  EXPECT_THAT(why({.shape = {0}, .dims = {}}), HasSubstr("extent 0"));
  EXPECT_THAT(why({.shape = {4}, .dims = {{0, 0, 1}}}), HasSubstr("extent 0 and step 1"));
  EXPECT_THAT(why({.shape = {4}, .dims = {{0, 4, 0}}}), HasSubstr("extent 4 and step 0"));
  EXPECT_THAT(why({.shape = {4}, .dims = {{0, 3, 1}}}), HasSubstr("leaves out elements"));
  EXPECT_THAT(why({.shape = {8}, .dims = {{0, 3, 3}, {0, 2, 1}}}), HasSubstr("leaves out"));
  EXPECT_THAT(why({.shape = {4}, .dims = {{0, INT64_MAX, 1}, {0, 2, 1}}}), HasSubstr("too many"));
  EXPECT_OK(CheckPacking({.shape = {4}, .dims = {{0, 4, INT64_MAX / 2}, {0, 4, 1}}}));
}

}  // namespace
}  // namespace kiln
