// Tiles of products by matrix units (matrix_product.h): which fit, random ones, those of a schedule.
//
// The instruction's tile is 16 rows, 8 columns, `depth` deep (compiler/codegen/cuda/matrix_tile.h
// says which thread has what). A tile in levels [vthreads, threads, inner, inner] fits it where
//   * the last spatial axis is a column: [any, 4 n, a, b] with a*b = columns_of_thread, for n = 1, 2,
//     4 or 8 warps beside each other;
//   * rows are [any, any, 1, 1], their threads together a multiple of 8, their virtual threads even
//     in the innermost row axis that has some; or the only row axis is [any, any, a, b] with a*b =
//     rows_of_thread = 2, of bytes that are neighbours along it;
//   * other columns are [any, 1, 1, 1], and batches [1, 1, 1, 1];
//   * what it covers of an axis that numbers groups divides a group;
//   * one reduce axis has an innermost length that is a multiple of the depth.
// Sums may be split (search/space/sketch_rules/reduction_split.cc): the number of the part is a batch,
// and parts begin at multiples of 16 bytes.
// Four warps together (Hint::kMatrixUnit of 2; codegen/cuda/matrix_warpgroup.h) compute it where
//   * factors have 16 bits, or their neighbours along the depth; of 32 bits the second one is else
//     transposed on its way to shared memory (search/space/shared_layout.h);
//   * no warps are beside each other, and the threads of the rows are a multiple of 32;
//   * of the columns but the last axis has several, an even number up to 32 of virtual threads.
// There a product may be exchanged (ExchangedForWarpgroups): the only row axis is then cut as the last
// axis is else, and the last axis as rows are, [any, 32 n, 1, 2], or, if the factor of the last axis is
// computed, with 2, 4 or 8 neighbours of a thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"
#include "search/space/matrix_product.h"

namespace kiln::search {

// Registers of a thread limit its virtual threads where they are rows and columns of a tile.
inline constexpr int64_t kMaxMatrixVThreads = 64;

// What a block's virtual threads may be in all.
int64_t MostVThreads(const target::HardwareParams& hardware, bool has_matrix_hint);

// Have the products one axis of rows, with at most a half of the 64 rows that units of four warps
// multiply? Then a tile has [2, 32, 1, 1] of them: the rows behind the axis are zeros, and are not
// stored. The limit of such a product is how fast the other factor comes, not how it is multiplied.
// Units of single warps have 16 rows, [2, 8, 1, 1], if the second factor is computed.
bool HasShortRows(const MatrixProduct& product, ir::MatrixUnitScope scope,
                  std::span<const int64_t> extents);

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

// The product that stage s is, as its tile has it: exchanged where the row axis is cut as columns are.
std::optional<MatrixProduct> TiledProductOf(const schedule::State& state, int s);

// Registers without which a thread can't have the results of one instruction of four warps; 0: there
// are none in stage `root` and those computed inside of it.
int64_t LeastRegisters(const schedule::State& state, int root);

// FailedPrecondition: why the tiles of a stage with the hint do not fit. The extents of `state`
// must be filled.
Status CheckMatrixTiles(const schedule::State& state);

}  // namespace kiln::search
