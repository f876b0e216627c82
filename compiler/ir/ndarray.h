// A tensor in host memory, for the evaluation of DAGs and the program interpreter.
//
// A value type that owns its elements: row-major, little-endian, type.bytes() each. Threads: as
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
  kUniform,        // floats in [-1, 1), ints in [-8, 8)
  kSmallIntegers,  // whole numbers -3..3: sums and products are exact in any order
};

class NDArray {
 public:
  NDArray() = default;
  NDArray(Type type, std::vector<int64_t> shape);  // zeros; extents >= 0
  // From values as doubles, rounded to type; as many as the shape has elements.
  NDArray(Type type, std::vector<int64_t> shape, std::span<const double> values);

  Type type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t num_elements() const { return num_elements_; }
  std::span<const std::byte> bytes() const { return data_; }
  std::span<std::byte> mutable_bytes() { return data_; }

  // By row-major position, 0 <= flat < num_elements(): not checked. Set rounds or wraps to the
  // type.
  Value Get(int64_t flat) const { return ReadElement(data_.data() + flat * type_.bytes(), type_); }
  void Set(int64_t flat, Value value) {
    WriteElement(data_.data() + flat * type_.bytes(), type_, value);
  }
  double GetDouble(int64_t flat) const;  // of any type
  void SetDouble(int64_t flat, double value);

  // Row-major position, or -1 when the indices are out of bounds or of the wrong number.
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

  // The same seed gives the same elements everywhere. index_limit > 0: ints in [0, index_limit).
  void FillRandom(uint64_t seed, RandomKind kind = RandomKind::kUniform, int64_t index_limit = 0);
  void Fill(double value);
  // NaN, -1, true: what nobody would compute.
  void Poison();

  bool operator==(const NDArray&) const = default;  // bit for bit

 private:
  Type type_ = kFloat32;
  std::vector<int64_t> shape_;
  int64_t num_elements_ = 0;
  std::vector<std::byte> data_;
};

// |found - expected| <= absolute + relative * |expected|. Ints and bools are compared exactly.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
// For a few hundred roundings of values around 1.
Tolerance DefaultTolerance(Type type);

// OK, or the first element that differs, how many do, and the largest difference. NaN equals NaN,
// an infinity itself.
Status Compare(const NDArray& found, const NDArray& expected, Tolerance tolerance,
               std::string_view name = "array");

std::string ShapeText(std::span<const int64_t> shape);  // "[2, 3]"

}  // namespace kiln::ir
