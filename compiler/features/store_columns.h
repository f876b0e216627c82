// The columns of a row for the cost of the store: instructions, registers, memory traffic, cache
// misses.
#pragma once

#include "compiler/features/kernel_features.h"
#include "compiler/features/row.h"

namespace kiln::features {

// Adds to the kernel's totals, which are those of all its stores.
void WriteStoreColumns(KernelFeatures& record, const StoreFeatures& store, Row row);

}  // namespace kiln::features
