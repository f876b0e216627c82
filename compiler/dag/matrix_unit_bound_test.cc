#include "compiler/dag/matrix_unit_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "base/numbers/float8.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

const instructions::MatrixUnit& UnitOf(std::string_view name) {
  for (const instructions::MatrixUnit& unit : instructions::MatrixUnits()) {
    if (unit.name == name) return unit;
  }
  KILN_CHECK(false, "unit {}", name);
  return instructions::MatrixUnits()[0];
}

// Rounds to so many bits of mantissa, halves away from zero.
double Rounded(double x, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, bits)), exponent - bits);
}

// Rounds to so many bits of mantissa towards zero.
double Cut(double x, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::trunc(std::ldexp(mantissa, bits)), exponent - bits);
}

using Vectors = std::vector<std::vector<float>>;

// Makes 32 vectors of so many numbers from `low` to 1.
Vectors RandomVectors(int64_t terms, float low, uint64_t seed) {
  Rng rng(seed);
  Vectors vectors(32);
  for (auto& vector : vectors) {
    for (int64_t k = 0; k < terms; ++k)
      vector.push_back(low + (1 - low) * static_cast<float>(UniformInt(rng, 1 << 24)) / (1 << 24));
  }
  return vectors;
}

// Computes 16 x 16 products, each by `product`.
template <typename Product>
std::vector<double> Products(const Vectors& vectors, Product product) {
  std::vector<double> products;
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 16; j < 32; ++j) products.push_back(product(vectors[i], vectors[j]));
  }
  return products;
}

// Computes exact products without the first `left_out` terms.
std::vector<double> Exact(const Vectors& vectors, size_t left_out = 0) {
  return Products(vectors, [&](const auto& a, const auto& b) {
    double sum = 0;
    for (size_t k = left_out; k < a.size(); ++k) sum += static_cast<double>(a[k]) * b[k];
    return sum;
  });
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

TEST(MatrixUnitBound, AllowsRoundingToTf32AndNotAMissingSlice) {
  for (const int64_t terms : {8, 24, 147, 512, 4096, 32768}) {
    const Vectors vectors = RandomVectors(terms, -1, 7);
    Vectors factors = vectors;
    for (auto& vector : factors) {
      for (float& x : vector) x = static_cast<float>(Rounded(x, 11));
    }
    const auto rounded = Products(factors, [](const auto& a, const auto& b) {
      float sum = 0;
      for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
      return static_cast<double>(sum);
    });
    const std::vector<double> exact = Exact(vectors);
    const ErrorBound bound = MatrixUnitBound(UnitOf("tf32"), terms);
    EXPECT_TRUE(IsWithin(bound, rounded, exact)) << terms;
    EXPECT_FALSE(IsWithin(bound, Exact(factors, 8), exact)) << terms;
    EXPECT_FALSE(IsWithin({.relative = 1e-5, .absolute = 1e-5}, rounded, exact)) << terms;
  }
}

// Adds the addends of an instruction in fixed point, with so many bits of the largest one, cut
// towards zero. The addends are the products and the sum so far, or the products alone and then
// their sum.
double CutSum(const std::vector<float>& a, const std::vector<float>& b, int bits,
              bool aligns_products_to_sum) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); k += 32) {
    double largest = aligns_products_to_sum ? std::abs(sum) : 0;
    const size_t end = std::min(k + 32, a.size());
    for (size_t i = k; i < end; ++i)
      largest = std::max(largest, std::abs(static_cast<double>(a[i]) * b[i]));
    const double step = std::ldexp(1, std::ilogb(largest) + 1 - bits);
    for (size_t i = k; i < end; ++i)
      sum += std::trunc(static_cast<double>(a[i]) * b[i] / step) * step;
    sum = Cut(sum, bits);
  }
  return sum;
}

TEST(MatrixUnitBound, AllowsSumsOfFewBitsAndNotAMissingSlice) {
  for (const auto& [name, format] : {std::pair{"e4m3", kE4M3}, {"e5m2", kE5M2}}) {
    const instructions::MatrixUnit& unit = UnitOf(name);
    for (const int64_t terms : {32, 147, 512, 4096, 16384}) {
      for (const float low : {-1.0f, 0.0f}) {
        SCOPED_TRACE(fmt::format("{}, {} terms from {}", name, terms, low));
        Vectors vectors = RandomVectors(terms, low, 7);
        for (auto& vector : vectors) {
          for (float& x : vector) x = Float8ToFloat(FloatToFloat8(x, format), format);
        }
        const std::vector<double> exact = Exact(vectors);
        const ErrorBound bound = MatrixUnitBound(unit, terms);
        for (const bool aligns : {false, true}) {
          const auto cut = Products(vectors, [&](const auto& a, const auto& b) {
            return CutSum(a, b, unit.sum_bits, aligns);
          });
          EXPECT_TRUE(IsWithin(bound, cut, exact)) << aligns;
          // The errors exceed those of float32.
          if (terms > 32) {
            EXPECT_FALSE(IsWithin({.relative = 1e-4, .absolute = 1e-5}, cut, exact)) << aligns;
          }
        }
        // If all products have one sign, a slice of few terms changes the sum too little to be
        // found.
        const int64_t slice = low < 0 ? 32 : (terms + 1) / 2;
        EXPECT_FALSE(IsWithin(bound, Exact(vectors, static_cast<size_t>(slice)), exact));
      }
    }
  }
}

std::optional<ErrorBound> BoundOf(std::string_view op, std::string_view args,
                                  const OpOptions& options, bool is_used = true) {
  return MatrixUnitBound(**BuildOp(op, args, options),
                         [&](const instructions::MatrixUnit&) { return is_used; });
}

TEST(MatrixUnitBound, OfComputations) {
  const OpOptions floats = {.dtype = ir::kFloat32};
  const instructions::MatrixUnit& tf32 = UnitOf("tf32");
  const auto product = BoundOf("matmul", "8,8,4096", floats);
  ASSERT_TRUE(product.has_value());
  EXPECT_EQ(product->absolute, MatrixUnitBound(tf32, 4096).absolute);
  EXPECT_LT(BoundOf("matmul", "8,8,64", floats)->absolute, product->absolute);
  EXPECT_EQ(BoundOf("conv2d_nhwc", "1,8,8,16,8,3,3,1,1", floats)->absolute,
            MatrixUnitBound(tf32, 72).absolute);
  EXPECT_EQ(BoundOf("matmul", "8,8,64", floats, false), std::nullopt);
  EXPECT_EQ(BoundOf("softmax", "8,8", floats), std::nullopt);
}

// Factors of 16 bits are not rounded. Results of fewer bits have a larger rounding error of their
// own.
TEST(MatrixUnitBound, OfShortFloats) {
  EXPECT_EQ(BoundOf("matmul", "8,8,64", {.dtype = ir::kFloat16, .out_dtype = ir::kFloat32}),
            std::nullopt);
  EXPECT_EQ(BoundOf("matmul", "8,8,64", {.dtype = ir::kFloat8E4M3}), std::nullopt);
  for (const auto& [type, name] : {std::pair{ir::kFloat8E4M3, "e4m3"}, {ir::kFloat8E5M2, "e5m2"}}) {
    EXPECT_EQ(BoundOf("matmul", "8,8,64", {.dtype = type, .out_dtype = ir::kFloat32}),
              MatrixUnitBound(UnitOf(name), 64));
  }
}

}  // namespace
}  // namespace kiln::dag
