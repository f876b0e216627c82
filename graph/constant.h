// A constant of a network: weights, mostly. Its elements are in memory that somebody keeps alive,
// or are made when somebody asks for them first, out of a seed or of other constants: what a network
// is cut into is known long before anybody needs its weights.
//
// Immutable; shared between graphs and threads. Row-major, little-endian, ir::Type::bytes() each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "graph/tensor_type.h"

namespace kiln::graph {

// Floats are uniform in [low, high), integers are whole numbers in it. The same seed gives the same
// elements everywhere.
struct RandomElements {
  uint64_t seed = 0;
  double low = -1;
  double high = 1;
  bool operator==(const RandomElements&) const = default;
};

class Constant;
using ConstantPtr = std::shared_ptr<const Constant>;

class Constant {
 public:
  // `owner` keeps `bytes` alive; as many as the type has. Nothing is copied.
  static StatusOr<ConstantPtr> FromMemory(TensorType type, std::shared_ptr<const void> owner,
                                          std::span<const std::byte> bytes);
  static ConstantPtr FromArray(ir::NDArray array);
  static ConstantPtr Random(TensorType type, RandomElements random);
  // `make` is called once, by the first who asks for the elements; an array of this type must come
  // out of it.
  static ConstantPtr Deferred(TensorType type, std::function<ir::NDArray()> make);
  // A tensor of int64, as shapes and axes are. Of one dimension; of none: FromInt.
  static ConstantPtr FromInts(std::span<const int64_t> values);
  // `value` rounded to the type, once or everywhere in `shape`.
  static ConstantPtr Scalar(ir::Type type, double value);

  const TensorType& type() const { return type_; }
  // Blocks while another thread makes the elements.
  std::span<const std::byte> bytes() const;
  const std::optional<RandomElements>& random() const { return random_; }
  // Do the elements cost anything to look at, beyond reading them? For ever, once they did.
  bool is_deferred() const { return random_.has_value() || make_ != nullptr; }

  // Copies.
  ir::NDArray ToArray() const;
  // Of integers and bools; rounded towards zero of floats.
  std::vector<int64_t> ToInts() const;
  double At(int64_t flat) const;

  // XXH3 (128 bits, 32 hex digits) of the type's text and the elements: what names it in text.
  const std::string& digest() const;

 private:
  Constant(TensorType type, std::optional<RandomElements> random)
      : type_(std::move(type)), random_(random) {}

  TensorType type_;
  std::optional<RandomElements> random_;
  std::function<ir::NDArray()> make_;
  mutable std::once_flag made_, digested_;
  mutable std::shared_ptr<const void> owner_;
  mutable std::span<const std::byte> bytes_;
  mutable std::string digest_;
};

// The same type and the same elements.
bool Equal(const Constant& a, const Constant& b);

}  // namespace kiln::graph
