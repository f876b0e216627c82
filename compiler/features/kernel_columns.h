// The columns for the whole kernel and program. They are the same in all rows of a kernel.
#pragma once

#include "compiler/features/kernel_features.h"
#include "compiler/features/row.h"

namespace kiln::features {

// `index` is the number of the kernel in its program. The rows of its stores must be written
// already.
void WriteKernelColumns(const KernelFeatures& record, int index, Row row);

}  // namespace kiln::features
