// Writing to one feature row.
#pragma once

#include <span>

#include "compiler/features/feature_columns.h"

namespace kiln::features {

// A view of the row. Cheap to copy.
class Row {
 public:
  explicit Row(std::span<float> values) : values_(values) {}

  // Set writes a quantity, and SetRaw a share, a flag or a small number.
  void Set(int column, double value) { values_[static_cast<size_t>(column)] = Slog(value); }
  void SetRaw(int column, double value) {
    values_[static_cast<size_t>(column)] = static_cast<float>(value);
  }

 private:
  std::span<float> values_;
};

}  // namespace kiln::features
