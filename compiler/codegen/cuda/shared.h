// Where the shared buffers of a GPU kernel lie, and the barriers of its bulk copies.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Hint::kBulkCopies (bulk_copies.h) of a stage that the kernel computes; 0: none has it.
int32_t BulkCopiesOf(const ir::Program& program, const ir::Kernel& kernel);
inline bool WantsBulkCopies(const ir::Program& program, const ir::Kernel& kernel) {
  return BulkCopiesOf(program, kernel) != 0;
}

// Elements of a shared buffer in each block; of a buffer of a cluster, the elements of one part.
int64_t ElementsInBlock(const ir::Buffer& buffer);

struct SharedBuffer {
  int32_t slot;    // index into Program::buffers
  int64_t offset;  // bytes from the start of the block's shared memory; a multiple of `alignment`
  int64_t alignment;  // 16, or the period of its swizzle
};

struct SharedLayout {
  std::vector<SharedBuffer> buffers;  // by alignment, the greatest first; else as their allocs are
  int64_t bytes = 0;                  // in all
  int64_t bulk_barriers = 0;  // where those of bulk copies are (bulk_copies.h), if there are any
  int64_t alignment = 16;     // of the start
};

// Shared buffers that the kernel allocates and that are not in registers (lower/warp_registers.h), one
// behind the other. They never overlap, even where
// their allocs are disjoint: that would need barriers the program does not have.
SharedLayout LayOutShared(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::codegen
