// How rows lie in shared memory that matrix units read: Hint::kSwizzle. Internal to this folder.
//
// A unit reads the same 16 bytes of 8 rows at once, which should lie in different banks. Padding
// does that too, but takes room and is nothing that the descriptors of wgmma can say. A swizzled
// buffer lies so (PTX ISA, "Swizzling modes"):
//
//   * its last dimension, the row, is cut into parts of 128, 64 or 32 bytes, the widest that divide
//     it. The parts of all rows at one place are a panel, one behind the other; panels stand one
//     behind the other;
//   * of every line of 128 bytes the pieces of 16 bytes are permuted, by the number of the line:
//     byte i lies at i ^ (i / 8 & mask), where the mask is 112, 48 or 16.
//
// Elements keep their order within 16 bytes, and what is aligned to them stays so. Rows of 16 bytes
// times an odd number are in panels of 16 bytes, which have nothing to permute.
//
// Units of four warps that read both factors themselves (matrix_warpgroup.h) want the rows of a warp
// behind each other: 8 rows, and the 8 that its threads have besides. In a tile that is cut as others
// are, those stand half of some 2 n rows apart. Interleaved rows lie in that other order: of each 2 n
// rows the first 8, the first 8 of the upper half, the next 8 of the lower half, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/arith/simplify.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Bytes of a row from which on the bulk copy engine permutes, too (CU_TENSOR_MAP_SWIZZLE_32B).
constexpr int64_t kLeastSwizzleBytes = 32;

struct Swizzle {
  int64_t bytes = 0;             // of a row in a panel: 128, 64, 32 or 16
  int64_t width = 0;             // the same in elements
  int64_t panel = 0;             // elements of a panel
  int64_t interleaved_rows = 0;  // 2 n; 0: rows lie in their order

  int64_t element_bytes() const { return bytes / width; }
  // Of the number of an element.
  int64_t mask() const { return (bytes - 16) / element_bytes(); }
  // Elements after which the permutation is the same again. Where a buffer starts at a multiple of
  // it, addresses may be permuted in place of numbers.
  int64_t period() const { return 8 * width; }
};

// The number of an element as a sum: whole periods, and what the permutation depends on.
std::pair<arith::Linear, arith::Linear> InPeriods(const Swizzle& swizzle,
                                                  const arith::Linear& offset);

// Where a row of interleaved rows is among them.
arith::Linear Interleaved(arith::Simplifier& simplifier, const arith::Linear& row, int64_t rows);

using Swizzles = std::map<int32_t, Swizzle>;  // by slot

// Of the shared buffers that the kernel's stages with the hint write; those that can't be swizzled
// are left out.
Swizzles FindSwizzles(const ir::Program& program, const ir::Kernel& kernel);

// InvalidArgument: a stage of the kernel has the hint, and can't be swizzled.
Status CheckSwizzles(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::codegen
