// Runs programs statement by statement, one iteration after another, the slow and obvious way, and
// compares compiled code with that.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// `buffers` has one array per argument of the program, changed in place. Every access is checked.
Status RunReference(const ir::Program& program, std::vector<ir::NDArray>& buffers);

// Compiles, loads, and runs on copies of `buffers` in guarded memory.
StatusOr<std::vector<ir::NDArray>> RunCompiled(const ir::Program& program,
                                               const std::vector<ir::NDArray>& buffers,
                                               const target::Target& target = {},
                                               const LlvmOptions& options = {});

// Makes one array per argument: inputs are random by seed, and all others are -7, on which no
// program may depend.
std::vector<ir::NDArray> MakeArguments(const ir::Program& program, uint64_t seed);

// Runs both and compares outputs: |a - b| <= tolerance * max(1, |b|), NaN equals NaN. The error
// says where they differ.
Status CompareWithReference(const ir::Program& program, uint64_t seed, double tolerance,
                            const target::Target& target = {});

}  // namespace kiln::codegen
