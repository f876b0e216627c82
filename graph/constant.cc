#include "graph/constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/hash/digest.h"
#include "base/numbers/rng.h"

namespace kiln::graph {
namespace {

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Element i is a hash of the seed and i, so it does not depend on the number of elements.
double Draw(const RandomElements& random, int64_t i, bool whole) {
  const uint64_t bits = SplitSeed(random.seed, static_cast<uint64_t>(i));
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  const double value = random.low + unit * (random.high - random.low);
  return whole ? std::floor(value) : value;
}

ir::NDArray RandomArray(const TensorType& type, const RandomElements& random) {
  ir::NDArray array(type.type, type.shape);
  const bool whole = !type.type.is_float();
  for (int64_t i = 0; i < array.num_elements(); ++i) array.SetDouble(i, Draw(random, i, whole));
  return array;
}

}  // namespace

StatusOr<ConstantPtr> Constant::FromMemory(TensorType type, std::shared_ptr<const void> owner,
                                           std::span<const std::byte> bytes) {
  // An output of a network may be a constant without elements, which no node reads.
  TensorType with_elements = type;
  std::ranges::replace(with_elements.shape, 0, 1);
  KILN_RETURN_IF_ERROR(CheckTensorType(with_elements));
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) {
    return InvalidArgument("a constant of type {} has {} bytes, expected {}", TypeText(type),
                           bytes.size(), type.bytes());
  }
  auto constant = std::shared_ptr<Constant>(new Constant(std::move(type), std::nullopt));
  constant->owner_ = std::move(owner);
  constant->bytes_ = bytes;
  return constant;
}

ConstantPtr Constant::FromArray(ir::NDArray array) {
  TensorType type{array.type(), array.shape()};
  auto kept = std::make_shared<const ir::NDArray>(std::move(array));
  const std::span<const std::byte> bytes = kept->bytes();
  StatusOr<ConstantPtr> constant = FromMemory(std::move(type), std::move(kept), bytes);
  KILN_CHECK(constant.ok(), "{}", std::string(constant.status().message()));
  return *std::move(constant);
}

ConstantPtr Constant::Random(TensorType type, RandomElements random) {
  return std::shared_ptr<const Constant>(new Constant(std::move(type), random));
}

ConstantPtr Constant::Deferred(TensorType type, std::function<ir::NDArray()> make) {
  auto constant = std::shared_ptr<Constant>(new Constant(std::move(type), std::nullopt));
  constant->make_ = std::move(make);
  return constant;
}

ConstantPtr Constant::FromInts(std::span<const int64_t> values) {
  ir::NDArray array(ir::kInt64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    array.Set(static_cast<int64_t>(i), ir::Value::Int(values[i]));
  return FromArray(std::move(array));
}

ConstantPtr Constant::Scalar(ir::Type type, double value) {
  ir::NDArray array(type, {});
  array.SetDouble(0, value);
  return FromArray(std::move(array));
}

std::span<const std::byte> Constant::bytes() const {
  std::call_once(made_, [this] {
    if (!is_deferred()) return;
    auto array =
        std::make_shared<const ir::NDArray>(random_ ? RandomArray(type_, *random_) : make_());
    KILN_CHECK(array->type() == type_.type && array->shape() == type_.shape, "made {}, expected {}",
               TypeText({array->type(), array->shape()}), TypeText(type_));
    bytes_ = array->bytes();
    owner_ = std::move(array);
  });
  return bytes_;
}

ir::NDArray Constant::ToArray() const {
  ir::NDArray array(type_.type, type_.shape);
  const std::span<const std::byte> from = bytes();
  if (!from.empty()) std::memcpy(array.mutable_bytes().data(), from.data(), from.size());
  return array;
}

double Constant::At(int64_t flat) const {
  const ir::Value value = ir::ReadElement(bytes().data() + flat * type_.type.bytes(), type_.type);
  return ir::CastValue(value, type_.type, ir::kFloat64).f;
}

std::vector<int64_t> Constant::ToInts() const {
  std::vector<int64_t> values;
  const std::span<const std::byte> from = bytes();
  for (int64_t i = 0; i < type_.num_elements(); ++i) {
    const ir::Value value = ir::ReadElement(from.data() + i * type_.type.bytes(), type_.type);
    values.push_back(type_.type.is_float() ? ir::CastValue(value, type_.type, ir::kInt64).i
                                           : value.i);
  }
  return values;
}

const std::string& Constant::digest() const {
  std::call_once(digested_, [this] {
    digest_ = Xxh3Hex(fmt::format("{} {}", TypeText(type_), Xxh3Hex(AsText(bytes()))));
  });
  return digest_;
}

bool Equal(const Constant& a, const Constant& b) {
  if (&a == &b) return true;
  if (a.type() != b.type()) return false;
  if (a.random() && a.random() == b.random()) return true;
  return AsText(a.bytes()) == AsText(b.bytes());
}

}  // namespace kiln::graph
