// Which reductions matrix units can compute.
//
// A sum of products of two elements that a unit multiplies (compiler/instructions/matrix_unit.h) is a matrix
// product: spatial axes that the first factor alone is read by are rows, those of the second alone
// columns, those of both batches; the reduce axes are its depth. Convolutions are such products as
// they stand: their windows are what is read, and are fetched once for all of a tile. Where an axis of rows
// or of columns numbers groups by its quotient, as in grouped convolutions, a tile is of one group. In
// memory both factors have neighbours along the depth, or the first along its only row axis, the second
// along the last axis. Others are put in such an order first (sketch_rules/transposed_factor.cc).
//
// Tiles that fit the units: matrix_tile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace kiln::search {

enum class MatrixAxis : uint8_t { kRow, kColumn, kBatch };

struct MatrixProduct {
  const instructions::MatrixUnit* unit = nullptr;
  std::vector<MatrixAxis> axes = {};  // spatial ones
  int column_axis = -1;               // the last one, or, exchanged, the only one of the columns
  int depth_axis = -1;  // the reduce axis, as a loop of the untiled stage, that tiles cut
  ir::Expr first = nullptr, second = nullptr;  // the factors' loads
  // The second factors of the stage's other sums, which are products of the same form with the same
  // first factor. Empty: the stage has one sum.
  std::vector<ir::Expr> others = {};
  int64_t columns_of_thread = 2, rows_of_thread = 1;  // neighbours
  // The axis whose quotient by group_size is the number of a group, which the other factor is read by too;
  // -1: there are no groups. What a block covers of it divides group_size.
  int group_axis = -1;
  int64_t group_size = 0;
  // Is the depth a part of a sum that is split, or of the channels, of a group? Behind it are not zeros
  // but the next part, so that steps divide it.
  bool is_part = false;
  // Does each thread compute the second factor in registers (sketch_rules/unpacked_factor.cc)? Its columns
  // are as many neighbours as are read at once, twice. The same factor is the first one of an exchanged
  // product, of which a thread has several neighbouring rows.
  bool is_computed = false;

  bool IsFirstComputed() const { return is_computed && rows_of_thread > 1; }

  // Is it read along the depth?
  bool IsAlongDepth(ir::Expr load) const;
  // Would it be, of elements of so many bytes, if the dimension of this index were the last one?
  bool MovesAlongDepth(ir::Expr index, int64_t bytes) const;
  // Can units read it as it lies in memory: along the depth, or the first along its only row axis, the
  // second along the last axis?
  bool IsReadable(ir::Expr load) const;
  // Sums that the stage computes.
  int64_t num_sums() const { return 1 + static_cast<int64_t>(others.size()); }
  // The same, of each of the sums alone.
  std::vector<MatrixProduct> Sums() const;
  // Where the column axis is among the last `tiled` axes.
  size_t TiledColumn(size_t tiled) const {
    return static_cast<size_t>(column_axis) - (axes.size() - tiled);
  }
  // The last `tiled` axes, which tiles cut: those before them number parts of a sum that groups of
  // threads or the blocks of a cluster share out. Empty: they are no batches.
  std::span<const MatrixAxis> TiledAxes(size_t tiled) const;
};

// Nothing: it is no such product, or one too small for a tile.
std::optional<MatrixProduct> MatrixProductOf(const dag::Operator& op);
// The same of a stage. If its second factor is inlined, it may have fewer rows than a tile: units save
// conversions there, of which a thread needs one for each element, and not one for each row.
std::optional<MatrixProduct> MatrixProductOf(const schedule::State& state, int s);
// Likewise, whatever the order of the factors' dimensions: units may not read them as they lie, as the
// image and the weights of a convolution whose channels do not come last.
std::optional<MatrixProduct> MatrixProductInAnyOrder(const dag::Operator& op);

// c^T = b^T a^T: the same product with rows for columns, so that the last axis is that of the rows. Units
// of four warps read a second factor of 32 bits along the depth alone, and no computed one, but the first
// one may come through registers. Nothing: both factors are read along the depth as they lie, or neither
// would be; or there are several axes of rows or of columns. A thread has as many neighbours of the last
// axis still.
std::optional<MatrixProduct> ExchangedForWarpgroups(const MatrixProduct& product);

// The product as stage s computes it. If the second factor is inlined into it, a thread has `columns`
// neighbours.
MatrixProduct WithComputedFactor(const schedule::State& state, int s, MatrixProduct product,
                                 int64_t columns);
// Do matrix units compute stage s, which computes a factor in registers?
bool HasComputedFactor(const schedule::State& state, int s);
// Numbers of neighbours that a thread may have of a computed factor.
inline constexpr int64_t kComputedColumns[] = {8, 16, 4};
// The same of the rows of an exchanged product.
inline constexpr int64_t kComputedRows[] = {4, 2, 8};

// Are the axes of two products of the same kinds, and read in the same ways, so that what is a tile of one
// is a tile of the other where their extents are the same?
bool AreAlike(const MatrixProduct& a, const MatrixProduct& b);

// Has the target's architecture any matrix units? Those of four warps together (sm_90)?
bool HasMatrixUnits(const target::Target& target);
bool HasWarpgroupUnits(const target::Target& target);
// May those be used that multiply such factors? Do four warps together multiply them? For these columns lie
// beside each other, unlike those of an NCHW image under a window that moves by two.
bool HasMatrixUnit(const target::Target& target, const instructions::MatrixUnit& unit);
bool IsForWarpgroups(const MatrixProduct& product);
// Do they need the second factor transposed?
bool IsTransposedForWarpgroups(const MatrixProduct& product);
// Do they read the second factor along the depth, as it lies or transposed? Else along its columns, of 16 bits.
bool IsReadAlongDepth(const MatrixProduct& product);
// Is each step along the axis one along what it is the index of?
bool MovesByOne(ir::Expr load, int axis);
// The dimension of what is read whose index has the axis; none: no index has, or several.
std::optional<int> DimensionOf(ir::Expr load, int axis);
// The dimension of what the load reads that the depth moves along.
int DepthDimension(const MatrixProduct& product, ir::Expr load);
// Dimensions of the second factor, in which units of four warps read it along the depth: columns before
// the depth, all others before these.
std::vector<int> ColumnsBeforeDepth(const MatrixProduct& product);
// That its column axis moves along; none: there are several.
std::optional<int> ColumnDimension(const MatrixProduct& product);
// Does a window move its columns, as those of NCHW images? Then units of four warps read a tile of one
// element of the window: others would begin between groups of 8 columns.
bool HasMovingColumns(const MatrixProduct& product);

// The stages that a hint says matrix units compute, ascending. The first one; none: there is none.
std::vector<int> ProductsOfMatrixUnits(const schedule::State& state);
std::optional<int> MatrixStageOf(const schedule::State& state);
bool HasMatrixHint(std::span<const schedule::StepPtr> steps);

}  // namespace kiln::search
