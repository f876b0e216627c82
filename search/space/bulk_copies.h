// Which products of four warps' units can have their tiles brought by the bulk copy engine of sm_90
// (Hint::kBulkCopies; compiler/codegen/cuda/bulk_copies.h says what it does).
#pragma once

#include <vector>

#include "compiler/schedule/state.h"

namespace kiln::search {

// The root stages that products of matrix units are computed in, ascending.
std::vector<int> RootsOfMatrixUnits(const schedule::State& state);

// Does code generation take the hint on such a stage? Its tiles are fetched asynchronously, as they
// lie in arrays of up to 5 dimensions with rows of a multiple of 16 bytes, zeros beyond their ends,
// at most 256 elements along a dimension, in all of a multiple of 128 bytes; where rows are
// interleaved, they are those of one axis. The extents must be filled.
bool CanCopyInBulk(const schedule::State& state, int s);

// Its value 2 likewise: blocks are pairs of a column of tiles.
bool CanCopyForPairs(const schedule::State& state, int s);

// Hint::kPersistentBlocks of this value on the root of such a kernel: there are more tiles than
// blocks, or their sums are streamed.
bool CanPersist(const schedule::State& state, int root, int32_t blocks);

// Hint::kStreamK on the root of such a kernel, which has persistent blocks and several tiles: blocks have no
// equal numbers of tiles, each has the terms of some iterations, and blocks are no pairs.
bool CanStream(const schedule::State& state, int root);

// Bytes of shared memory that the barriers of kernel `root` take.
int64_t BulkBarrierBytes(const schedule::State& state, int root);

// Gives those that can't have the hint a lower value, which they can. Returns whether a step
// changed.
bool SimplifyBulkCopies(const schedule::State& filled, std::vector<schedule::StepPtr>& steps);

}  // namespace kiln::search
