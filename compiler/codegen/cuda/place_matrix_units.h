// Puts instructions of matrix units into a program. Internal to this folder.
//
//   for k { for i { for j { c[i, j] = c[i, j] + float32(a[t // 4, i, k])*float32(b[t % 4, k, j]) } } }
//
// becomes
//
//   instruction mma_f16 {
//     for k { for i { for j { c[i, j] = c[i, j] + float32(a[t // 4, i, k])*float32(b[t % 4, k, j]) } } }
//   }
//
// if the stage has Hint::kMatrixUnit and the tile fits the instruction (matrix_tile.h). The statement
// says what each thread computes; the threads of a warp, or of four warps (wgmma_f16), compute it
// together. Nothing behind this pass asks whether a tile fits.
#pragma once

#include <map>

#include "base/status.h"
#include "compiler/codegen/cuda/matrix_places.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// The tiles of the instructions in a program, and the memory that they read.
struct MatrixUnitPlan {
  // The tile of each statement with an instruction of a matrix unit.
  std::map<ir::Stmt, MatrixTile> tiles;
  // The layouts of all kernels' buffers in shared memory, by slot.
  Swizzles swizzles;
};

// Places the instructions and returns their plan, also that of statements which the program has
// already. InvalidArgument: why the units can't compute a tile of a stage with the hint, or why a
// stage with Hint::kSwizzle can't be swizzled. The program's pool must be its own, and its statements
// must stay as they are while the plan is used. Cost: as MatrixTileMatcher says, once for each tile,
// twice if rows are interleaved.
StatusOr<MatrixUnitPlan> PlaceMatrixUnits(ir::Program& program);

}  // namespace kiln::codegen
