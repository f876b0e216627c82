// What a model of trees looks at.
#pragma once

#include <cstdint>

namespace kiln::costmodel {

// What splits at one column do in all trees together.
struct ColumnImportance {
  int32_t column = 0;
  int64_t splits = 0;  // XGBoost's "weight"
  double gain = 0;     // how much they lowered the loss: XGBoost's "total_gain"

  friend bool operator==(const ColumnImportance&, const ColumnImportance&) = default;
};

}  // namespace kiln::costmodel
