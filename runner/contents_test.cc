// Tests filling and comparing: the values that go into arguments, and the judgement of outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/numbers/float16.h"
#include "base/numbers/float8.h"
#include "rpc/random_fill.h"
#include "runner/compare.h"
#include "runner/fill.h"
#include "runner/unchecked.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
std::vector<T> Filled(size_t count, DType dtype, int64_t limit, std::string_view key,
                      const std::optional<ValueRange>& range = {}) {
  std::vector<T> values(count);
  FillRandom(std::as_writable_bytes(std::span(values)), dtype, limit, key, range);
  return values;
}

TEST(FillTest, FloatsAreUniformAndSigned) {
  const auto values = Filled<float>(100000, DType::kFloat32, 0, "x");
  double sum = 0, squares = 0;
  for (float v : values) {
    ASSERT_GE(v, -1.0f);
    ASSERT_LT(v, 1.0f);
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.01);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.01);
}

TEST(FillTest, DependsOnKeyAndIndexOnly) {
  const auto values = Filled<float>(100, DType::kFloat32, 0, "x");
  const auto longer = Filled<float>(200, DType::kFloat32, 0, "x");
  EXPECT_TRUE(std::equal(values.begin(), values.end(), longer.begin()));
  EXPECT_NE(values, Filled<float>(100, DType::kFloat32, 0, "y"));
}

TEST(FillTest, RunsAscendAndBeginAgain) {
  const ValueRange range{.low = -1, .high = 2, .run = 2};
  EXPECT_THAT(Filled<int32_t>(8, DType::kInt32, 0, "x", range),
              testing::ElementsAre(-1, -1, 0, 0, 1, 1, -1, -1));
  EXPECT_EQ(Filled<int8_t>(9, DType::kInt8, 0, "x", range),
            Filled<int8_t>(9, DType::kInt8, 0, "y", range));
  std::vector<uint8_t> part(3);
  FillRandom(std::as_writable_bytes(std::span(part)), DType::kUInt8, 0, "x",
             ValueRange{.low = 0, .high = 8, .run = 3}, 5);
  EXPECT_THAT(part, testing::ElementsAre(1, 2, 2));
}

TEST(FillTest, NarrowFloatsAreConvertedNotTruncatedBits) {
  const auto wide = Filled<float>(1000, DType::kFloat32, 0, "x");
  const auto half = Filled<uint16_t>(1000, DType::kFloat16, 0, "x");
  const auto brain = Filled<uint16_t>(1000, DType::kBFloat16, 0, "x");
  for (size_t i = 0; i < wide.size(); ++i) {
    EXPECT_NEAR(HalfToFloat(half[i]), wide[i], 5e-4);
    EXPECT_NEAR(BFloat16ToFloat(brain[i]), wide[i], 4e-3);
  }
}

TEST(FillTest, Float8sAreThoseOfFloatsRounded) {
  const auto wide = Filled<float>(10000, DType::kFloat32, 0, "x");
  for (const auto& [dtype, format] :
       {std::pair{DType::kFloat8E4M3, kE4M3}, {DType::kFloat8E5M2, kE5M2}}) {
    const auto narrow = Filled<uint8_t>(10000, dtype, 0, "x");
    std::set<uint8_t> seen;
    for (size_t i = 0; i < wide.size(); ++i) {
      ASSERT_EQ(narrow[i], FloatToFloat8(wide[i], format));
      seen.insert(narrow[i]);
    }
    EXPECT_GT(seen.size(), 50u);
    for (uint8_t bits : Filled<uint8_t>(1000, dtype, 0, "x", ValueRange{1, 1.25})) {
      EXPECT_GE(Float8ToFloat(bits, format), 1);
      EXPECT_LT(Float8ToFloat(bits, format), 1.25f);
    }
  }
}

