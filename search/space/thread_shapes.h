// The shape of GPU kernels without multi-level tiles: what moves or reduces data as fast as memory
// allows. A few small numbers each: threads, the elements of a vector, and how many of these a
// thread works on, rows of a reduction in one block, the tile of a copy through shared memory.
//
// They are lengths of splits, told by what is bound behind them:
//   [serial, threads, lanes]  elementwise: what a thread works on is a block's threads apart
//   [threads, lanes]          a reduction over threads, the row behind it; a tile that is copied
//   [threads]                 the same without vectors
//   [rows]                    of threadIdx.y: rows that a block reduces
//   [tile]                    of an axis of what is copied through shared memory
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace kiln::search {

enum class LengthRole : uint8_t { kSerial, kThreads, kLanes, kRows, kTile };

// Of the lengths of step i, if it is a split of one of the kinds above; else empty.
std::vector<LengthRole> LengthRoles(std::span<const schedule::StepPtr> steps, size_t i);

// Is step i one of the splits, right behind a cache read, of the stage that reads it?
bool IsCopyTile(std::span<const schedule::StepPtr> steps, size_t i);

// Does the split of step i make parts of long rows, for the threads of a block each
// (sketch_rules/cross_thread.cc)?
bool SharesRowsOut(std::span<const schedule::StepPtr> steps, size_t i);

// The lengths worth trying, ascending. `extent`: of the loop that is split, of which lanes are a
// divisor; 0: they need not be. max_lanes: elements of the smallest type in a vector register.
std::vector<int64_t> LengthChoices(LengthRole role, int64_t extent, int64_t max_lanes,
                                   const target::HardwareParams& hardware);

// Elements of the smallest type of the DAG in one vector.
int64_t MostLanes(const dag::Dag& dag, const target::HardwareParams& hardware);

// Parts of a warp that may share out a row of so many terms, beside RandomThreads: whole rows of the
// others are in the same warp. Empty: the row has vectors for all threads of a warp.
std::vector<int64_t> PartsOfWarp(int64_t terms, int64_t max_lanes,
                                 const target::HardwareParams& hardware);

// A warp times a power of two: up to a block, and no more than `extent` keeps busy.
int64_t RandomThreads(int64_t extent, const target::HardwareParams& hardware, Rng& rng);

// [serial, threads, lanes] for a loop of so many elements.
std::vector<int64_t> RandomFlatShape(int64_t extent, int64_t max_lanes,
                                     const target::HardwareParams& hardware, Rng& rng);

// ---- copies through shared memory (sketch_rules/copy.cc)

// The stage in shared memory that is computed at the block loop of root stage s, which copies from
// it and reduces nothing, if there is one.
std::optional<int> CopiedStageIn(const schedule::State& state, int s);
// Is s such a stage?
bool IsCopied(const schedule::State& state, int s);

// The axes of `op` in the order in which they index the tensor that `load` reads, outermost first:
// none where an index has no axis, or several.
std::vector<std::optional<int>> SourceOrder(const dag::Operator& op, ir::Expr load);

// Tile lengths for all axes: runs of 16 to 128 elements along the axes of the copy and along those
// of its source.
std::vector<int64_t> RandomCopyTile(std::span<const int64_t> extents,
                                    std::span<const std::optional<int>> source_order, Rng& rng);

// ---- long rows in shared memory (sketch_rules/kept_rows.cc)

// Returns true if stage s is a row in shared memory that reductions over threads read.
bool IsKeptRow(const schedule::State& state, int s);

// The threads that share out a row: a split step, and the number of the length that has the threads.
struct RowThreads {
  int step = 0, level = 0;
};
// Returns the threads of the block in which kept row s is.
std::optional<RowThreads> ThreadsOfKeptRow(const schedule::State& state, int s);

}  // namespace kiln::search
