#include "graph/tensor_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/dag/dag.h"
#include "compiler/dag/limits.h"

namespace kiln::graph {

std::string TypeText(const TensorType& type) {
  return fmt::format("{}[{}]", ir::TypeName(type.type), fmt::join(type.shape, ", "));
}

Status CheckTensorType(const TensorType& type) {
  if (type.rank() > dag::kMaxAxes) {
    return InvalidArgument("{} has {} dimensions, expected at most {}", TypeText(type), type.rank(),
                           dag::kMaxAxes);
  }
  for (int64_t extent : type.shape) {
    if (extent < 1) {
      return InvalidArgument("{} has an extent of {}, expected extents of at least 1",
                             TypeText(type), extent);
    }
  }
  if (type.num_elements() > dag::kMaxElements) {
    return InvalidArgument("{} has more than 2^40 elements", TypeText(type));
  }
  return OkStatus();
}

}  // namespace kiln::graph
