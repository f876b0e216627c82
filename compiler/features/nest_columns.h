// The columns of a row for the loops around the store: their annotations and extents, the
// arithmetic intensity at each of them, and the allocation of the buffer.
#pragma once

#include "compiler/features/kernel_features.h"
#include "compiler/features/row.h"

namespace kiln::features {

void WriteNestColumns(const KernelFeatures& record, const StoreFeatures& store, Row row);

}  // namespace kiln::features
