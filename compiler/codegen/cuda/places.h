// The places of elements in memory. Internal to this folder.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// The offset of an element in the buffer, or in the block's part of a cluster's buffer. The offset in
// a swizzled buffer is the one in its panels, before pieces are permuted.
struct Place {
  arith::Linear offset;
  std::optional<arith::Linear> block;  // of the cluster; nothing: the buffer is no cluster's
};

// Null: the buffer is not swizzled.
const Swizzle* SwizzleOrNull(const Swizzles& swizzles, int32_t slot);

// Returns the place of the element with these indices, which are of the simplifier. A null swizzle:
// rows lie one behind the other.
Place PlaceIn(arith::Simplifier& simplifier, const ir::Buffer& buffer, const Swizzle* swizzle,
              std::vector<arith::Linear> indices);

// Returns the place of the element with these indices, which are of the program.
Place PlaceIn(CudaScope& scope, const ir::Program& program, const Swizzles& swizzles, int32_t slot,
              std::span<const ir::Expr> indices);

}  // namespace kiln::codegen
