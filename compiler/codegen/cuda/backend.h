#pragma once

#include "compiler/codegen/backend.h"

namespace kiln::codegen {

// Of target kind cuda (compile.h). Form: cuda.
const Backend& CudaBackend();

}  // namespace kiln::codegen
