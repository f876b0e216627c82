#include "search/evolution/rebuild.h"

#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/bulk_copies.h"
#include "search/space/gpu_validity.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "search/space/shared_layout.h"
#include "search/space/stage_view.h"
#include "search/space/thread_shapes.h"

namespace kiln::search {
namespace {

using schedule::AnnotateStep;
using schedule::Annotation;
using schedule::As;
using schedule::FollowFusedSplitStep;
using schedule::Is;
using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;

bool Binds(const schedule::Step& step, int stage, int loop, Annotation annotation) {
  const auto* bind = As<AnnotateStep>(step);
  return bind != nullptr && bind->stage_id == stage && bind->loop == loop &&
         bind->annotation == annotation;
}

// Returns lengths that divide the extent. Each is the largest part of the old length that fits.
std::vector<int64_t> MakeExact(std::vector<int64_t> lengths, int64_t extent) {
  for (size_t i = lengths.size(); i-- > 0;) {
    lengths[i] = std::gcd(lengths[i], extent);
    extent /= lengths[i];
  }
  return lengths;
}

// Returns the split for this extent, or the same step if nothing changes. Tiles that were exact
// stay exact.
StepPtr AtExtent(const StepPtr& step, int64_t extent, bool is_tiles) {
  const SplitStep& split = *As<SplitStep>(*step);
  if (extent <= 0 || extent == split.extent) return step;
  std::vector<int64_t> lengths = split.lengths;
  const int64_t product = ProductOfCounts(lengths);
  if (is_tiles && product > 0 && split.extent % product == 0 && extent % product != 0)
    lengths = MakeExact(std::move(lengths), extent);
  return std::make_shared<SplitStep>(split.stage_id, split.loop, extent, std::move(lengths),
                                     split.inner_to_outer);
}

// Returns the extent of the loop that the split is applied to, or kUnknownExtent.
int64_t ExtentAt(const State& state, const SplitStep& split) {
  if (split.stage_id < 0 || split.stage_id >= state.num_stages()) return schedule::kUnknownExtent;
  const schedule::Stage& stage = state.stage(split.stage_id);
  if (split.loop < 0 || split.loop >= static_cast<int>(stage.loops.size()))
    return schedule::kUnknownExtent;
  return stage.loop(split.loop).extent;
}

// Tells whether the step splits a tile that the blocks of a cluster share out: by lanes, threads,
// then blocks.
bool IsOfCluster(std::span<const StepPtr> steps, size_t i) {
  return i + 5 < steps.size() && As<SplitStep>(*steps[i]) != nullptr &&
         Binds(*steps[i + 5], steps[i]->stage(), As<SplitStep>(*steps[i])->loop + 1,
               Annotation::kCluster);
}

StatusOr<State> ReplayExact(const dag::DagPtr& dag, std::span<const StepPtr> steps) {
  State state(dag);
  for (size_t i = 0; i < steps.size(); ++i) {
    const SplitStep* split = As<SplitStep>(*steps[i]);
    // The extents of fetches are known only at the end. A loop that the blocks of a cluster share
    // out is a tile, whose extent is known.
    const bool exact = split != nullptr && (!IsFetchSplit(steps, i) || IsOfCluster(steps, i));
    KILN_RETURN_IF_ERROR(state.Apply(
        exact ? AtExtent(steps[i], ExtentAt(state, *split), !IsThreadSplit(steps, i)) : steps[i]));
  }
  return state;
}

// Updates the fetches in `steps` to their extents in `state`, and narrows vectors that are wider
// than allowed. Returns false if nothing changed.
StatusOr<bool> MendFetches(const State& state, const target::HardwareParams& hardware,
                           std::vector<StepPtr>& steps) {
  bool changed = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!IsFetchSplit(steps, i)) continue;
    const SplitStep& split = *As<SplitStep>(*steps[i]);
    // Fetches are bound after all stages are made, so the number in the step is still the stage's.
    const int s = split.stage_id;
    if (s >= state.num_stages()) continue;
    const std::optional<int> parts = ClusterStageIn(state, s);
    if (!parts && !state.stage(s).asks_for_shared()) continue;
    // A fetch covers its region. A cluster's sums cover the tile, which keeps its extent.
    const schedule::Stage& stage = state.stage(s);
    int64_t extent = parts ? split.extent : 1;
    for (size_t axis = 0; !parts && axis < stage.op->axes().size(); ++axis)
      extent *= stage.iters[axis].extent;
    KILN_ASSIGN_OR_RETURN(const int64_t threads,
                          FollowedLength(*As<FollowFusedSplitStep>(*steps[i + 2]), steps));
    const std::vector<int64_t> widths =
        parts                ? SumWidths(state, *parts, threads, hardware.vector_unit_bytes)
        : IsCopied(state, s) ? CopyWidths(state, s, threads, hardware.vector_unit_bytes)
                             : FetchWidths(state, s, threads, hardware.vector_unit_bytes);
    int64_t width = 1;
    for (int64_t w : widths) {
      if (w <= split.lengths[0]) width = w;
    }
    if (width == split.lengths[0] && extent == split.extent) continue;
    steps[i] = std::make_shared<SplitStep>(split.stage_id, split.loop, extent,
                                           std::vector<int64_t>{width}, split.inner_to_outer);
    changed = true;
  }
  return changed;
}