TEST(FillTest, IntegersRespectTheIndexLimit) {
  std::set<int32_t> seen;
  for (int32_t v : Filled<int32_t>(1000, DType::kInt32, 7, "x")) seen.insert(v);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 6);
  EXPECT_EQ(seen.size(), 7u);
  seen.clear();
  for (int8_t v : Filled<int8_t>(1000, DType::kInt8, 0, "x")) seen.insert(v);
  EXPECT_EQ(*seen.begin(), -8);
  EXPECT_EQ(*seen.rbegin(), 7);
  seen.clear();
  for (uint8_t v : Filled<uint8_t>(1000, DType::kBool, 0, "x")) seen.insert(v);
  EXPECT_EQ(seen, (std::set<int32_t>{0, 1}));
}

TEST(FillTest, RangesAreKeptInEveryType) {
  const ValueRange range{0.5, 2};
  double sum = 0;
  for (float v : Filled<float>(100000, DType::kFloat32, 0, "x", range)) {
    ASSERT_GE(v, 0.5f);
    ASSERT_LT(v, 2.0f);
    sum += v;
  }
  EXPECT_NEAR(sum / 1e5, 1.25, 0.01);
  // The values just below the end round to the end, so they must not be used.
  const ValueRange narrow{1, 1 + 0x1p-10};
  for (uint16_t v : Filled<uint16_t>(1000, DType::kFloat16, 0, "x", narrow)) {
    ASSERT_EQ(HalfToFloat(v), 1);
  }
  for (double v : Filled<double>(1000, DType::kFloat64, 0, "x", ValueRange{-1.7e308, 1.7e308})) {
    ASSERT_TRUE(std::isfinite(v));
  }
  std::set<int32_t> seen;
  for (int8_t v : Filled<int8_t>(1000, DType::kInt8, 0, "x", ValueRange{-2, 3})) seen.insert(v);
  EXPECT_EQ(seen, (std::set<int32_t>{-2, -1, 0, 1, 2}));
}

TEST(FillTest, PoisonIsNaNThenFiniteAndLarge) {
  std::vector<float> values(3);
  const auto bytes = std::as_writable_bytes(std::span(values));
  FillPoison(bytes, DType::kFloat32, Poison::kNaN);
  for (float v : values) EXPECT_TRUE(std::isnan(v));
  FillPoison(bytes, DType::kFloat32, Poison::kStale);
  for (float v : values) EXPECT_GT(v, 1e6f);
  std::vector<uint16_t> halves(3);
  FillPoison(std::as_writable_bytes(std::span(halves)), DType::kFloat16, Poison::kNaN);
  for (uint16_t v : halves) EXPECT_TRUE(std::isnan(HalfToFloat(v)));
  FillPoison(std::as_writable_bytes(std::span(halves)), DType::kFloat16, Poison::kStale);
  for (uint16_t v : halves) EXPECT_GT(HalfToFloat(v), 100.0f);
}

Argument Output(DType dtype, std::vector<int64_t> shape) {
  Argument argument;
  argument.name = "conv";
  argument.dtype = dtype;
  argument.shape = shape;
  for (int64_t extent : shape) argument.elements *= extent;
  argument.bytes = argument.elements * DTypeBytes(dtype);
  argument.role = v1::ArgSpec::OUTPUT;
  return argument;
}

template <typename T>
Comparison CompareValues(DType dtype, const std::vector<T>& got, const std::vector<T>& want,
                         const v1::Tolerance& tolerance = {}) {
  return Compare(Output(dtype, {static_cast<int64_t>(got.size())}), std::as_bytes(std::span(got)),
                 std::as_bytes(std::span(want)), tolerance);
}

TEST(CompareTest, TellsTheFirstElementAndHowMany) {
  std::vector<float> want(2 * 3 * 4, 1.25f);
  std::vector<float> got = want;
  got[17] = kNaN;
  got[20] = 7;
  const Comparison result =
      Compare(Output(DType::kFloat32, {2, 3, 4}), std::as_bytes(std::span(got)),
              std::as_bytes(std::span(want)), {});
  EXPECT_EQ(result.message,
            "output conv: element [1, 1, 1]: got nan, expected 1.25; 2 of 24 elements differ "
            "by more than 0.001 of what the reference has there and 0.0001 of its largest value");
  EXPECT_EQ(result.different, 2);
  EXPECT_NEAR(result.max_error, 4.6, 1e-6);
}

