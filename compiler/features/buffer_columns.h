// The columns of a row that tell of the buffers that the store reads and writes, those with most
// cache lines first: what is moved, how it is used again, how a warp or a vector gets at it.
#pragma once

#include "compiler/features/kernel_record.h"
#include "compiler/features/row.h"

namespace kiln::features {

void WriteBufferColumns(const KernelRecord& record, const StoreRecord& store, Row row);

}  // namespace kiln::features