bool ThreadsFit(const State& state, const target::HardwareParams& hardware) {
  const int64_t most_vthreads = MostVThreads(hardware, MatrixStageOf(state).has_value());
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind != schedule::Attach::kRoot)
      continue;
    const BlockUse use = UseOfKernel(state, s);
    if (use.threads > hardware.max_threads_per_block || use.vthreads > most_vthreads) return false;
  }
  return true;
}

StatusOr<State> MendGpu(State state, const Task& task, Drop& why) {
  if (!ProductsOfMatrixUnits(state).empty()) {
    std::vector<StepPtr> padded = state.steps();
    if (PadBrokenLines(state, padded)) {
      KILN_ASSIGN_OR_RETURN(state, schedule::Replay(task.dag, padded, task.stop));
    }
  }
  KILN_ASSIGN_OR_RETURN(const State filled, lower::FillExtents(state, task.stop));
  const Status limits = CheckGpuLimits(filled, task.hardware, task.device.max_cluster_blocks);
  if (!limits.ok()) {
    why = ThreadsFit(filled, task.hardware) ? Drop::kSharedMemory : Drop::kThreads;
    return limits;
  }
  std::vector<StepPtr> steps = state.steps();
  KILN_ASSIGN_OR_RETURN(const bool is_mended, MendFetches(filled, task.hardware, steps));
  // Whether the copy engine can bring tiles depends on how these are fetched, so the layouts of
  // matrix units are simplified in the mended state. Other layouts do not depend on it: a fetch
  // covers the same region however it is split.
  if (is_mended && !ProductsOfMatrixUnits(filled).empty()) {
    KILN_ASSIGN_OR_RETURN(State mended, schedule::Replay(task.dag, steps, task.stop));
    KILN_ASSIGN_OR_RETURN(const State all, lower::FillExtents(mended, task.stop));
    return SimplifyLayouts(all, steps) ? schedule::Replay(task.dag, steps, task.stop) : mended;
  }
  const bool is_simplified = SimplifyLayouts(filled, steps);
  if (is_mended || is_simplified) return schedule::Replay(task.dag, steps, task.stop);
  return state;
}

}  // namespace

bool IsFetchSplit(std::span<const StepPtr> steps, size_t i) {
  if (i + 2 >= steps.size()) return false;
  const SplitStep* split = As<SplitStep>(*steps[i]);
  return split != nullptr && split->lengths.size() == 1 &&
         Binds(*steps[i + 1], split->stage_id, split->loop + 1, Annotation::kVectorize) &&
         Is<FollowFusedSplitStep>(*steps[i + 2]) && steps[i + 2]->stage() == split->stage_id;
}

bool IsThreadSplit(std::span<const StepPtr> steps, size_t i) {
  return !LengthRoles(steps, i).empty();
}

Status CheckThreadTiles(std::span<const StepPtr> steps, const target::HardwareParams& hardware) {
  const int64_t most_vthreads = MostVThreads(hardware, HasMatrixHint(steps));
  for (const StepPtr& step : steps) {
    const auto* follow = As<FollowFusedSplitStep>(*step);
    if (follow == nullptr) continue;
    KILN_ASSIGN_OR_RETURN(const int64_t threads, FollowedLength(*follow, steps));
    if (threads > hardware.max_threads_per_block) {
      return FailedPrecondition("{} threads per block, the device has {}", threads,
                                hardware.max_threads_per_block);
    }
    // The level before the threads has the virtual threads, in spatial splits. A split from the
    // outside in shares a reduction out over groups of threads, and has none.
    if (follow->level < 1) continue;
    FollowFusedSplitStep outer = *follow;
    --outer.level;
    std::erase_if(outer.src_steps, [&](int number) {
      const SplitStep* split = As<SplitStep>(*steps[number]);
      return split == nullptr || !split->inner_to_outer;
    });
    KILN_ASSIGN_OR_RETURN(const int64_t vthreads, FollowedLength(outer, steps));
    if (vthreads > most_vthreads) {
      return FailedPrecondition("{} virtual threads, the device has {}", vthreads, most_vthreads);
    }
  }
  return OkStatus();
}

std::optional<int64_t> ThreadsOfTiles(std::span<const StepPtr> steps) {
  std::optional<int64_t> fewest;
  for (const StepPtr& step : steps) {
    const auto* follow = As<FollowFusedSplitStep>(*step);
    if (follow == nullptr) continue;
    if (follow->level < 1) continue;  // level 0 has the blocks of a cluster
    const auto threads = FollowedLength(*follow, steps);
    if (threads.ok()) fewest = std::min(*threads, fewest.value_or(*threads));
  }
  return fewest;
}

StatusOr<State> Rebuild(const Task& task, std::span<const StepPtr> steps, Drop& why) {
  const bool gpu = task.target.is_gpu();
  if (gpu) {
    why = Drop::kThreads;
    KILN_RETURN_IF_ERROR(CheckThreadTiles(steps, task.hardware));
  }
  why = Drop::kIllegal;
  KILN_ASSIGN_OR_RETURN(State state, ReplayExact(task.dag, steps));
  return gpu ? MendGpu(std::move(state), task, why) : state;
}

}  // namespace kiln::search
