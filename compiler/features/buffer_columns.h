// The columns of a row for the buffers that the store reads and writes: traffic, reuse, and the
// access pattern of a warp or a vector. Buffers with most cache lines come first.
#pragma once

#include "compiler/features/kernel_features.h"
#include "compiler/features/row.h"

namespace kiln::features {

void WriteBufferColumns(const KernelFeatures& record, const StoreFeatures& store, Row row);

}  // namespace kiln::features
