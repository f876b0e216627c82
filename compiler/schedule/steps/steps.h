// The kinds of steps, as plain data with public fields, so that a search can read and re-make them,
// and the list of all kinds. They are those of TVM's measure records (TVM v0.14,
// src/auto_scheduler/transform_step.cc) and a few of Kiln's own; docs/steps.md describes each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/step.h"

namespace kiln::schedule {

// Defined in steps/reader.h.
class StepReader;

#define KILN_STEP_OVERRIDES                                \
  static StatusOr<StepPtr> Parse(StepReader& reader);      \
  std::string_view tag() const override { return kTag; }   \
  std::string_view name() const override { return kName; } \
  int stage() const override { return stage_id; }          \
  Status ApplyTo(State& state) const override;             \
  std::string ToJson() const override;                     \
  uint64_t Hash() const override

// ["AN", stage, loop, annotation]
struct AnnotateStep final : Step {
  static constexpr std::string_view kTag = "AN", kName = "annotate";
  AnnotateStep(int stage_id, int loop, Annotation annotation)
      : stage_id(stage_id), loop(loop), annotation(annotation) {}
  KILN_STEP_OVERRIDES;
  bool IsExtension() const override { return annotation == Annotation::kCluster; }
  int stage_id, loop;
  Annotation annotation;
};

// ["FU", stage, [loops...]]: the loops are consecutive. If there are none, a rank-0 stage gets one
// loop of extent 1.
struct FuseStep final : Step {
  static constexpr std::string_view kTag = "FU", kName = "fuse";
  FuseStep(int stage_id, std::vector<int> loops) : stage_id(stage_id), loops(std::move(loops)) {}
  KILN_STEP_OVERRIDES;
  int stage_id;
  std::vector<int> loops;
};

// ["PR", stage, loop, "PRAGMA$N" | "debug_skip_region"]: sets the hint of that pragma (ir/hints.h),
// or brings the stage back to root.
struct PragmaStep final : Step {
  static constexpr std::string_view kTag = "PR", kName = "pragma";
  PragmaStep(int stage_id, int loop, std::string pragma);
  KILN_STEP_OVERRIDES;
  uint64_t ShapeHash() const override;
  bool IsExtension() const override;
  int stage_id, loop;
  std::string pragma;
  struct Setting {
    ir::Hint hint;
    int32_t value;
  };
  // The setting in the text. None: the step sets no hint.
  std::optional<Setting> setting;
};

// ["RE", stage, [new order as old numbers]]
struct ReorderStep final : Step {
  static constexpr std::string_view kTag = "RE", kName = "reorder";
  ReorderStep(int stage_id, std::vector<int> order) : stage_id(stage_id), order(std::move(order)) {}
  KILN_STEP_OVERRIDES;
  int stage_id;
  std::vector<int> order;
};

// ["SP", stage, loop, extent, [lengths...], inner_to_outer]; a length of 0 is a blank. The extent
// is only a note: later changes of other steps leave it stale in TVM's records, so replay does not
// rely on it.
struct SplitStep final : Step {
  static constexpr std::string_view kTag = "SP", kName = "split";
  SplitStep(int stage_id, int loop, int64_t extent, std::vector<int64_t> lengths,
            bool inner_to_outer)
      : stage_id(stage_id),
        loop(loop),
        extent(extent),
        lengths(std::move(lengths)),
        inner_to_outer(inner_to_outer) {}
  KILN_STEP_OVERRIDES;
  uint64_t ShapeHash() const override;
  int stage_id, loop;
  int64_t extent;
  std::vector<int64_t> lengths;
  bool inner_to_outer;
};

// ["FSP", stage, loop, src_step, n_split]: follows the factors of an earlier SP.
struct FollowSplitStep final : Step {
  static constexpr std::string_view kTag = "FSP", kName = "follow split";
  FollowSplitStep(int stage_id, int loop, int src_step, int n_split)
      : stage_id(stage_id), loop(loop), src_step(src_step), n_split(n_split) {}
  KILN_STEP_OVERRIDES;
  int stage_id, loop, src_step, n_split;
};

// ["FFSP", stage, loop, [src_steps...], level, factor_or_nparts]
struct FollowFusedSplitStep final : Step {
  static constexpr std::string_view kTag = "FFSP", kName = "follow fused split";
  FollowFusedSplitStep(int stage_id, int loop, std::vector<int> src_steps, int level,
                       bool factor_or_nparts)
      : stage_id(stage_id),
        loop(loop),
        src_steps(std::move(src_steps)),
        level(level),
        factor_or_nparts(factor_or_nparts) {}
  KILN_STEP_OVERRIDES;
  int stage_id, loop;
  std::vector<int> src_steps;
  int level;
  bool factor_or_nparts;
};

// ["SA", stage, loop, factor, offset]
struct StorageAlignStep final : Step {
  static constexpr std::string_view kTag = "SA", kName = "storage align";
  StorageAlignStep(int stage_id, int loop, int factor, int offset)
      : stage_id(stage_id), loop(loop), factor(factor), offset(offset) {}
  KILN_STEP_OVERRIDES;
  uint64_t ShapeHash() const override;
  int stage_id, loop, factor, offset;
};

// ["CA", stage, target_stage, target_loop]
struct ComputeAtStep final : Step {
  static constexpr std::string_view kTag = "CA", kName = "compute at";
  ComputeAtStep(int stage_id, int target_stage, int target_loop)
      : stage_id(stage_id), target_stage(target_stage), target_loop(target_loop) {}
  KILN_STEP_OVERRIDES;
  int stage_id, target_stage, target_loop;
};

// ["CI", stage]
struct ComputeInlineStep final : Step {
  static constexpr std::string_view kTag = "CI", kName = "compute inline";
  explicit ComputeInlineStep(int stage_id) : stage_id(stage_id) {}
  KILN_STEP_OVERRIDES;
  int stage_id;
};

// ["CR", stage]
struct ComputeRootStep final : Step {
  static constexpr std::string_view kTag = "CR", kName = "compute root";
  explicit ComputeRootStep(int stage_id) : stage_id(stage_id) {}
  KILN_STEP_OVERRIDES;
  int stage_id;
};

// ["CHR", stage, "scope", [reader stages]]: the new stage is `stage+1`, named <name>.<scope>.
// Kiln's own form has [dimensions] behind it: the new stage has the dimensions in that order,
// outermost first.
struct CacheReadStep final : Step {
  static constexpr std::string_view kTag = "CHR", kName = "cache read";
  CacheReadStep(int stage_id, std::string scope, std::vector<int> readers,
                std::vector<int> order = {})
      : stage_id(stage_id),
        scope(std::move(scope)),
        readers(std::move(readers)),
        order(std::move(order)) {}
  KILN_STEP_OVERRIDES;
  bool IsExtension() const override { return !order.empty(); }
  int stage_id;
  std::string scope;
  std::vector<int> readers;
  // Empty: the dimensions keep their order.
  std::vector<int> order;
};

// ["CHW", stage, "scope"]: the computation moves to a new stage `stage`, and the old one copies
// from it. Kiln's own form has [stages] behind it: the sums of these later stages move to the new
// stage as well, which is one reduction of several values (joined_sums.h).
struct CacheWriteStep final : Step {
  static constexpr std::string_view kTag = "CHW", kName = "cache write";
  CacheWriteStep(int stage_id, std::string scope, std::vector<int> joined = {})
      : stage_id(stage_id), scope(std::move(scope)), joined(std::move(joined)) {}
  KILN_STEP_OVERRIDES;
  bool IsExtension() const override { return !joined.empty(); }
  int stage_id;
  std::string scope;
  // Ascending. Empty: the stage is written alone.
  std::vector<int> joined;
};

// ["RF", stage, loop, factor_iter]
struct RfactorStep final : Step {
  static constexpr std::string_view kTag = "RF", kName = "rfactor";
  RfactorStep(int stage_id, int loop, int factor_iter)
      : stage_id(stage_id), loop(loop), factor_iter(factor_iter) {}
  KILN_STEP_OVERRIDES;
  int stage_id, loop, factor_iter;
};

// ["BF", stage, depth], or ["BF", stage, depth, 1]: the tiles in shared memory that are computed
// inside the stage's loops are fetched depth - 1 iterations ahead, into as many buffers as that
// takes; through registers (depth 1 or 2), or asynchronously (2 to kMaxDepth). A step of Kiln's
// own.
struct BufferingStep final : Step {
  static constexpr std::string_view kTag = "BF", kName = "buffering";
  static constexpr int kMaxDepth = 8;
  BufferingStep(int stage_id, int depth, bool asynchronous = false)
      : stage_id(stage_id), depth(depth), asynchronous(asynchronous) {}
  KILN_STEP_OVERRIDES;
  uint64_t ShapeHash() const override;
  bool IsExtension() const override { return true; }
  int stage_id, depth;
  bool asynchronous;
};

// ["LA", stage, [axes]]: the dimensions of the stage's buffer, outermost first. A step of Kiln's
// own.
struct LayoutStep final : Step {
  static constexpr std::string_view kTag = "LA", kName = "layout";
  LayoutStep(int stage_id, std::vector<int> order) : stage_id(stage_id), order(std::move(order)) {}
  KILN_STEP_OVERRIDES;
  uint64_t ShapeHash() const override;
  bool IsExtension() const override { return true; }
  int stage_id;
  std::vector<int> order;
};

// ["MA", stage, first, count]: `count` spatial axes of the stage from `first` on become one. The
// axes of all stages that are read or written along them become one as well (dag/merge_axes.h),
// including inputs and outputs. All these stages get fresh loops. A step of Kiln's own.
struct MergeAxesStep final : Step {
  static constexpr std::string_view kTag = "MA", kName = "merge axes";
  MergeAxesStep(int stage_id, int first, int count)
      : stage_id(stage_id), first(first), count(count) {}
  KILN_STEP_OVERRIDES;
  bool IsExtension() const override { return true; }
  int stage_id, first, count;
};

// ["MV", stage, before]: the stage gets the number `before`, and those from there to it move up. So
// an input stands in front of a stage that is to read it. A step of Kiln's own.
struct MoveStageStep final : Step {
  static constexpr std::string_view kTag = "MV", kName = "move stage";
  MoveStageStep(int stage_id, int before) : stage_id(stage_id), before(before) {}
  KILN_STEP_OVERRIDES;
  bool IsExtension() const override { return true; }
  int stage_id, before;
};

// ["OS", stage, rows, keys, warps, depth, matrix_unit, parts, splits, is_cluster]: one kernel
// computes the softmax chain that ends in the stage (dag/softmax_chain.h), and a second one joins
// the splits unless they are a cluster. 0 is a blank. Without the last numbers, parts and splits
// are 1 and is_cluster is 0. A step of Kiln's own.
struct OnlineSoftmaxStep final : Step {
  static constexpr std::string_view kTag = "OS", kName = "online softmax";
  static constexpr int kMaxRows = 64, kMaxKeys = 256, kMaxWarps = 16, kMaxDepth = 8, kMaxParts = 8,
                       kMaxSplits = 128, kMaxCluster = 8;
  OnlineSoftmaxStep(int stage_id, OnlineTile tile) : stage_id(stage_id), tile(tile) {}
  KILN_STEP_OVERRIDES;
  uint64_t ShapeHash() const override;
  bool IsExtension() const override { return true; }
  int stage_id;
  OnlineTile tile;
};

#undef KILN_STEP_OVERRIDES

// The table of step kinds. A new kind adds its row.
template <typename... StepTs>
struct StepList {};
using StepKinds = StepList<AnnotateStep,          //
                           FuseStep,              //
                           PragmaStep,            //
                           ReorderStep,           //
                           SplitStep,             //
                           FollowSplitStep,       //
                           FollowFusedSplitStep,  //
                           StorageAlignStep,      //
                           ComputeAtStep,         //
                           ComputeInlineStep,     //
                           ComputeRootStep,       //
                           CacheReadStep,         //
                           CacheWriteStep,        //
                           RfactorStep,           //
                           BufferingStep,         //
                           LayoutStep,            //
                           MergeAxesStep,         //
                           MoveStageStep,         //
                           OnlineSoftmaxStep>;

// Makes a PR step for loop 0.
StepPtr HintStep(int stage, ir::Hint hint, int32_t value);
// Returns the value to which a step sets the hint. None: the step does not set it.
std::optional<int32_t> HintOf(const Step& step, ir::Hint hint);

// Return the lengths that FSP and FFSP take from the steps before them.
StatusOr<std::vector<int64_t>> FollowedLengths(const FollowSplitStep& step,
                                               std::span<const StepPtr> steps);
StatusOr<int64_t> FollowedLength(const FollowFusedSplitStep& step, std::span<const StepPtr> steps);

}  // namespace kiln::schedule
