#include "search/factorization.h"

#include <gtest/gtest.h>

#include <map>

namespace kiln::search {
namespace {

TEST(Factorization, CountsOfTheFacts) {
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

}  // namespace
}  // namespace kiln::search
