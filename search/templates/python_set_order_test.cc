// The expected orders were printed by CPython 3.11.2.
#include "search/templates/python_set_order.h"

#include <gtest/gtest.h>

#include "search/space/factorization.h"

namespace kiln::search {
namespace {

using Numbers = std::vector<int64_t>;

Numbers PowersOfTwo(int64_t most) {
  Numbers powers;
  for (int64_t power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

Numbers DivisorsAndPowers(int64_t n) { return PythonUnionOrder(Divisors(n), PowersOfTwo(n)); }

void AddTo(uint64_t& sum, const Numbers& numbers) {
  for (int64_t number : numbers) sum = sum * 1000003 + static_cast<uint64_t>(number);
}

TEST(PythonSetOrder, IsThatOfCPython) {
  EXPECT_EQ(DivisorsAndPowers(1), (Numbers{1}));
  EXPECT_EQ(DivisorsAndPowers(7), (Numbers{1, 2, 4, 7}));
  EXPECT_EQ(DivisorsAndPowers(12), (Numbers{1, 2, 3, 4, 6, 8, 12}));
  EXPECT_EQ(DivisorsAndPowers(56), (Numbers{32, 1, 2, 4, 7, 8, 14, 16, 56, 28}));
  EXPECT_EQ(DivisorsAndPowers(112), (Numbers{32, 1, 2, 64, 4, 7, 8, 14, 16, 112, 56, 28}));
  EXPECT_EQ(DivisorsAndPowers(512), (Numbers{64, 1, 2, 128, 4, 256, 512, 8, 16, 32}));
  EXPECT_EQ(DivisorsAndPowers(360),
            (Numbers{64, 1,  2,  3,  4,  5,  6,  128, 8,  9,   10, 72,  12,  256, 15,
                     16, 18, 20, 24, 90, 30, 32, 36,  40, 360, 45, 180, 120, 60}));
}

// The sum is h after this Python code:
//   for n in range(1, 20001):
//     for v in list(set(factors(n)) | set(pow2(n))): h = (h * 1000003 + v) % 2**64
TEST(PythonSetOrder, OfAllSmallExtents) {
  uint64_t sum = 0;
  for (int64_t n = 1; n <= 20'000; ++n) AddTo(sum, DivisorsAndPowers(n));
  EXPECT_EQ(sum, 14063080570407238501u);
}

TEST(PythonSetOrder, OfSetsAtRandom) {
  uint64_t sum = 0, x = 1;
  const auto next = [&] {
    x = x * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(x >> 33);
  };
  for (int i = 0; i < 3000; ++i) {
    Numbers a(next() % 60), b(next() % 60);
    const int64_t most = 1 + next() % 5000;
    for (int64_t& number : a) number = next() % most;
    for (int64_t& number : b) number = next() % most;
    AddTo(sum, PythonUnionOrder(a, b));
  }
  EXPECT_EQ(sum, 1077635884872374962u);
}

// A set with more than 50,000 entries grows by a smaller factor.
TEST(PythonSetOrder, OfLargeSets) {
  Numbers a, b;
  for (int64_t i = 0; i < 600'000; i += 7) a.push_back(i);
  for (int64_t i = 0; i < 600'000; i += 5) b.push_back(i);
  const Numbers both = PythonUnionOrder(a, b);
  EXPECT_EQ(both.size(), 188572u);
  uint64_t sum = 0;
  AddTo(sum, both);
  EXPECT_EQ(sum, 9792955392355867088u);
}

}  // namespace
}  // namespace kiln::search
