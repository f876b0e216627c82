// Operators that may follow another one in a DAG: `--epilogue bias,relu`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// Appends one operator to x. `channel_axis` is the axis of bias and scale; a negative number counts
// from the end.
StatusOr<TensorRef> ApplyEpilogue(OpContext& c, std::string_view name, const TensorRef& x,
                                  int channel_axis);

}  // namespace kiln::dag
