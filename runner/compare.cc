#include "runner/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include "base/numbers/float16.h"
#include "base/numbers/float8.h"

namespace kiln::runner {
namespace {

template <typename T>
T Load(std::span<const std::byte> bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct E4M3 {
  uint8_t bits;
};
struct E5M2 {
  uint8_t bits;
};
double ToDouble(E4M3 value) { return Float8ToFloat(value.bits, kE4M3); }
double ToDouble(E5M2 value) { return Float8ToFloat(value.bits, kE5M2); }
double ToDouble(Half value) { return HalfToFloat(value.bits); }
double ToDouble(BFloat value) { return BFloat16ToFloat(value.bits); }
template <typename T>
double ToDouble(T value) {
  return static_cast<double>(value);
}

// Returns for instance "[0, 3, 5, 6]".
std::string Position(const Argument& argument, int64_t index) {
  std::vector<int64_t> position(argument.shape.size());
  for (size_t axis = position.size(); axis-- > 0;) {
    position[axis] = index % argument.shape[axis];
    index /= argument.shape[axis];
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

std::string Describe(const Argument& argument, int64_t index, const std::string& got,
                     const std::string& want, int64_t different, const v1::Tolerance& tolerance) {
  std::string text = fmt::format(
      "output {}: element {}: got {}, expected {}; {} of {} elements differ", argument.name,
      Position(argument, index), got, want, different, argument.elements);
  if (!IsFloat(argument.dtype)) return text;
  return text + fmt::format(
                    " by more than {:g} of what the reference has there and {:g} of its "
                    "largest value",
                    tolerance.relative(), tolerance.absolute());
}

// Leaves out the sign of NaN, which has no meaning.
std::string FloatText(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.7g}", value);
}

template <typename T>
Comparison CompareFloats(const Argument& argument, std::span<const std::byte> got_bytes,
                         std::span<const std::byte> want_bytes, const v1::Tolerance& tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < argument.elements; ++i) {
    const double want = std::fabs(ToDouble(Load<T>(want_bytes, i)));
    if (std::isfinite(want)) largest = std::max(largest, want);
  }
  const double absolute = tolerance.absolute() * largest + MinTolerance(argument.dtype);
  Comparison result;
  int64_t first = -1;
  double worst = 0;
  for (int64_t i = 0; i < argument.elements; ++i) {
    const double got = ToDouble(Load<T>(got_bytes, i));
    const double want = ToDouble(Load<T>(want_bytes, i));
    if (!IsNear(got, want, absolute, tolerance.relative())) {
      if (first < 0) first = i;
      ++result.different;
    }
    const double error = std::fabs(got - want);
    if (std::isfinite(error)) worst = std::max(worst, error);
  }
  result.max_error = largest > 0 ? worst / largest : worst;
  if (first >= 0) {
    result.message =
        Describe(argument, first, FloatText(ToDouble(Load<T>(got_bytes, first))),
                 FloatText(ToDouble(Load<T>(want_bytes, first))), result.different, tolerance);
  }
  return result;
}

template <typename T>
Comparison CompareExact(const Argument& argument, std::span<const std::byte> got_bytes,
                        std::span<const std::byte> want_bytes) {
  Comparison result;
  if (std::memcmp(got_bytes.data(), want_bytes.data(), got_bytes.size()) == 0) return result;
  int64_t first = -1;
  double largest = 0;
  double worst = 0;
  for (int64_t i = 0; i < argument.elements; ++i) {
    const T got = Load<T>(got_bytes, i);
    const T want = Load<T>(want_bytes, i);
    largest = std::max(largest, std::fabs(ToDouble(want)));
    if (got == want) continue;
    if (first < 0) first = i;
    ++result.different;
    worst = std::max(worst, std::fabs(ToDouble(got) - ToDouble(want)));
  }
  result.max_error = largest > 0 ? worst / largest : worst;
  result.message = Describe(argument, first, fmt::format("{}", +Load<T>(got_bytes, first)),
                            fmt::format("{}", +Load<T>(want_bytes, first)), result.different, {});
  return result;
}

}  // namespace

v1::Tolerance DefaultTolerance(DType dtype) {
  v1::Tolerance tolerance;
  const auto set = [&](double relative, double absolute) {
    tolerance.set_relative(relative);
    tolerance.set_absolute(absolute);
  };
  if (dtype == DType::kFloat64) set(1e-9, 1e-10);
  if (dtype == DType::kFloat32) set(1e-3, 1e-4);
  if (dtype == DType::kFloat16) set(2e-2, 1e-2);
  if (dtype == DType::kBFloat16) set(5e-2, 2e-2);
  if (dtype == DType::kFloat8E4M3) set(0.15, 3e-2);
  if (dtype == DType::kFloat8E5M2) set(0.3, 3e-2);
  return tolerance;
}

v1::Tolerance EffectiveTolerance(DType dtype, const v1::Tolerance& asked) {
  v1::Tolerance tolerance = DefaultTolerance(dtype);
  if (asked.relative() > 0) tolerance.set_relative(asked.relative());
  if (asked.absolute() > 0) tolerance.set_absolute(asked.absolute());
  return tolerance;
}

double MinTolerance(DType dtype) {
  if (dtype == DType::kFloat8E4M3) return kE4M3.least();
  return dtype == DType::kFloat8E5M2 ? kE5M2.least() : 0;
}

bool IsNear(double got, double want, double absolute, double relative) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}

double ElementValue(DType dtype, std::span<const std::byte> bytes, int64_t index) {
  switch (dtype) {
    case DType::kFloat64:
      return Load<double>(bytes, index);
    case DType::kFloat32:
      return ToDouble(Load<float>(bytes, index));
    case DType::kFloat16:
      return ToDouble(Load<Half>(bytes, index));
    case DType::kBFloat16:
      return ToDouble(Load<BFloat>(bytes, index));
    case DType::kFloat8E4M3:
      return ToDouble(Load<E4M3>(bytes, index));
    case DType::kFloat8E5M2:
      return ToDouble(Load<E5M2>(bytes, index));
    case DType::kInt64:
      return ToDouble(Load<int64_t>(bytes, index));
    case DType::kInt32:
      return ToDouble(Load<int32_t>(bytes, index));
    case DType::kInt16:
      return ToDouble(Load<int16_t>(bytes, index));
    case DType::kInt8:
      return ToDouble(Load<int8_t>(bytes, index));
    case DType::kUInt64:
      return ToDouble(Load<uint64_t>(bytes, index));
    case DType::kUInt32:
      return ToDouble(Load<uint32_t>(bytes, index));
    case DType::kUInt16:
      return ToDouble(Load<uint16_t>(bytes, index));
    case DType::kUInt8:
    case DType::kBool:
      return ToDouble(Load<uint8_t>(bytes, index));
  }
  return 0;
}

std::string ElementText(DType dtype, std::span<const std::byte> element) {
  switch (dtype) {
    case DType::kFloat64:
      return FloatText(Load<double>(element, 0));
    case DType::kFloat32:
      return FloatText(Load<float>(element, 0));
    case DType::kFloat16:
      return FloatText(ToDouble(Load<Half>(element, 0)));
    case DType::kBFloat16:
      return FloatText(ToDouble(Load<BFloat>(element, 0)));
    case DType::kFloat8E4M3:
      return FloatText(ToDouble(Load<E4M3>(element, 0)));
    case DType::kFloat8E5M2:
      return FloatText(ToDouble(Load<E5M2>(element, 0)));
    case DType::kInt64:
      return fmt::format("{}", Load<int64_t>(element, 0));
    case DType::kInt32:
      return fmt::format("{}", Load<int32_t>(element, 0));
    case DType::kInt16:
      return fmt::format("{}", Load<int16_t>(element, 0));
    case DType::kInt8:
      return fmt::format("{}", +Load<int8_t>(element, 0));
    case DType::kUInt64:
      return fmt::format("{}", Load<uint64_t>(element, 0));
    case DType::kUInt32:
      return fmt::format("{}", Load<uint32_t>(element, 0));
    case DType::kUInt16:
      return fmt::format("{}", Load<uint16_t>(element, 0));
    case DType::kUInt8:
    case DType::kBool:
      return fmt::format("{}", +Load<uint8_t>(element, 0));
  }
  return "";
}

std::string DescribeDifference(const Argument& argument, int64_t index,
                               std::span<const std::byte> got, std::span<const std::byte> want,
                               int64_t different, const v1::Tolerance& asked) {
  return Describe(argument, index, ElementText(argument.dtype, got),
                  ElementText(argument.dtype, want), different,
                  EffectiveTolerance(argument.dtype, asked));
}

Comparison Compare(const Argument& argument, std::span<const std::byte> got,
                   std::span<const std::byte> want, const v1::Tolerance& asked) {
  const v1::Tolerance tolerance = EffectiveTolerance(argument.dtype, asked);
  switch (argument.dtype) {
    case DType::kFloat64:
      return CompareFloats<double>(argument, got, want, tolerance);
    case DType::kFloat32:
      return CompareFloats<float>(argument, got, want, tolerance);
    case DType::kFloat16:
      return CompareFloats<Half>(argument, got, want, tolerance);
    case DType::kBFloat16:
      return CompareFloats<BFloat>(argument, got, want, tolerance);
    case DType::kFloat8E4M3:
      return CompareFloats<E4M3>(argument, got, want, tolerance);
    case DType::kFloat8E5M2:
      return CompareFloats<E5M2>(argument, got, want, tolerance);
    case DType::kInt64:
      return CompareExact<int64_t>(argument, got, want);
    case DType::kInt32:
      return CompareExact<int32_t>(argument, got, want);
    case DType::kInt16:
      return CompareExact<int16_t>(argument, got, want);
    case DType::kInt8:
      return CompareExact<int8_t>(argument, got, want);
    case DType::kUInt64:
      return CompareExact<uint64_t>(argument, got, want);
    case DType::kUInt32:
      return CompareExact<uint32_t>(argument, got, want);
    case DType::kUInt16:
      return CompareExact<uint16_t>(argument, got, want);
    case DType::kUInt8:
    case DType::kBool:
      return CompareExact<uint8_t>(argument, got, want);
  }
  return {};
}

}  // namespace kiln::runner
