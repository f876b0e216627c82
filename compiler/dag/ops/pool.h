// What window and adaptive pooling share.
#pragma once

#include "compiler/ir/type.h"

namespace kiln::dag {

enum class PoolKind { kMax, kAvg };

// What a maximum starts from: the lowest finite value of the type.
double LowestValue(ir::Type type);

}  // namespace kiln::dag
