// What an assembler made of sums of matrix units of four warps: machine code of sm_90a. The instructions
// and their fields are not documented; those read here are what nvdisasm prints of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::codegen {

struct MachineCode {
  int64_t products = 0;  // instructions that multiply 16-bit floats (HGMMA)
  int64_t rounded = 0;   // that round sums of them to 16 bits (F2FP)
  // Those that round sums before the kernel has waited for all products (WARPGROUP.DEPBAR), by their place:
  // "matmul+0xec0: R55, R54".
  std::vector<std::string> rounded_early;
};
// Of all kernels; of each the instructions as they stand, since a wait is not jumped over. InvalidArgument
// if it is no cubin.
StatusOr<MachineCode> ReadMachineCode(const std::string& cubin);

}  // namespace kiln::codegen
