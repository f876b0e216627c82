// The importance of a column for a model of trees.
#pragma once

#include <cstdint>

namespace kiln::costmodel {

// The effect of the splits at one column, in all trees together.
struct ColumnImportance {
  int32_t column = 0;
  int64_t splits = 0;  // XGBoost's "weight"
  double gain = 0;     // the decrease of the loss: XGBoost's "total_gain"

  friend bool operator==(const ColumnImportance&, const ColumnImportance&) = default;
};

}  // namespace kiln::costmodel
