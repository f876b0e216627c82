// Programs run statement by statement, one iteration after another, the slow and obvious way; and
// the comparison of compiled code with that.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// buffers: one array per argument of the program, changed in place. Every access is checked.
Status RunReference(const ir::Program& program, std::vector<ir::NDArray>& buffers);

// Compiles, loads, runs on copies of `buffers` in guarded memory.
StatusOr<std::vector<ir::NDArray>> RunCompiled(const ir::Program& program,
                                               const std::vector<ir::NDArray>& buffers,
                                               const target::Target& target = {},
                                               const LlvmOptions& options = {});

// One array per argument: inputs random by seed, everything else -7, which no program may depend
// on.
std::vector<ir::NDArray> MakeArguments(const ir::Program& program, uint64_t seed);

// Runs both and compares outputs: |a - b| <= tolerance * max(1, |b|), NaN equals NaN. The error
// says where they differ.
Status CompareWithReference(const ir::Program& program, uint64_t seed, double tolerance,
                            const target::Target& target = {});

}  // namespace kiln::codegen
