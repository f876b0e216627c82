#include "compiler/dag/tf32_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

// 10 bits of mantissa, halves away from zero.
double Rounded(float x) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(x), &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, 11)), exponent - 11);
}

struct Sums {
  std::vector<double> exact, rounded, short_of_8;
};

// 16 x 16 products of so many terms between -1 and 1.
Sums RandomSums(int64_t terms, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<float>> vectors(32);
  for (auto& vector : vectors) {
    for (int64_t k = 0; k < terms; ++k)
      vector.push_back(static_cast<float>(UniformInt(rng, 1 << 24)) / (1 << 23) - 1);
  }
  Sums sums;
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 16; j < 32; ++j) {
      double exact = 0, short_of_8 = 0;
      float rounded = 0;
      for (size_t k = 0; k < static_cast<size_t>(terms); ++k) {
        const float a = vectors[i][k], b = vectors[j][k];
        exact += static_cast<double>(a) * b;
        rounded += static_cast<float>(Rounded(a) * Rounded(b));
        if (k >= 8) short_of_8 += Rounded(a) * Rounded(b);
      }
      sums.exact.push_back(exact);
      sums.rounded.push_back(rounded);
      sums.short_of_8.push_back(short_of_8);
    }
  }
  return sums;
}

bool IsWithin(const ErrorBound& bound, const std::vector<double>& got,
              const std::vector<double>& want) {
  double largest = 0;
  for (const double w : want) largest = std::max(largest, std::abs(w));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - want[i]) > bound.absolute * largest + bound.relative * std::abs(want[i]))
      return false;
  }
  return true;
}

TEST(Tf32Bound, AllowsRoundingAndNotAMissingSlice) {
  for (const int64_t terms : {8, 24, 147, 512, 4096, 32768}) {
    const Sums sums = RandomSums(terms, 7);
    const ErrorBound bound = Tf32Bound(terms);
    EXPECT_TRUE(IsWithin(bound, sums.rounded, sums.exact)) << terms;
    EXPECT_FALSE(IsWithin(bound, sums.short_of_8, sums.exact)) << terms;
    EXPECT_FALSE(IsWithin({.relative = 1e-5, .absolute = 1e-5}, sums.rounded, sums.exact)) << terms;
  }
}

std::optional<ErrorBound> BoundOf(std::string_view op, std::string_view args,
                                  ir::Type dtype = ir::kFloat32) {
  return Tf32Bound(**BuildOp(op, args, {.dtype = dtype}));
}

TEST(Tf32Bound, OfComputations) {
  const auto product = BoundOf("matmul", "8,8,4096");
  ASSERT_TRUE(product.has_value());
  EXPECT_EQ(product->absolute, Tf32Bound(4096).absolute);
  EXPECT_LT(BoundOf("matmul", "8,8,64")->absolute, product->absolute);
  EXPECT_EQ(BoundOf("conv2d_nhwc", "1,8,8,16,8,3,3,1,1")->absolute, Tf32Bound(72).absolute);
  EXPECT_EQ(BoundOf("matmul", "8,8,64", ir::kFloat16), std::nullopt);
  EXPECT_EQ(BoundOf("softmax", "8,8"), std::nullopt);
}

}  // namespace
}  // namespace kiln::dag
