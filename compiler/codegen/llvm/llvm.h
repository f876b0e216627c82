// Program -> LLVM IR -> shared object with the entry point of proto/cpu_abi.h.
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

// Where the time went: CPU time of the calling thread.
struct LlvmTimes {
  double generate_ms = 0;  // checks, LLVM IR
  double optimize_ms = 0;
  double codegen_ms = 0;
  double link_ms = 0;
};

struct LlvmOptions {
  Fault fault = Fault::kNone;
  bool optimize = true;        // false: as generated (what `kiln show --as llvm` prints without -O)
  LlvmTimes* times = nullptr;  // filled when given
};

// -mcpu=native or none given: resolved to the host's own CPU name and features.
StatusOr<target::Target> ResolveCpu(const target::Target& target);

// Those of these features, by LLVM's names, that code for the target may use.
StatusOr<std::vector<std::string>> CpuFeaturesUsed(const target::Target& target,
                                                   std::span<const std::string_view> features);

// Text of the module, after LLVM's optimizer unless options say otherwise.
StatusOr<std::string> PrintLlvmIr(const ir::Program& program, const target::Target& target,
                                  const LlvmOptions& options = {});
// Text of the machine code.
StatusOr<std::string> PrintAssembly(const ir::Program& program, const target::Target& target,
                                    const LlvmOptions& options = {});

// Not thread-safe with respect to the linker inside: one call at a time per process.
StatusOr<Compiled> CompileLlvm(const ir::Program& program, const target::Target& target,
                               const LlvmOptions& options = {});

}  // namespace kiln::codegen
