// Compiles a program to LLVM IR, and to a shared object with the entry point of proto/cpu_abi.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/compiled.h"
#include "compiler/ir/program.h"
#include "compiler/target/target.h"

namespace kiln::codegen {

// CPU time of the calling thread.
struct LlvmTimes {
  // Checks and LLVM IR.
  double generate_ms = 0;
  double optimize_ms = 0;
  double codegen_ms = 0;
  double link_ms = 0;
};

struct LlvmOptions {
  Fault fault = Fault::kNone;
  // False: the code as it is generated (`kiln show --as llvm` without -O).
  bool optimize = true;
  // Filled if given.
  LlvmTimes* times = nullptr;
};

// Resolves -mcpu=native, or a missing -mcpu, to the host's own CPU name and features.
StatusOr<target::Target> ResolveCpu(const target::Target& target);

// Returns those of the given features, by LLVM's names, that code for the target may use.
StatusOr<std::vector<std::string>> CpuFeaturesUsed(const target::Target& target,
                                                   std::span<const std::string_view> features);

// Returns the text of the module, after LLVM's optimizer unless options say otherwise.
StatusOr<std::string> PrintLlvmIr(const ir::Program& program, const target::Target& target,
                                  const LlvmOptions& options = {});
// Returns the text of the machine code.
StatusOr<std::string> PrintAssembly(const ir::Program& program, const target::Target& target,
                                    const LlvmOptions& options = {});

// Returns the interface of the compiled program, without a binary.
Compiled DescribeCpuProgram(const ir::Program& program);

// Not thread-safe because of the linker inside: one call at a time per process.
StatusOr<Compiled> CompileLlvm(const ir::Program& program, const target::Target& target,
                               const LlvmOptions& options = {});

}  // namespace kiln::codegen
