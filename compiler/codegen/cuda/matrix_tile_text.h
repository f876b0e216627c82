// The text of the tiles that matrix units compute: which registers are loaded from where, and
// multiplied. Internal to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/matrix_places.h"
#include "compiler/codegen/cuda/matrix_warpgroup.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/ir/program.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {

// No copies are waited for.
inline constexpr int64_t kNoCopies = std::numeric_limits<int64_t>::min();

// References are kept. One thread. Cost: some simplified addresses for each register of a tile.
class CudaMatrixTiles {
 public:
  CudaMatrixTiles(const ir::Program& program, const Swizzles& swizzles, CudaScope& scope,
                  CudaExprs& exprs, CudaBlocks& blocks, const lower::WarpRegisters& held,
                  CudaNames& names, CudaPreamble& preamble)
      : program_(program),
        swizzles_(swizzles),
        scope_(scope),
        exprs_(exprs),
        blocks_(blocks),
        held_(held),
        names_(names),
        preamble_(preamble) {}

  // Says how the kernel reads sums of four warps' units. Call it before the first tile.
  void SetReading(SumReading reading) { reading_ = reading; }
  // fn(slot): the units have read the second factor of a tile, from that buffer.
  void SetWhenRead(std::function<void(int32_t slot)> fn) { when_read_ = std::move(fn); }
  // Emits the tile, behind a barrier with so many groups of copies under way; kNoCopies: that waits for none.
  void Emit(const MatrixTile& tile, int64_t copies_under_way);
  // How many tiles that were emitted are still being computed, the latest ones last.
  size_t under_way() const { return under_way_.size(); }
  // Waits for all but the first `kept` of them, or, in a ring with buffers to spare, for those of
  // earlier iterations.
  void Wait(size_t kept);
  // The same, for no more of them than a statement needs that comes next.
  void WaitBefore(ir::Stmt next, size_t kept);
  // Behind the loop: waits for those of its last iterations, where there are any.
  bool is_in_ring() const { return !ring_sums_.empty(); }
  void WaitForRing();
  // The order of the last tile, or the program's if there was none.
  WarpOrder warp_order() const { return order_.value_or(WarpOrder()); }

 private:
  // A tile, and the places of its operands.
  struct Placed {
    const MatrixTile& tile;
    MatrixPlaces& places;
  };

  std::string ThreadName(const MatrixTile& tile) const;
  bool MayRunBeside(ir::Stmt stmt) const;
  bool IsTile(ir::Stmt stmt) const;
  bool RunOn() const;
  std::vector<std::string> SumsFrom(size_t first, size_t end) const;
  void TellRead(size_t first, size_t end) const;
  std::string Sum(const MatrixTile& tile, size_t row, size_t column);
  void EmitSteps(const Placed& of);
  void EmitStep(const Placed& of);
  void EmitKnownSteps(const Placed& of);
  // matrix_warpgroup.h
  static int64_t SpareBuffers(const MatrixTile& tile, const CudaExprs& exprs,
                              int64_t copies_under_way);
  WarpgroupText TextOf(const Placed& of);
  void EmitWarpgroupSteps(const Placed& of);
  static std::pair<size_t, size_t> ColumnsOf(const MatrixTile& tile, size_t fragment);
  void LoadFirst(const Placed& of, const std::string& name);
  void TakeHeld(const Placed& of, const std::string& name);
  void Compute(const Placed& of, const std::string& name);
  void LoadSecond(const Placed& of, const std::string& name);
  void LoadSecondPairs(const Placed& of, const std::string& name);
  void Unzip(const Placed& of, const std::string& first, const std::string& second);
  std::string Row(const Placed& of, const MatrixOperand& operand, size_t position);
  std::string Element(const Placed& of, const MatrixOperand& operand, size_t position, int part);

  const ir::Program& program_;
  const Swizzles& swizzles_;
  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaBlocks& blocks_;
  const lower::WarpRegisters& held_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  std::optional<WarpOrder> order_;
  // A tile whose products go on beside the threads.
  struct UnderWay {
    int32_t sums = -1, held = -1;  // buffers in registers that they change, and that they read
    int32_t second = -1;           // buffer in shared memory
    bool is_committed_once = true;
    int64_t iterations = 0;  // whose products need not be waited for
  };
  std::vector<UnderWay> under_way_;
  SumReading reading_ = SumReading::kAny;
  std::function<void(int32_t)> when_read_;
  std::vector<std::string> ring_sums_;  // the arrays of earlier iterations' tiles
  int64_t spare_ = 0;                   // iterations of the tile that is emitted
};

}  // namespace kiln::codegen
