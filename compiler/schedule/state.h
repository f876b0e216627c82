// A state: a compute DAG with a list of steps applied to it. It has stages, their iterators, and
// the place to which each stage is attached, like State of TVM v0.14
// (include/tvm/auto_scheduler/loop_state.h).
//
// States are values. Copying a state copies vectors of pointers: stages, operators and steps are
// shared and immutable (copy on write when a step changes a stage). Threads: as for any value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/hints.h"
#include "compiler/ir/matrix_unit_scope.h"

namespace kiln::schedule {

enum class IterKind : uint8_t { kSpatial = 0, kReduce = 1, kMixed = 2, kSpecial = 3 };

// The numbers are those of the records ("AN" steps).
enum class Annotation : uint8_t {
  kNone = 0,
  kUnroll = 1,
  kVectorize = 2,
  kParallel = 3,
  kVThread = 4,
  kBlockX = 5,
  kThreadX = 6,
  kBlockY = 7,
  kThreadY = 8,
  kBlockZ = 9,
  kThreadZ = 10,
  kTensorize = 11,
  // Kiln's own annotation: the blocks of a thread block cluster.
  kCluster = 12,
};
// Returns true if the loop stands for blocks, threads or virtual threads of a GPU.
inline bool IsBound(Annotation a) {
  return (a >= Annotation::kVThread && a <= Annotation::kThreadZ) || a == Annotation::kCluster;
}
std::string_view AnnotationName(
    Annotation annotation);  // "for", "unroll", "vectorize", ..., "threadIdx.x"

inline constexpr int64_t kUnknownExtent = -1;

// How iterators of one stage were made from others. Numbers are indices into Stage::iters.
struct Relation {
  enum Kind : uint8_t { kSplit, kFuse };
  Kind kind;
  // kSplit: the lengths are those of the inner children if true, else of the outer ones.
  bool inner_to_outer = true;
  // kSplit: one. kFuse: any number, outermost first (0 for a rank-0 stage).
  absl::InlinedVector<int32_t, 4> parents;
  // kSplit: one more than lengths, outermost first. kFuse: one.
  absl::InlinedVector<int32_t, 6> children;
  // kSplit: a length of 0 is a blank of a sketch.
  absl::InlinedVector<int64_t, 5> lengths;
};

// An iterator that a stage has or had. The first ones are the operator's axes, spatial then reduce.
struct IterVar {
  IterKind kind = IterKind::kSpatial;
  // Unknown if the extent depends on a blank, or on the region that an attached stage must cover.
  int64_t extent = kUnknownExtent;
  // The Relation whose child the iterator is. -1: the iterator is an axis.
  int32_t relation = -1;
};

struct LoopIter {
  // Index into Stage::iters.
  int32_t iter = -1;
  Annotation annotation = Annotation::kNone;
};

// The memory that a cache stage asks for.
enum class MemoryScope : uint8_t {
  // The place of the stage decides. On a GPU a stage outside of the loops of threads is in the
  // shared memory of the block, and a stage inside of them is in each thread's own memory. "local"
  // and all other words.
  kByPlace,
  // "shared": in the block's shared memory at any place.
  kShared,
};

// The way in which one kernel computes a softmax between two products (steps OS). 0 is a blank. A
// block has the rows of its warps, and visits all keys, one tile of keys after the other. Several
// warps may share the same rows. Each of them then has a part of the keys of every tile.
struct OnlineTile {
  // Rows of a warp.
  int32_t rows = 0;
  // Keys of a tile.
  int32_t keys = 0;
  // Warps of a block that have different rows.
  int32_t warps = 0;
  // Number of tiles of keys in shared memory. Tiles ahead of the current one are copied
  // asynchronously.
  int32_t depth = 0;
  // Matrix units that compute the products, if the types have such units.
  ir::MatrixUnitScope matrix_unit = ir::MatrixUnitScope::kNone;
  // Parts of the keys of a tile: the number of warps that share the rows of each of `warps`.
  int32_t parts = 1;
  // Number of blocks that share the same rows. Each visits as many tiles of keys as the others; the
  // last one may have fewer.
  int32_t splits = 1;
  // True if these blocks form a cluster and join their results in it. Otherwise a second kernel
  // joins them.
  bool is_cluster = false;
  bool has_blank() const {
    return rows == 0 || keys == 0 || warps == 0 || depth == 0 || parts == 0 || splits == 0;
  }
  bool operator==(const OnlineTile&) const = default;
};

struct Stage {
  dag::OperatorPtr op;
  // The step that made the stage sets these fields. They are kept when a later step gives the stage
  // fresh loops.
  // Set by CHR and CHW.
  MemoryScope scope = MemoryScope::kByPlace;
  // Set by RF, which makes axes of the lengths of splits.
  bool is_partial_reduction = false;

  std::vector<IterVar> iters;
  // In the order in which they were made.
  std::vector<Relation> relations;
  // The loop nest, outermost first.
  std::vector<LoopIter> loops;
  ir::Hints hints;
  // storage_align: the buffer's stride outside axis `align_axis` is a multiple of align_factor plus
  // align_offset.
  int32_t align_axis = -1, align_factor = 0, align_offset = 0;
  // The axes in the order of the buffer's dimensions, outermost first. Empty: the order of their
  // numbers.
  std::vector<int32_t> layout;

  // Tiles in shared memory that are attached to this stage's loops are fetched buffering - 1
  // iterations ahead. They go through registers, or by asynchronous copies that need no registers.
  int32_t buffering = 1;
  bool asynchronous = false;

  // Set for the output of a softmax chain (dag/softmax_chain.h), whose kernel computes the whole
  // chain.
  std::optional<OnlineTile> online = {};

