#include "search/space/factorization.h"

#include <gtest/gtest.h>

#include <map>

#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

TEST(Factorization, CountsOfTvm) {
  const std::map<std::pair<int64_t, int>, int64_t> want = {
      {{512, 4}, 700}, {{512, 3}, 210}, {{512, 2}, 49},    {{512, 1}, 7},
      {{64, 4}, 210},  {{56, 4}, 175},  {{14, 4}, 25},     {{7, 4}, 5},
      {{49, 4}, 15},   {{49, 1}, 3},    {{1000, 4}, 1170}, {{128, 3}, 119}};
  for (const auto& [key, count] : want) {
    EXPECT_EQ(CountFactorizations(key.first, key.second, 64), count)
        << key.first << ", " << key.second;
    EXPECT_EQ(static_cast<int64_t>(Factorizations(key.first, key.second, 64).size()), count);
  }
}

TEST(Factorization, RandomOnesAreUniform) {
  Rng rng(7);
  std::map<std::vector<int64_t>, int> seen;
  constexpr int kDraws = 49 * 400;
  for (int i = 0; i < kDraws; ++i) ++seen[RandomFactorization(512, 2, 64, rng)];
  ASSERT_EQ(seen.size(), 49u);
  for (const auto& [lengths, count] : seen) {
    EXPECT_EQ(512 % (lengths[0] * lengths[1]), 0);
    EXPECT_LE(lengths[1], 64);
    EXPECT_GT(count, 280);  // expected 400, standard deviation 20
    EXPECT_LT(count, 520);
  }
}

TEST(Factorization, Divisors) {
  EXPECT_EQ(Divisors(1), (std::vector<int64_t>{1}));
  EXPECT_EQ(Divisors(12), (std::vector<int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(Divisors(49), (std::vector<int64_t>{1, 7, 49}));
}

TEST(UnevenTiles, PoorDivisorsAreThoseWithoutTilesOfUsualSizes) {
  for (int64_t extent : {1, 2, 3, 4, 6, 8, 12, 14 * 2, 32, 56, 64, 112, 224, 512, 768})
    EXPECT_FALSE(HasPoorDivisors(extent)) << extent;
  for (int64_t extent : {5, 7, 13, 14, 49, 63, 127, 255, 1000, 1009})
    EXPECT_TRUE(HasPoorDivisors(extent)) << extent;
}

TEST(UnevenTiles, ExtentsAreRoundedUpALittle) {
  const std::map<int64_t, std::vector<int64_t>> want = {{1, {1}},
                                                        {7, {7, 8}},
                                                        {13, {13, 14, 16}},
                                                        {49, {49, 50, 52, 56, 64}},
                                                        {56, {56}},
                                                        {127, {127, 128}},
                                                        {1000, {1000, 1008, 1024}},
                                                        {5, {5, 6}},
                                                        {1009, {1009, 1010, 1012, 1016, 1024}}};
  for (const auto& [extent, extents] : want) EXPECT_EQ(TileExtents(extent), extents) << extent;
}

}  // namespace
}  // namespace kiln::search