TEST(CompareTest, ToleranceIsRelativePlusScaledAbsolute) {
  // The defaults of float32 are 1e-4 of the largest element plus 1e-3 of the element.
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {100, 0.009f}, {100, 0}).different, 0);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {100, 0.011f}, {100, 0}).different, 1);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {100.1f, 0}, {100, 0}).different, 0);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {100.12f, 0}, {100, 0}).different, 1);
  v1::Tolerance tolerance;
  tolerance.set_relative(1e-6);
  tolerance.set_absolute(1e-9);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {100.1f, 0}, {100, 0}, tolerance).different, 1);
}

TEST(CompareTest, NanAndInfinityEqualTheirOwnKindOnly) {
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {kNaN, kInf, -kInf, 1}, {kNaN, kInf, -kInf, 1})
                .different,
            0);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {kNaN, 1}, {kInf, 1}).different, 1);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {kInf, 1}, {-kInf, 1}).different, 1);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {3e38f, 1}, {kInf, 1}).different, 1);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {kInf, 1}, {3e38f, 1}).different, 1);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {1, 1}, {kNaN, 1}).different, 1);
}

TEST(CompareTest, AllZeroOutputsMustBeZero) {
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {0, -0.0f}, {0, 0}).different, 0);
  EXPECT_EQ(CompareValues<float>(DType::kFloat32, {1e-30f, 0}, {0, 0}).different, 1);
}

TEST(CompareTest, NarrowFloatsAreLooser) {
  const auto half = [](float v) { return FloatToHalf(v); };
  EXPECT_EQ(CompareValues<uint16_t>(DType::kFloat16, {half(1.02f)}, {half(1)}).different, 0);
  EXPECT_EQ(CompareValues<uint16_t>(DType::kFloat16, {half(1.05f)}, {half(1)}).different, 1);
  const auto brain = [](float v) { return FloatToBFloat16(v); };
  EXPECT_EQ(CompareValues<uint16_t>(DType::kBFloat16, {brain(1.05f)}, {brain(1)}).different, 0);
  EXPECT_EQ(CompareValues<uint16_t>(DType::kBFloat16, {brain(1.1f)}, {brain(1)}).different, 1);
}

// Two kernels may round to neighbours, also among the smallest numbers. Two steps apart are a
// difference.
TEST(CompareTest, NeighboursAmongFloat8sAreEqual) {
  for (const auto& [dtype, format] :
       {std::pair{DType::kFloat8E4M3, kE4M3}, {DType::kFloat8E5M2, kE5M2}}) {
    for (uint8_t bits = 0; bits < format.largest; ++bits) {
      const auto next = static_cast<uint8_t>(bits + 1);
      EXPECT_EQ(CompareValues<uint8_t>(dtype, {bits}, {next}).different, 0) << +bits;
      EXPECT_EQ(CompareValues<uint8_t>(dtype, {next}, {bits}).different, 0) << +bits;
    }
    const uint8_t one = FloatToFloat8(1, format), large = FloatToFloat8(1.5, format);
    EXPECT_EQ(CompareValues<uint8_t>(dtype, {large}, {one}).different, 1);
    EXPECT_EQ(CompareValues<uint8_t>(dtype, {2}, {0}).different, 1);
    EXPECT_EQ(CompareValues<uint8_t>(dtype, {0x7f, 0xff}, {0xff, 0x7f}).different, 0) << "NaN";
    EXPECT_EQ(CompareValues<uint8_t>(dtype, {0x7f}, {one}).different, 1);
  }
  EXPECT_EQ(MinTolerance(DType::kFloat8E4M3), 0x1p-9);
  EXPECT_EQ(MinTolerance(DType::kFloat16), 0);
}