  bool is_placeholder() const { return op->is_placeholder(); }
  bool asks_for_shared() const { return scope == MemoryScope::kShared; }
  int num_axes() const { return static_cast<int>(op->axes().size() + op->reduce_axes().size()); }
  const IterVar& loop(int i) const { return iters[loops[i].iter]; }
  Annotation annotation(int i) const { return loops[i].annotation; }
};
using StagePtr = std::shared_ptr<const Stage>;

// Names as in TVM: "i.0" is a part of the split axis i, "i.0@j.0@" a fused loop. They are made on
// demand, and hot paths do not use them.
std::string IterName(const Stage& stage, int32_t iter);
std::string LoopName(const Stage& stage, int loop);
// Returns the tile level: the last ".N" of a split child. -1 for axes and fused iterators.
int LoopLevel(const Stage& stage, int loop);
// Returns the axes that an iterator is made of, ascending.
std::vector<int> AxesOf(const Stage& stage, int32_t iter);

struct Attach {
  enum Kind : uint8_t { kRoot = 0, kInlined = 1, kIter = 2 };
  Kind kind = kRoot;
  // kIter: the stage is computed inside loop `loop` of stage `stage`.
  int32_t stage = -1;
  int32_t loop = -1;
  bool operator==(const Attach&) const = default;
};

class Step;
using StepPtr = std::shared_ptr<const Step>;

class State {
 public:
  // All compute operators are at root, and their loops are their axes.
  explicit State(dag::DagPtr dag);

  const dag::DagPtr& initial_dag() const { return initial_dag_; }
  // Stage i computes operator i of this DAG.
  const dag::DagPtr& dag() const { return dag_; }
  int num_stages() const { return static_cast<int>(stages_.size()); }
  const Stage& stage(int i) const { return *stages_[i]; }
  const StagePtr& stage_ptr(int i) const { return stages_[i]; }
  const Attach& attach(int i) const { return places_[i].attach; }
  const std::vector<StepPtr>& steps() const { return steps_; }
  // True if no length is a blank.
  bool concrete() const;

  // Returns the stages attached to (stage, loop), ascending.
  std::vector<int> AttachedTo(int stage, int loop) const;
  bool HasAttached(int stage, int loop) const;
  // Returns the number of stages that are attached to any loop of this one.
  int NumAttached(int stage) const { return places_[stage].attached; }
  // Returns the tile of the last stage, the output, if one kernel computes all stages by it. Null:
  // loops do.
  const OnlineTile* online() const;
  // Returns the greatest number of loops around a statement: the loops of its stage, and the loops
  // that the stage is attached to.
  int NestDepth() const;

  // Applies the step and appends it. If the step is refused, the state is unchanged. The message
  // names the step, the reason and what would have been legal ("split #3 (SP) of stage 4 (conv):
  // loop 9 does not exist, the stage has loops 0 to 6").
  Status Apply(StepPtr step);

  // Readers and producers through inlined stages: an inlined stage is replaced by its own readers
  // or producers.
  std::vector<int> Consumers(int stage) const;
  std::vector<int> Producers(int stage) const;

  // The parts that a step edits. For steps only (schedule/steps).
  // Clones the stage first if other states share it.
  Stage& MutableStage(int i);
  void SetAttach(int i, Attach attach);
  // Changes the loop of every stage that is attached to `stage`, ascending, to loop_of(loop).
  template <typename LoopOf>
  void MoveAttached(int stage, const LoopOf& loop_of);
  // Replaces the DAG by one in which an operator was inserted at `position`. Stages and attachments
  // at and after it move up, and the new stage is at root. The stages listed in `changed` (numbers
  // in the new DAG) are reset to fresh loops of their operator. They stay attached at their places,
  // in the memory that they were made for.
  void InsertStage(dag::DagPtr dag, int position, std::span<const int> changed);
  // Replaces the DAG by one with other operators at some places. Their stages get fresh loops.
  void ReplaceOperators(dag::DagPtr dag);
  // For bound inference: sets the extent of every iterator (indices of Stage::iters) of one stage.
  void SetExtents(int stage, std::span<const int64_t> iter_extents);

 private:
  dag::DagPtr initial_dag_, dag_;
  // The place of a stage, and the number of stages attached to it. Most stages have none, so the
  // number saves a search for them.
  struct Place {
    Attach attach;
    int32_t attached = 0;
  };
  std::vector<StagePtr> stages_;
  std::vector<Place> places_;
  std::vector<StepPtr> steps_;
};

template <typename LoopOf>
void State::MoveAttached(int stage, const LoopOf& loop_of) {
  int left = places_[stage].attached;
  // Attached stages stand before the stage.
  for (int i = stage - 1; left > 0 && i >= 0; --i) {
    Attach& attach = places_[i].attach;
    if (attach.kind != Attach::kIter || attach.stage != stage) continue;
    attach.loop = loop_of(attach.loop);
    --left;
  }
}

// Makes a fresh stage of an operator. Its loops are the operator's axes.
Stage MakeStage(dag::OperatorPtr op);

// Applies all steps to the initial state of the DAG. The error names the step by number. Cancelled
// if `stop` is requested.
StatusOr<State> Replay(dag::DagPtr dag, std::span<const StepPtr> steps,
                       const std::stop_token& stop = {});

// Prints the loop nest for people, in TVM's form.
std::string PrintLoops(const State& state, bool omit_unit_loops = true);
// Returns a hash over the steps' fields that have an effect, for the detection of duplicate states.
// Equal step lists have equal hashes.
uint64_t HashSteps(std::span<const StepPtr> steps);

}  // namespace kiln::schedule
