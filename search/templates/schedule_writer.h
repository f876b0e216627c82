// Writes a schedule step by step, by handles instead of numbers: a handle means the same stage or
// loop while others are inserted and split around it. What templates are written with, in C++ and
// behind their text.
//
// The first mistake sticks: later calls do nothing and give handles of nothing, and Finish reports
// it. One thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/templates/entity.h"

namespace kiln::search {

struct StageRef {
  int handle = -1;
};

struct LoopRef {
  StageRef stage;
  int32_t iter = -1;   // of Stage::iters
  int generation = 0;  // of the stage's loops: a step may replace them all
};

class ScheduleWriter {
 public:
  explicit ScheduleWriter(dag::DagPtr dag) : state_(std::move(dag)) {}

  // ---- stages of the computation
  StageRef Reduction();                         // the only one
  StageRef Output();                            // the only one
  StageRef Input(StageRef reader, int number);  // what it reads, in order of first use
  StageRef Op(std::string_view name);           // the first of this name
  bool IsComputed(StageRef stage);              // no placeholder

  // ---- loops. Axes are there until a step takes them apart.
  std::vector<LoopRef> Axes(StageRef stage);
  std::vector<LoopRef> ReduceAxes(StageRef stage);
  int64_t Extent(LoopRef loop);  // refused where it is not known yet: of an attached stage
  // Into as many and one more; inner_to_outer: the outermost is what remains, else the innermost.
  std::vector<LoopRef> Split(LoopRef loop, std::vector<int64_t> lengths,
                             bool inner_to_outer = true);
  std::vector<LoopRef> Split(LoopRef loop, const SplitEntity& entity);
  LoopRef Fuse(std::span<const LoopRef> loops);
  // These loops take their places in this order; all others stay where they are.
  void Reorder(std::span<const LoopRef> loops);
  void Reorder(std::span<const LoopRef> loops, const ReorderEntity& entity);
  void Annotate(LoopRef loop, schedule::Annotation annotation);
  // "fuse" fuses a loop with the next one of the list.
  void Annotate(std::span<const LoopRef> loops, const AnnotateEntity& entity);
  // The threads of a block compute the stage together: all its loops are fused, the innermost
  // `lanes` of them are a vector, and threadIdx.x, or .y and .x, or .z, .y and .x take turns.
  void FetchByThreads(StageRef stage, int64_t lanes, std::span<const int64_t> threads);

  // ---- places
  void ComputeAt(StageRef stage, LoopRef loop);
  void ComputeRoot(StageRef stage);
  void Inline(StageRef stage);
  // All that have no handle, but for placeholders and outputs.
  void InlineOthers();

  // ---- new stages
  StageRef CacheRead(StageRef stage, std::string_view scope, std::span<const StageRef> readers);
  // The stage that computes; `stage` copies from it from now on.
  StageRef CacheWrite(StageRef stage, std::string_view scope);
  // The stage that computes the sums of a reduction, and the one that stores results: where the
  // reduction is the output, a cache write; else the reduction and the output, which has to have
  // the same axes.
  std::pair<StageRef, StageRef> Accumulator(StageRef reduction);
  // The stage of partial results; `loop` is its axis number `position`.
  StageRef Rfactor(LoopRef loop, int position);

  // ---- how code is made
  void SetHint(StageRef stage, ir::Hint hint, int32_t value);
  void StorageAlign(LoopRef axis, int factor, int offset);
  void Layout(std::span<const LoopRef> axes);  // all spatial axes of a stage
  void Buffering(StageRef stage, int depth, bool asynchronous);

  // This configuration does not work, or this computation is not one for the template.
  void Refuse(Status status);

  const Status& status() const { return status_; }
  const schedule::State& state() const { return state_; }
  StatusOr<schedule::State> Finish() &&;

 private:
  struct Handle {
    int stage = 0;
    int generation = 0;
  };

  StageRef HandleOf(int stage);
  LoopRef LoopAt(StageRef stage, int32_t iter) const;
  std::vector<LoopRef> AxesIn(StageRef stage, bool reduce);
  bool Apply(schedule::StepPtr step);
  // -1, with an error, where there is none.
  int StageOf(StageRef stage);
  int PositionOf(LoopRef loop);
  // Whether all are loops of one stage; its number.
  int CommonStage(std::span<const LoopRef> loops);
  // Handles of stages from `position` on move up by one.
  void MoveHandles(int position);

  schedule::State state_;
  std::vector<Handle> handles_;
  Status status_;
};

}  // namespace kiln::search
