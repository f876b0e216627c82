#include "compiler/ir/ndarray.h"

#include <fmt/ranges.h>

#include <cmath>
#include <random>

namespace kiln::ir {

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

NDArray::NDArray(Type type, std::vector<int64_t> shape) : type_(type), shape_(std::move(shape)) {
  num_elements_ = 1;
  for (int64_t extent : shape_) {
    KILN_CHECK(extent >= 0, "shape {}", ShapeText(shape_));
    num_elements_ *= extent;
  }
  data_.resize(static_cast<size_t>(num_elements_ * type_.bytes()));
}

NDArray::NDArray(Type type, std::vector<int64_t> shape, std::span<const double> values)
    : NDArray(type, std::move(shape)) {
  KILN_CHECK(static_cast<int64_t>(values.size()) == num_elements_, "{} values for shape {}",
             values.size(), ShapeText(shape_));
  for (int64_t i = 0; i < num_elements_; ++i) SetDouble(i, values[static_cast<size_t>(i)]);
}

double NDArray::GetDouble(int64_t flat) const {
  const Value value = Get(flat);
  return type_.is_float() ? value.f : CastValue(value, type_, kFloat64).f;
}

void NDArray::SetDouble(int64_t flat, double value) {
  Set(flat,
      type_.is_float() ? Value::Float(value) : CastValue(Value::Float(value), kFloat64, type_));
}

std::vector<int64_t> NDArray::Unflatten(int64_t flat) const {
  std::vector<int64_t> indices(shape_.size());
  for (size_t i = shape_.size(); i-- > 0;) {
    indices[i] = flat % shape_[i];
    flat /= shape_[i];
  }
  return indices;
}

namespace {
Value RandomValue(std::mt19937_64& rng, Type type, RandomKind kind, int64_t index_limit) {
  const uint64_t bits = rng();
  if (type.is_bool()) return Value::Int(static_cast<int64_t>(bits >> 63));
  if (type.is_int() && index_limit > 0) {
    return Value::Int(static_cast<int64_t>(bits % static_cast<uint64_t>(index_limit)));
  }
  if (type.is_unsigned())
    return Value::Int(static_cast<int64_t>(bits % (kind == RandomKind::kSmallIntegers ? 7 : 16)));
  if (kind == RandomKind::kSmallIntegers) {
    const auto small = static_cast<int64_t>(bits % 7) - 3;
    return type.is_float() ? Value::Float(static_cast<double>(small)) : Value::Int(small);
  }
  if (type.is_int()) return Value::Int(static_cast<int64_t>(bits % 16) - 8);
  return Value::Float(static_cast<double>(bits >> 11) * 0x1p-52 - 1.0);
}
}  // namespace

void NDArray::FillRandom(uint64_t seed, RandomKind kind, int64_t index_limit) {
  std::mt19937_64 rng(seed);
  for (int64_t i = 0; i < num_elements_; ++i) Set(i, RandomValue(rng, type_, kind, index_limit));
}

void NDArray::Fill(double value) {
  for (int64_t i = 0; i < num_elements_; ++i) SetDouble(i, value);
}

void NDArray::Poison() { data_.assign(data_.size(), std::byte{0xff}); }

Tolerance DefaultTolerance(Type type) {
  if (type == kFloat64) return {1e-10, 1e-10};
  if (type == kFloat32) return {1e-4, 1e-5};
  if (type == kFloat16) return {1e-2, 1e-2};
  if (type == kBFloat16) return {5e-2, 5e-2};
  if (type == kFloat8E4M3) return {0.2, 0.1};
  if (type == kFloat8E5M2) return {0.4, 0.2};
  return {};
}

namespace {
// Returns true if the difference exceeds the tolerance.
bool Differs(double found, double expected, Tolerance tolerance) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return false;
  if (!std::isfinite(found) || !std::isfinite(expected)) return true;
  return std::abs(found - expected) > tolerance.absolute + tolerance.relative * std::abs(expected);
}

std::string ElementText(const NDArray& array, int64_t flat) {
  const Value value = array.Get(flat);
  if (array.type().is_float()) return fmt::format("{}", value.f);
  if (array.type() == kUInt64) return fmt::format("{}", static_cast<uint64_t>(value.i));
  return fmt::format("{}", value.i);
}
}  // namespace

Status Compare(const NDArray& found, const NDArray& expected, Tolerance tolerance,
               std::string_view name) {
  if (found.type() != expected.type() || found.shape() != expected.shape()) {
    return InvalidArgument("{} is {}{}, expected {}{}", name, TypeName(found.type()),
                           ShapeText(found.shape()), TypeName(expected.type()),
                           ShapeText(expected.shape()));
  }
  int64_t first = -1, worst = -1, count = 0;
  double largest = -1;
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    const double f = found.GetDouble(i), e = expected.GetDouble(i);
    const bool differs =
        found.type().is_float() ? Differs(f, e, tolerance) : found.Get(i).i != expected.Get(i).i;
    if (!differs) continue;
    if (count++ == 0) first = i;
    const double difference = std::isfinite(f - e) ? std::abs(f - e) : INFINITY;
    if (difference > largest) {
      largest = difference;
      worst = i;
    }
  }
  if (count == 0) return OkStatus();
  return FailedPrecondition(
      "{}{} is {}, expected {}; {} of {} elements differ, most at {}: {}, expected {}", name,
      ShapeText(found.Unflatten(first)), ElementText(found, first), ElementText(expected, first),
      count, found.num_elements(), ShapeText(found.Unflatten(worst)), ElementText(found, worst),
      ElementText(expected, worst));
}

}  // namespace kiln::ir
