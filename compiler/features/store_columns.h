// The columns of a row that tell what the store costs: instructions, registers, traffic with memory
// and what caches miss.
#pragma once

#include "compiler/features/kernel_record.h"
#include "compiler/features/row.h"

namespace kiln::features {

// Adds to the kernel's totals, which are of all its stores.
void WriteStoreColumns(KernelRecord& record, const StoreRecord& store, Row row);

}  // namespace kiln::features
