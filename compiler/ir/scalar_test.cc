#include "compiler/ir/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/numbers/float16.h"

namespace kiln::ir {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ScalarTest, HalfRounding) {
  auto round = [](double x) { return RoundToType(x, kFloat16); };
  EXPECT_EQ(round(0.1), 0.0999755859375);
  EXPECT_EQ(round(1.0 / 3), 0.333251953125);
  // A tie goes to even.
  EXPECT_EQ(round(2049), 2048);
  EXPECT_EQ(round(2051), 2052);
  EXPECT_EQ(round(65504), 65504);
  EXPECT_EQ(round(65519.99), 65504);
  EXPECT_EQ(round(65520), kInf);
  EXPECT_EQ(round(-1e300), -kInf);
  EXPECT_EQ(round(-kInf), -kInf);
  EXPECT_EQ(round(0x1p-24), 0x1p-24);
  // A tie goes to even.
  EXPECT_EQ(round(0x1p-25), 0);
  EXPECT_EQ(round(0x1.8p-25), 0x1p-24);
  EXPECT_TRUE(std::signbit(round(-0x1p-26)));
  EXPECT_EQ(round(5e-324), 0);
  EXPECT_TRUE(std::isnan(round(kNan)));
}

TEST(ScalarTest, BFloatRounding) {
  auto round = [](double x) { return RoundToType(x, kBFloat16); };
  EXPECT_EQ(round(0.1), 0.10009765625);
  EXPECT_EQ(round(3.140625), 3.140625);
  EXPECT_EQ(round(257), 256);
  EXPECT_EQ(round(259), 260);
  EXPECT_EQ(round(0x1.fep127), 0x1.fep127);
  EXPECT_EQ(round(0x1.ffp127), kInf);
  EXPECT_EQ(round(0x1p-133), 0x1p-133);
  EXPECT_EQ(round(0x1p-134), 0);
  // Rounding to float32 first would give the tie, and then 1.
  EXPECT_EQ(round(1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
}

TEST(ScalarTest, Float8Rounding) {
  auto e4m3 = [](double x) { return RoundToType(x, kFloat8E4M3); };
  EXPECT_EQ(e4m3(0.1), 0.1015625);
  // A tie goes to even.
  EXPECT_EQ(e4m3(17), 16);
  EXPECT_EQ(e4m3(19), 20);
  EXPECT_EQ(e4m3(448), 448);
  EXPECT_EQ(e4m3(1e300), 448);
  EXPECT_EQ(e4m3(-kInf), -448);
  EXPECT_EQ(e4m3(0x1p-9), 0x1p-9);
  EXPECT_EQ(e4m3(0x1p-10), 0);
  EXPECT_EQ(e4m3(0x1.8p-10), 0x1p-9);
  EXPECT_TRUE(std::signbit(e4m3(-0x1p-11)));
  EXPECT_TRUE(std::isnan(e4m3(kNan)));
  // Rounding to float32 first would give the tie, and then 1.
  EXPECT_EQ(e4m3(1 + 0x1p-4 + 0x1p-40), 1.125);
  auto e5m2 = [](double x) { return RoundToType(x, kFloat8E5M2); };
  EXPECT_EQ(e5m2(0.1), 0.09375);
  EXPECT_EQ(e5m2(9), 8);
  EXPECT_EQ(e5m2(kInf), 57344);
  EXPECT_EQ(e5m2(-60000), -57344);
  EXPECT_EQ(e5m2(0x1p-16), 0x1p-16);
  EXPECT_EQ(e5m2(0x1p-17), 0);
}

// Rounding a double gives the same result as rounding a float.
TEST(ScalarTest, EveryHalfRoundsToFloat8AsInTheBase) {
  for (const Type type : {kFloat8E4M3, kFloat8E5M2}) {
    for (uint32_t i = 0; i < 0x10000; ++i) {
      const float half = HalfToFloat(static_cast<uint16_t>(i));
      const uint8_t bits = FloatToFloat8(half, *Float8FormatOf(type));
      uint8_t written = 0;
      WriteElement(&written, type, Value::Float(half));
      if (std::isnan(half)) {
        EXPECT_TRUE(std::isnan(ReadElement(&written, type).f)) << i;
        continue;
      }
      EXPECT_EQ(written, bits) << half;
      EXPECT_EQ(RoundToType(half, type), ReadElement(&bits, type).f) << half;
    }
  }
}

TEST(ScalarTest, TheLargestOfEachType) {
  for (const Type type : {kFloat8E4M3, kFloat8E5M2, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    const double largest = LargestFinite(type);
    EXPECT_EQ(RoundToType(largest, type), largest) << TypeName(type);
    EXPECT_EQ(std::isinf(RoundToType(largest * 2, type)), Float8FormatOf(type) == nullptr)
        << TypeName(type);
  }
}

TEST(ScalarTest, EveryFloat8SurvivesMemory) {
  for (const Type type : {kFloat8E4M3, kFloat8E5M2}) {
    for (uint32_t i = 0; i < 0x100; ++i) {
      const auto bits = static_cast<uint8_t>(i);
      const Value value = ReadElement(&bits, type);
      uint8_t written = 0;
      WriteElement(&written, type, value);
      if (std::isnan(value.f)) {
        EXPECT_TRUE(std::isnan(ReadElement(&written, type).f)) << i;
      } else {
        // Infinities can be read but are never written.
        EXPECT_EQ(written, std::isinf(value.f) ? bits - 1 : bits) << i;
      }
    }
  }
}

TEST(ScalarTest, EveryHalfAndBFloatSurvivesMemory) {
  for (const Type type : {kFloat16, kBFloat16}) {
    for (uint32_t i = 0; i < 0x10000; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const Value value = ReadElement(&bits, type);
      EXPECT_TRUE(std::isnan(value.f) || RoundToType(value.f, type) == value.f) << bits;
      uint16_t written = 0;
      WriteElement(&written, type, value);
      if (std::isnan(value.f)) {
        EXPECT_TRUE(std::isnan(ReadElement(&written, type).f)) << bits;
      } else {
        EXPECT_EQ(written, bits);
      }
    }
  }
}

// A number between two neighbours is rounded to the nearer one, and the middle to the even one.
TEST(ScalarTest, HalfRoundsToTheNearest) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfToFloat(static_cast<uint16_t>(bits));
    const double high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    EXPECT_EQ(RoundToType(middle, kFloat16), bits % 2 ? high : low);
    EXPECT_EQ(RoundToType(std::nextafter(middle, low), kFloat16), low);
    EXPECT_EQ(RoundToType(-std::nextafter(middle, high), kFloat16), -high);
  }
}

TEST(ScalarTest, Casts) {
  auto to_int = [](double x, Type to) { return CastValue(Value::Float(x), kFloat32, to).i; };
  EXPECT_EQ(to_int(-2.9, kInt32), -2);
  EXPECT_EQ(to_int(2.9, kInt64), 2);
  EXPECT_EQ(to_int(300, kInt8), 127);
  EXPECT_EQ(to_int(-1e30, kInt64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(to_int(1e30, kInt64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(to_int(kNan, kInt32), 0);
  EXPECT_EQ(to_int(0.5, kBool), 1);
  EXPECT_EQ(CastValue(Value::Int(300), kInt64, kInt8).i, 44);
  EXPECT_EQ(CastValue(Value::Int(256), kInt64, kBool).i, 1);
  // Converts 2^53+2^29+1 to float32. Rounding to double first would lose the last bit and tie down.
  EXPECT_EQ(CastValue(Value::Int((int64_t{1} << 53) + (1 << 29) + 1), kInt64, kFloat32).f,
            0x1.000002p53);
  EXPECT_EQ(CastValue(Value::Int(2049), kInt64, kFloat16).f, 2048);
  EXPECT_EQ(to_int(-1, kUInt64), 0);
  EXPECT_EQ(to_int(kNan, kUInt64), 0);
  EXPECT_EQ(to_int(0x1p63, kUInt64), INT64_MIN);
  // All bits are set.
  EXPECT_EQ(to_int(1e30, kUInt64), -1);
  EXPECT_EQ(CastValue(Value::Int(-1), kUInt64, kFloat32).f, 0x1p64);
  EXPECT_EQ(CastValue(Value::Int(INT64_MIN), kUInt64, kFloat64).f, 0x1p63);
  EXPECT_EQ(CastValue(Value::Int(-1), kUInt64, kInt32).i, -1);
}

TEST(ScalarTest, ElementsInMemory) {
  std::byte memory[9] = {};
  for (Type type : {kBool, kInt8, kInt32, kInt64, kUInt64}) {
    WriteElement(memory + 1, type, Value::Int(1));
    EXPECT_EQ(ReadElement(memory + 1, type).i, 1) << TypeName(type);
  }
  WriteElement(memory + 1, kInt8, Value::Int(-129));
  EXPECT_EQ(ReadElement(memory + 1, kInt8).i, 127);
  for (Type type : {kFloat8E4M3, kFloat8E5M2, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    WriteElement(memory + 1, type, Value::Float(0.1));
    EXPECT_EQ(ReadElement(memory + 1, type).f, RoundToType(0.1, type)) << TypeName(type);
  }
}

}  // namespace
}  // namespace kiln::ir
