// Which reductions matrix units can compute, and the tiles that fit them.
//
// A sum of products of two elements that a unit multiplies (compiler/ir/matrix_unit.h) is a matrix
// product: spatial axes that the first factor alone is read by are rows, those of the second alone
// columns, those of both batches; the reduce axes are its depth. Convolutions are such products as
// they stand: their windows are what is read, and are fetched once for all of a tile. Where the last
// axis numbers groups of columns by its quotient, as in grouped convolutions, a tile is of one group. In
// memory both factors have neighbours along the depth, or the first along its only row axis, the second
// along the last axis. Others are put in such an order first (sketch_rules/transposed_factor.cc).
//
// The instruction's tile is 16 rows, 8 columns, `depth` deep (compiler/codegen/cuda/matrix_tile.h
// says which thread has what). A tile in levels [vthreads, threads, inner, inner] fits it where
//   * the last spatial axis is a column: [any, 4 n, a, b] with a*b = columns_of_thread, for n = 1, 2,
//     4 or 8 warps beside each other;
//   * rows are [any, any, 1, 1], their threads together a multiple of 8, their virtual threads even
//     in the innermost row axis that has some; or the only row axis is [any, any, a, b] with a*b =
//     rows_of_thread = 2, of bytes that are neighbours along it;
//   * other columns are [any, 1, 1, 1], and batches [1, 1, 1, 1];
//   * one reduce axis has an innermost length that is a multiple of the depth.
// Sums may be split (search/space/sketch_rules/reduction_split.cc): the number of the part is a batch,
// and parts begin at multiples of 16 bytes.
// Four warps together (Hint::kMatrixUnit of 2; codegen/cuda/matrix_warpgroup.h) compute it where
//   * factors have 16 bits, or their neighbours along the depth; of 32 bits the second one is else
//     transposed on its way to shared memory (search/space/shared_layout.h);
//   * no warps are beside each other, and the threads of the rows are a multiple of 32;
//   * of the columns but the last axis has several, an even number up to 32 of virtual threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace kiln::search {

enum class MatrixAxis : uint8_t { kRow, kColumn, kBatch };

struct MatrixProduct {
  const ir::MatrixUnit* unit = nullptr;
  std::vector<MatrixAxis> axes = {};  // spatial ones
  int depth_axis = -1;  // the reduce axis, as a loop of the untiled stage, that tiles cut
  ir::Expr first = nullptr, second = nullptr;         // the factors' loads
  int64_t columns_of_thread = 2, rows_of_thread = 1;  // neighbours
  int64_t group_columns =
      0;  // columns of a group, which the columns of a block divide; 0: no groups
  // Is the depth a part of a sum that is split, or of the channels, of a group? Behind it are not zeros
  // but the next part, so that steps divide it.
  bool is_part = false;

  // Is it read along the depth?
  bool IsAlongDepth(ir::Expr load) const;
  // Can units read it as it lies in memory: along the depth, or the first along its only row axis, the
  // second along the last axis?
  bool IsReadable(ir::Expr load) const;
  // The last `tiled` axes, which tiles cut: those before them number parts of a sum that groups of
  // threads or the blocks of a cluster share out. Empty: they are no batches.
  std::span<const MatrixAxis> TiledAxes(size_t tiled) const;
};

// Nothing: it is no such product, or one too small for a tile.
std::optional<MatrixProduct> MatrixProductOf(const dag::Operator& op);
// Likewise, whatever the order of the factors' dimensions: units may not read them as they lie, as the
// image and the weights of a convolution whose channels do not come last.
std::optional<MatrixProduct> MatrixProductInAnyOrder(const dag::Operator& op);

// Has the target's architecture any matrix units? Those of four warps together (sm_90)?
bool HasMatrixUnits(const target::Target& target);
bool HasWarpgroupUnits(const target::Target& target);
// May those be used that multiply such factors? Do four warps together multiply them?
bool HasMatrixUnit(const target::Target& target, const ir::MatrixUnit& unit);
bool IsForWarpgroups(const MatrixProduct& product);
// Do they need the second factor transposed?
bool IsTransposedForWarpgroups(const MatrixProduct& product);
// The dimension of what the load reads that the depth moves along.
int DepthDimension(const MatrixProduct& product, ir::Expr load);
// Dimensions of the second factor, in which units of four warps read it along the depth: columns before
// the depth, all others before these.
std::vector<int> ColumnsBeforeDepth(const MatrixProduct& product);
// Does a window move its columns, as those of NCHW images? Then units of four warps read a tile of one
// element of the window: others would begin between groups of 8 columns.
bool HasMovingColumns(const MatrixProduct& product);

// The stage that a hint says matrix units compute; none: there is none.
std::optional<int> MatrixStageOf(const schedule::State& state);
bool HasMatrixHint(std::span<const schedule::StepPtr> steps);

// Registers of a thread limit its virtual threads where they are rows and columns of a tile.
inline constexpr int64_t kMaxMatrixVThreads = 64;

// What a block's virtual threads may be in all.
int64_t MostVThreads(const target::HardwareParams& hardware, bool has_matrix_hint);

// [vthreads, threads, 1, inner] of each tiled axis, in their order, as a random tile that fits.
// Empty: this draw does not; draw again.
std::vector<std::vector<int64_t>> RandomMatrixTile(const MatrixProduct& product,
                                                   ir::MatrixUnitScope scope,
                                                   std::span<const int64_t> extents, Rng& rng);
// [outer, innermost] of the reduce axis that tiles cut, of this extent.
std::vector<int64_t> RandomMatrixDepth(const MatrixProduct& product, ir::MatrixUnitScope scope,
                                       int64_t extent, Rng& rng);

// Why lengths of the tiled axes, of these extents, do not fit the unit. "": they do.
std::string WhyNoMatrixTile(const MatrixProduct& product, ir::MatrixUnitScope scope,
                            std::span<const int64_t> extents,
                            std::span<const std::vector<int64_t>> lengths);

// How a stage is cut: its splits in the order of the steps, of spatial axes and of the others.
struct MatrixSplits {
  struct Reduction {
    int step = -1;  // the number of its split
    std::vector<int64_t> lengths = {};
    int64_t extent = 0;
    bool operator==(const Reduction&) const = default;
  };
  // Of the tiled axes: number of the split, lengths, extent of the axis.
  std::vector<int> steps = {};
  std::vector<std::vector<int64_t>> lengths = {};
  std::vector<int64_t> extents = {};
  std::vector<Reduction> reductions = {};
  bool operator==(const MatrixSplits&) const = default;
};
MatrixSplits MatrixSplitsOf(const schedule::State& state, int s);

// Registers without which a thread can't have the results of one instruction of four warps; 0: there
// are none in stage `root` and those computed inside of it.
int64_t LeastRegisters(const schedule::State& state, int root);

// FailedPrecondition: why the tiles of the stage with the hint do not fit. The extents of `state`
// must be filled.
Status CheckMatrixTile(const schedule::State& state);

}  // namespace kiln::search
