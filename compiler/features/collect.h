// The walk over a kernel that finds its loops, its stores and their accesses.
#pragma once

#include "compiler/features/index_values.h"
#include "compiler/features/kernel_features.h"

namespace kiln::features {

// Fills the record's loops, stores, and the totals of its statements. `values` belongs to the
// record's program.
void CollectKernel(IndexValues& values, KernelFeatures& record);

}  // namespace kiln::features
