// The sketch rules, one factory each. CpuSketchRules and GpuSketchRules (search/space/sketch.h) say
// which apply in which order; what differs between devices a rule asks the task's target.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "search/space/sketch.h"

namespace kiln::search {

using SketchRulePtr = std::unique_ptr<SketchRule>;
// A single one, without a copy.
inline NextStates One(schedule::State state, int s) {
  NextStates next;
  next.emplace_back(std::move(state), s);
  return next;
}

// On a GPU a reduction of columns (StageView::ReducesColumns) is tried with tiles like those of
// products, too: threads along what is consecutive, vectors, several results a thread.
bool TilesColumns(const RuleContext& context, const schedule::State& state, int stage);

// inline.cc: where stages without tiles of their own are computed.
SketchRulePtr AlwaysInlineRule();
SketchRulePtr SpecialComputeLocationRule();  // GPU

// const_tensor.cc: small products with constant matrices, as in Winograd's method.
SketchRulePtr SimplifyConstTensorRule();

// rfactor.cc, cross_thread.cc: more parallelism for reductions.
SketchRulePtr RfactorRule();                // CPU
SketchRulePtr CrossThreadReductionRule();   // GPU
inline constexpr int kMostRowParts = 1024;  // of a few long rows, each a block's
// Has the reduction fewer results than two for each multiprocessor, of many terms each?
bool HasFewLongRows(const RuleContext& context, const schedule::State& state, int s);

// copy.cc: a tile in shared memory for what is read along another axis than it is stored along.
SketchRulePtr CopyTileRule();  // GPU

// kept_rows.cc: a long row in shared memory that its reductions and their reader read.
SketchRulePtr KeptRowsRule();  // GPU

// merged_rows.cc: rows of several axes that are one axis to matrix units.
SketchRulePtr MergedRowsRule();  // GPU

// joined_sums.cc: products with a common factor that one operator reads, as one stage of several
// sums.
SketchRulePtr JoinedSumsRule();  // GPU

// max_and_sum.cc: a maximum and the sum of exponentials below it in one pass over a few long rows.
SketchRulePtr MaxAndSumRule();  // GPU

// transposed_factor.cc: a kernel that transposes a factor as matrix units read it.
SketchRulePtr TransposedFactorRule();  // GPU

// chosen_rows.cc: a kernel that copies the rows of a product that an index chooses.
SketchRulePtr ChosenRowsRule();  // GPU

// unpacked_factor.cc: a factor that is computed from fewer bytes where the product reads it.
SketchRulePtr UnpackedFactorRule();  // GPU

// reduction_split.cc: a tiled reduction, or one of columns, split over blocks or the blocks of
// a cluster, groups of threads, or both. The SP step before an RF step holds the parts: [parts]
// over blocks, [outer loop, groups] inside a block (both from the outside, what is left is the
// inner loop).
SketchRulePtr ReductionSplitRule();    // GPU
inline constexpr int kMostParts = 32;  // of either kind
// Columns that are too few to fill the device otherwise have more parts over blocks.
inline constexpr int kMostColumnParts = 256;
// Blocks of a cluster that every GPU with clusters can have.
inline constexpr int64_t kClusterSizes[] = {2, 4, 8};
// Of those that the device holds (DeviceModel::max_cluster_blocks).
inline bool IsClusterSize(int64_t blocks, int64_t most) {
  return blocks <= most && std::ranges::find(kClusterSizes, blocks) != std::end(kClusterSizes);
}

// cache.cc: tiles of inputs in shared memory, tiles of results in registers.
SketchRulePtr CacheReadRule();  // GPU
SketchRulePtr CacheWriteRule();

// online_softmax.cc: a softmax between two products as one kernel.
SketchRulePtr OnlineSoftmaxRule();  // GPU

// tiling.cc
// Returns the stage that s can be computed inside of, at the tiles of s: its reader, unless that has
// tiles of its own, as one has that broadcasts two vectors or that another product was fused into,
// or loops that s has not.
std::optional<int> FusibleReader(const schedule::State& state, int s);
SketchRulePtr TilingWithFusionRule();
SketchRulePtr TilingRule();
SketchRulePtr SkipStageRule();

}  // namespace kiln::search
