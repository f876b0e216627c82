// A tensor in host memory, for the evaluation of DAGs and the program interpreter.
//
// A value type that owns its elements: row-major, little-endian, type.bytes() each. Threads: as for
// std::vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/scalar.h"
#include "compiler/ir/type.h"

namespace kiln::ir {

enum class RandomKind : uint8_t {
  // Floats in [-1, 1), ints in [-8, 8).
  kUniform,
  // Whole numbers -3..3, whose sums and products are exact in any order.
  kSmallIntegers,
};

class NDArray {
 public:
  NDArray() = default;
  // All elements are zeros. Extents must be >= 0.
  NDArray(Type type, std::vector<int64_t> shape);
  // Rounds the values to the type. There must be as many as the shape has elements.
  NDArray(Type type, std::vector<int64_t> shape, std::span<const double> values);

  Type type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t num_elements() const { return num_elements_; }
  std::span<const std::byte> bytes() const { return data_; }
  std::span<std::byte> mutable_bytes() { return data_; }

  // Get and Set take a row-major position, 0 <= flat < num_elements(), which is not checked. Set
  // rounds or wraps to the type.
  Value Get(int64_t flat) const { return ReadElement(data_.data() + flat * type_.bytes(), type_); }
  void Set(int64_t flat, Value value) {
    WriteElement(data_.data() + flat * type_.bytes(), type_, value);
  }
  // Converts an element of any type.
  double GetDouble(int64_t flat) const;
  void SetDouble(int64_t flat, double value);

  // Returns the row-major position, or -1 if an index is out of bounds or the number of indices is
  // wrong.
  int64_t Flatten(std::span<const int64_t> indices) const {
    if (indices.size() != shape_.size()) return -1;
    int64_t flat = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (static_cast<uint64_t>(indices[i]) >= static_cast<uint64_t>(shape_[i])) return -1;
      flat = flat * shape_[i] + indices[i];
    }
    return flat;
  }
  std::vector<int64_t> Unflatten(int64_t flat) const;

  // The same seed gives the same elements on every machine. index_limit > 0: ints in [0,
  // index_limit).
  void FillRandom(uint64_t seed, RandomKind kind = RandomKind::kUniform, int64_t index_limit = 0);
  void Fill(double value);
  // Fills the array with values that no kernel is likely to compute: NaN, -1, true.
  void Poison();

  // Compares bit for bit.
  bool operator==(const NDArray&) const = default;

 private:
  Type type_ = kFloat32;
  std::vector<int64_t> shape_;
  int64_t num_elements_ = 0;
  std::vector<std::byte> data_;
};

// Allows |found - expected| <= absolute + relative * |expected|. Ints and bools are compared
// exactly.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
// Returns a tolerance for a few hundred roundings of values around 1.
Tolerance DefaultTolerance(Type type);

// Returns OK, or an error with the first element that differs, the number of elements that differ
// and the largest difference. NaN equals NaN, and an infinity equals itself.
Status Compare(const NDArray& found, const NDArray& expected, Tolerance tolerance,
               std::string_view name = "array");

// Returns "[2, 3]".
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace kiln::ir
