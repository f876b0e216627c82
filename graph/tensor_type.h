// Element type and extents of a tensor. Shapes are static. An extent may be 0 only in inputs and
// constants that no node reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/numbers/integers.h"
#include "base/status.h"
#include "compiler/ir/type.h"

namespace kiln::graph {

struct TensorType {
  ir::Type type = ir::kFloat32;
  // An empty shape is that of a scalar.
  std::vector<int64_t> shape = {};

  int rank() const { return static_cast<int>(shape.size()); }
  // Returns INT64_MAX if the number does not fit.
  int64_t num_elements() const { return ProductOfCounts(shape); }
  int64_t bytes() const { return MultiplyCounts(num_elements(), type.bytes()); }
  bool operator==(const TensorType&) const = default;
};

// Returns "float32[1, 224, 224, 3]", "int64[]".
std::string TypeText(const TensorType& type);

// Refuses an extent below 1, more than 32 dimensions, more than 2^40 elements (dag::kMaxElements).
Status CheckTensorType(const TensorType& type);

}  // namespace kiln::graph
