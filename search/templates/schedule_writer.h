// Writes a schedule step by step, with handles instead of numbers: a handle keeps its stage or loop
// while others are inserted and split around it. Templates are written with this class, both in C++
// and as text.
//
// The first error stays: later calls do nothing and return empty handles, and Finish reports the
// error. One thread.
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
  int32_t iter = -1;   // index into Stage::iters
  int generation = 0;  // generation of the stage's loops: a step may replace them all
};

class ScheduleWriter {
 public:
  explicit ScheduleWriter(dag::DagPtr dag) : state_(std::move(dag)) {}

  // ---- stages of the computation
  StageRef Reduction();  // the only reduction
  StageRef Output();     // the only output
  // A stage that `reader` reads, in order of first use.
  StageRef Input(StageRef reader, int number);
  StageRef Op(std::string_view name);  // the first operator of this name
  bool IsComputed(StageRef stage);     // false for a placeholder

  // ---- loops. Axes exist until a step takes them apart.
  std::vector<LoopRef> Axes(StageRef stage);
  std::vector<LoopRef> ReduceAxes(StageRef stage);
  int64_t Extent(LoopRef loop);  // refused if unknown, as in an attached stage
  // Splits into one loop more than there are lengths. The loop without a length is the outermost if
  // inner_to_outer, else the innermost.
  std::vector<LoopRef> Split(LoopRef loop, std::vector<int64_t> lengths,
                             bool inner_to_outer = true);
  std::vector<LoopRef> Split(LoopRef loop, const SplitEntity& entity);
  LoopRef Fuse(std::span<const LoopRef> loops);
  // Puts these loops into this order, at the places that they have. All other loops stay in place.
  void Reorder(std::span<const LoopRef> loops);
  void Reorder(std::span<const LoopRef> loops, const ReorderEntity& entity);
  void Annotate(LoopRef loop, schedule::Annotation annotation);
  // "fuse" fuses a loop with the next one of the list.
  void Annotate(std::span<const LoopRef> loops, const AnnotateEntity& entity);
  // Lets the threads of a block compute the stage together: fuses all its loops, makes the
  // innermost `lanes` elements a vector, and shares the rest out over threadIdx.x, over .y and .x,
  // or over .z, .y and .x.
  void FetchByThreads(StageRef stage, int64_t lanes, std::span<const int64_t> threads);

  // ---- places
  void ComputeAt(StageRef stage, LoopRef loop);
  void ComputeRoot(StageRef stage);
  void Inline(StageRef stage);
  // Inlines all stages without a handle, except placeholders and outputs.
  void InlineOthers();

  // ---- new stages
  StageRef CacheRead(StageRef stage, std::string_view scope, std::span<const StageRef> readers);
  // Returns the stage that computes. `stage` copies from it from now on.
  StageRef CacheWrite(StageRef stage, std::string_view scope);
  // Returns the stage that computes the sums of a reduction, and the stage that stores the results.
  // If the reduction is the output, makes a cache write; else they are the reduction and the
  // output, which must have the same axes.
  std::pair<StageRef, StageRef> Accumulator(StageRef reduction);
  // Returns the stage of partial results. `loop` is its axis number `position`.
  StageRef Rfactor(LoopRef loop, int position);

  // ---- code generation
  void SetHint(StageRef stage, ir::Hint hint, int32_t value);
  void StorageAlign(LoopRef axis, int factor, int offset);
  void Layout(std::span<const LoopRef> axes);  // needs all spatial axes of a stage
  void Buffering(StageRef stage, int depth, bool asynchronous);

  // Notes that this configuration does not work, or that the template is not for this computation.
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
  // Returns -1, with an error, if there is no such stage.
  int StageOf(StageRef stage);
  int PositionOf(LoopRef loop);
  // Returns the number of the stage that all the loops belong to, or -1, with an error.
  int CommonStage(std::span<const LoopRef> loops);
  // Moves handles of stages from `position` on up by one.
  void MoveHandles(int position);

  schedule::State state_;
  std::vector<Handle> handles_;
  Status status_;
};

}  // namespace kiln::search
