// What sketch rules and samplers ask about a stage in its state.
#pragma once

#include <optional>
#include <vector>

#include "compiler/dag/access_analysis.h"
#include "compiler/schedule/state.h"

namespace kiln::search {

// For one question after the other about one stage; the state must outlive it. Making one analyses
// the whole DAG.
class StageView {
 public:
  StageView(const schedule::State& state, int s) : state_(state), s_(s), analysis_(*state.dag()) {}

  bool NeedsMultiLevelTiling() const { return analysis_.needs_multi_level_tiling(s_); }
  // Is it a reduction whose results, not its terms, are consecutive in memory?
  bool ReducesColumns() const { return analysis_.reduces_columns(s_); }
  bool StrictlyInlineable() const { return analysis_.is_strictly_inlineable(s_); }
  bool Output() const { return state_.dag()->is_output(s_); }

  // The only consumer, when stage and consumer are matched element by element and not both reduce.
  std::optional<int> ElementwiseConsumer() const;
  // Was this stage made by a cache write of one stage?
  bool IsCacheWriteStage() const;
  // Was it made of the sums of several stages?
  bool IsOfJoinedSums() const;

  int64_t RowLength() const;  // extent of the last axis; a scalar's is 1
  double SpatialProduct() const;
  double ReduceProduct() const;

 private:
  // The cache write that made this stage; null: none did.
  const schedule::Step* CacheWrite() const;

  const schedule::State& state_;
  const int s_;
  dag::AccessAnalysis analysis_;
};

// Is stage s tiled in several levels, or a stage that is to be? Columns may be, but need not.
bool IsTiledInLevels(const schedule::State& state, const dag::AccessAnalysis& analysis, int s);

// Does a thread-bound loop reduce, in the stage or in one attached to it?
bool HasCrossThreadReduction(const schedule::State& state, int s);

// Was the stage made by a cache read that orders its dimensions anew?
bool IsReorderedCopy(const schedule::State& state, int s);

// The numbers of the steps that work on what is now stage s, ascending; not those from before a
// cache write or an rfactor gave it fresh loops. The SP steps among them.
std::vector<int> StepsOf(const schedule::State& state, int s);
std::vector<int> SplitStepsOf(const schedule::State& state, int s);

// The number of the SP step that shares the reduction of stage s out over groups of threads
// (sketch_rules/reduction_split.cc): lengths [outer loop, groups]. None: it is not split.
std::optional<int> GroupSplitOf(const schedule::State& state, int s);

// The stage at whose first axis the blocks of a cluster share a reduction out, and that is computed
// inside of root stage `root` (sketch_rules/reduction_split.cc), if there is one.
std::optional<int> ClusterStageIn(const schedule::State& state, int root);
// The number of the SP step that made this axis, lengths [parts].
std::optional<int> PartsSplitOf(const schedule::State& state, int s);

}  // namespace kiln::search
