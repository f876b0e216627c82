// What may follow an operator in one DAG: `--epilogue bias,relu`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// x with one more operator after it. `channel_axis` is where bias and scale lie; negative: from the
// end.
StatusOr<TensorRef> ApplyEpilogue(OpContext& c, std::string_view name, const TensorRef& x,
                                  int channel_axis);

}  // namespace kiln::dag
