// Rows of floats of one length, one after the other: feature rows, which models read.
//
// A value: moving is cheap, copying is not. Not synchronised.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace kiln {

class FloatMatrix {
 public:
  FloatMatrix() = default;
  explicit FloatMatrix(int columns) : columns_(columns) {}
  FloatMatrix(int rows, int columns)
      : columns_(columns), values_(static_cast<size_t>(rows) * columns) {}

  int columns() const { return columns_; }
  int rows() const { return columns_ == 0 ? 0 : static_cast<int>(values_.size()) / columns_; }
  std::span<const float> row(int i) const { return {values_.data() + Start(i), Width()}; }
  std::span<float> row(int i) { return {values_.data() + Start(i), Width()}; }
  // All rows, row by row.
  std::span<const float> values() const { return values_; }

  // Adds a last row of zeros. The span is valid until the next row is added.
  std::span<float> AddRow() {
    values_.resize(values_.size() + Width());
    return row(rows() - 1);
  }
  void AddRows(const FloatMatrix& other) {
    KILN_CHECK(other.columns_ == columns_);
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  }
  void ReserveRows(int rows) { values_.reserve(static_cast<size_t>(rows) * columns_); }

  friend bool operator==(const FloatMatrix&, const FloatMatrix&) = default;

 private:
  size_t Width() const { return static_cast<size_t>(columns_); }
  size_t Start(int i) const { return static_cast<size_t>(i) * Width(); }

  int columns_ = 0;
  std::vector<float> values_;
};

}  // namespace kiln
