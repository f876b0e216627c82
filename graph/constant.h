// A constant of a network, mostly weights. Its elements lie in memory that an owner keeps alive, or
// are made at the first access, from a seed or from other constants: the kernels of a network are
// known long before anybody needs its weights.
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

// Random elements: floats are uniform in [low, high), integers are whole numbers in that range. The
// same seed gives the same elements everywhere.
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
  // `owner` keeps `bytes` alive, which have the size of the type. Nothing is copied.
  static StatusOr<ConstantPtr> FromMemory(TensorType type, std::shared_ptr<const void> owner,
                                          std::span<const std::byte> bytes);
  static ConstantPtr FromArray(ir::NDArray array);
  static ConstantPtr Random(TensorType type, RandomElements random);
  // `make` is called once, by the first thread that needs the elements. It must return an array of
  // this type.
  static ConstantPtr Deferred(TensorType type, std::function<ir::NDArray()> make);
  // Makes a vector of int64, like shapes and axes.
  static ConstantPtr FromInts(std::span<const int64_t> values);
  // Makes a constant whose elements are `value` rounded to the type: a scalar.
  static ConstantPtr Scalar(ir::Type type, double value);

  const TensorType& type() const { return type_; }
  // Blocks while another thread makes the elements.
  std::span<const std::byte> bytes() const;
  const std::optional<RandomElements>& random() const { return random_; }
  // Returns whether the elements are made by an access. It stays true afterwards.
  bool is_deferred() const { return random_.has_value() || make_ != nullptr; }

  // Copies the elements.
  ir::NDArray ToArray() const;
  // Returns integers and bools; floats are rounded towards zero.
  std::vector<int64_t> ToInts() const;
  double At(int64_t flat) const;

  // Returns XXH3 (128 bits, 32 hex digits) of the type's text and the elements. Texts name a
  // constant by it.
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

// Returns whether both have the same type and the same elements.
bool Equal(const Constant& a, const Constant& b);

}  // namespace kiln::graph
