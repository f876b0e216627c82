// The columns of a row for the buffers that the store reads and writes, those with most cache lines
// first: traffic, reuse, and the access pattern of a warp or a vector.
#pragma once

#include "compiler/features/kernel_features.h"
#include "compiler/features/row.h"

namespace kiln::features {

void WriteBufferColumns(const KernelFeatures& record, const StoreFeatures& store, Row row);

}  // namespace kiln::features
