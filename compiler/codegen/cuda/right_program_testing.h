// Expects of a program of the IR that its CUDA text means the same and compiles well.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {

struct RightProgramOptions {
  double tolerance = 1e-5;     // of outputs, as CompareEmulated has it
  std::string arch = "sm_90";  // for NVRTC
  bool may_use_stack = false;  // local buffers may stand in memory
};

// Expects that the emulated text computes what the interpreter does. Where there is an NVRTC, also
// expects that it compiles the text without a word and keeps every local buffer in registers, and
// sets `cubin` to what it made.
inline void ExpectRightProgram(std::string_view text, const RightProgramOptions& options = {},
                               std::optional<Cubin>* cubin = nullptr) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
  ASSERT_OK(CompareEmulated(program, 17, options.tolerance));
  if (!FindNvrtc().ok()) return;
  ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
  ASSERT_OK_AND_ASSIGN(const Cubin compiled, CompileSource(source, options.arch));
  EXPECT_EQ(compiled.kernels.size(), source.kernels.size());
  for (const KernelResources& kernel : compiled.kernels) {
    EXPECT_TRUE(options.may_use_stack || kernel.stack_bytes == 0) << kernel.name << "\n"
                                                                  << source.text;
    EXPECT_TRUE(options.may_use_stack || kernel.spill_store_bytes == 0) << kernel.name << "\n"
                                                                        << source.text;
  }
  // The assembler says so where products wait for each other.
  EXPECT_EQ(compiled.log, "");
  if (cubin != nullptr) *cubin = compiled;
}

}  // namespace kiln::codegen
