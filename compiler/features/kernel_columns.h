// The columns that tell of the whole kernel and program: the same in all rows of a kernel.
#pragma once

#include "compiler/features/kernel_record.h"
#include "compiler/features/row.h"

namespace kiln::features {

// index: of the kernel in its program. The rows of its stores have been written.
void WriteKernelColumns(const KernelRecord& record, int index, Row row);

}  // namespace kiln::features