// Compares a sum of 1,024 products of random fill with a sum that leaves out 32 of them.
TEST(CompareTest, AMissingSliceOfFloat8sIsFound) {
  constexpr size_t kRows = 32, kTerms = 1024, kSlice = 32;
  for (const auto& [dtype, format] :
       {std::pair{DType::kFloat8E4M3, kE4M3}, {DType::kFloat8E5M2, kE5M2}}) {
    const auto a = Filled<uint8_t>(kRows * kTerms, dtype, 0, "a"),
               b = Filled<uint8_t>(kRows * kTerms, dtype, 0, "b");
    const auto product = [&](size_t first) {
      std::vector<uint8_t> sums;
      for (size_t i = 0; i < kRows; ++i) {
        for (size_t j = 0; j < kRows; ++j) {
          float sum = 0;
          for (size_t k = first; k < kTerms; ++k)
            sum +=
                Float8ToFloat(a[i * kTerms + k], format) * Float8ToFloat(b[j * kTerms + k], format);
          sums.push_back(FloatToFloat8(sum, format));
        }
      }
      return sums;
    };
    EXPECT_EQ(CompareValues<uint8_t>(dtype, product(0), product(0)).different, 0);
    EXPECT_GT(CompareValues<uint8_t>(dtype, product(kSlice), product(0)).different, 20);
  }
}

TEST(CompareTest, IntegersAreExactWhateverTheTolerance) {
  v1::Tolerance tolerance;
  tolerance.set_relative(1);
  tolerance.set_absolute(1);
  const Comparison result = CompareValues<int8_t>(DType::kInt8, {1, 2, -3}, {1, 2, -4}, tolerance);
  EXPECT_EQ(result.message,
            "output conv: element [2]: got -3, expected -4; 1 of 3 elements differ");
  EXPECT_EQ(
      CompareValues<int64_t>(DType::kInt64, {int64_t{1} << 60}, {(int64_t{1} << 60) + 1}).different,
      1);
}

template <typename T>
std::string Why(DType dtype, std::vector<T> want) {
  const Argument output = Output(dtype, {static_cast<int64_t>(want.size())});
  return WhyUnchecked(output, std::as_bytes(std::span(want)));
}

TEST(UncheckedTest, WhatIsNotFiniteIsCounted) {
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  EXPECT_EQ(Why(DType::kFloat32, values), "");
  for (size_t i = 0; i < 10; ++i) values[i] = i % 2 == 0 ? kNaN : -kInf;
  EXPECT_EQ(Why(DType::kFloat32, values), "") << "a few are an answer";
  values[10] = kInf;
  EXPECT_EQ(Why(DType::kFloat32, values),
            "output conv of the reference is not finite in 11 of 1000 elements");
  EXPECT_EQ(Why(DType::kFloat16, std::vector<uint16_t>{0x7bff, 0x7c00, 0xfc00, 0x7e00}),
            "output conv of the reference is not finite in 3 of 4 elements");
  EXPECT_EQ(Why(DType::kBFloat16, std::vector<uint16_t>{0x7f7f, 0x7f80}),
            "output conv of the reference is not finite in 1 of 2 elements");
  EXPECT_EQ(Why(DType::kFloat8E4M3, std::vector<uint8_t>{0x7e, 0x7f, 0xff, 0x78}),
            "output conv of the reference is not finite in 2 of 4 elements");
  EXPECT_EQ(Why(DType::kFloat8E5M2, std::vector<uint8_t>{0x7b, 0x7c, 0xfe}),
            "output conv of the reference is not finite in 2 of 3 elements");
  EXPECT_EQ(Why(DType::kFloat64, std::vector<double>{1, kNaN}),
            "output conv of the reference is not finite in 1 of 2 elements");
  EXPECT_EQ(Why(DType::kInt16, std::vector<uint16_t>{0x7f80, 0x7c00}), "");
}

TEST(UncheckedTest, ConstantsNeedNoInputs) {
  EXPECT_EQ(Why(DType::kFloat32, std::vector<float>(64)),
            "output conv of the reference is 0 in all 64 elements");
  EXPECT_EQ(Why(DType::kInt8, std::vector<int8_t>(8, -3)),
            "output conv of the reference is -3 in all 8 elements");
  EXPECT_EQ(Why(DType::kFloat32, std::vector<float>(7)), "") << "may be chance";
  std::vector<float> last(64);
  last.back() = 1;
  EXPECT_EQ(Why(DType::kFloat32, last), "");
}

}  // namespace
}  // namespace kiln::runner
