// The columns of a row that tell of the loops around the store: what they are bound to and how
// long, how its intensity grows from one to the next, and where its buffer lives.
#pragma once

#include "compiler/features/kernel_record.h"
#include "compiler/features/row.h"

namespace kiln::features {

void WriteNestColumns(const KernelRecord& record, const StoreRecord& store, Row row);

}  // namespace kiln::features
