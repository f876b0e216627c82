// A state: a compute DAG with a list of steps applied to it. It has stages, their iterators, and
// where each stage is attached, as State of TVM v0.14 (include/tvm/auto_scheduler/loop_state.h).
//
// States are values. Copying one copies vectors of pointers: stages, operators and steps are shared
// and immutable (copy on write when a step changes a stage). Threads: as any value.
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

// Numbers are those of the records ("AN" steps).
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
  kCluster = 12,  // of our own: the blocks of a thread block cluster
};
// Does the loop stand for blocks, threads or virtual threads of a GPU?
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
  bool inner_to_outer =
      true;  // kSplit: lengths are those of the inner children, else of the outer ones
  absl::InlinedVector<int32_t, 4>
      parents;  // kSplit: 1; kFuse: any number, outermost first (0 for a rank-0 stage)
  absl::InlinedVector<int32_t, 6> children;  // kSplit: lengths+1, outermost first; kFuse: 1
  absl::InlinedVector<int64_t, 5> lengths;   // kSplit; 0 = blank (sketch)
};

// Any iterator that a stage has or had. The first ones are the operator's axes, spatial then
// reduce.
struct IterVar {
  IterKind kind = IterKind::kSpatial;
  int64_t extent =
      kUnknownExtent;  // unknown: depends on a blank, or on the region an attached stage must cover
  int32_t relation = -1;  // the Relation it is a child of; -1: an axis
};

struct LoopIter {
  int32_t iter = -1;  // index into Stage::iters
  Annotation annotation = Annotation::kNone;
};

// The memory that a cache stage asks for.
enum class MemoryScope : uint8_t {
  // Where it is computed decides: on a GPU outside of the loops of threads it is in the shared
  // memory of their block, inside of them in each thread's own. "local" and all other words.
  kByPlace,
  kShared,  // "shared": in that of the block wherever it is computed
};

// How one kernel computes a softmax between two products (steps OS), 0: a blank. A block has the
// rows of its warps, and visits all keys, a tile of them after the other. The same rows may be those
// of several warps, each of which has a part of the keys of every tile.
struct OnlineTile {
  int32_t rows = 0;   // of a warp
  int32_t keys = 0;   // of a tile
  int32_t warps = 0;  // of a block, with rows of their own
  int32_t depth = 0;  // tiles of keys in shared memory: those ahead are copied asynchronously
  // Units that compute the products, where their types have some.
  ir::MatrixUnitScope matrix_unit = ir::MatrixUnitScope::kNone;
  int32_t parts = 1;  // of the keys of a tile: so many warps for each of `warps`
  bool has_blank() const {
    return rows == 0 || keys == 0 || warps == 0 || depth == 0 || parts == 0;
  }
  bool operator==(const OnlineTile&) const = default;
};

struct Stage {
  dag::OperatorPtr op;
  // Set by the step that made the stage; kept when a later step gives the stage fresh loops.
  MemoryScope scope = MemoryScope::kByPlace;  // CHR, CHW
  bool is_partial_reduction = false;          // RF: its axes are as long as splits made them

  std::vector<IterVar> iters;
  std::vector<Relation> relations;  // in the order they were made
  std::vector<LoopIter> loops;      // the loop nest, outermost first
  ir::Hints hints;
  // storage_align: the buffer's stride outside axis `align_axis` is a multiple of align_factor plus
  // align_offset.
  int32_t align_axis = -1, align_factor = 0, align_offset = 0;
  // The axes in the order of the buffer's dimensions, outermost first; empty: as they are numbered.
  std::vector<int32_t> layout;

  // Tiles in shared memory attached to this stage's loops are fetched buffering - 1 iterations
  // ahead, through registers or by copies that need none.
  int32_t buffering = 1;
  bool asynchronous = false;

  // Of the output of a softmax chain (dag/softmax_chain.h): its kernel computes all of it.
  std::optional<OnlineTile> online = {};

  bool is_placeholder() const { return op->is_placeholder(); }
  bool asks_for_shared() const { return scope == MemoryScope::kShared; }
  int num_axes() const { return static_cast<int>(op->axes().size() + op->reduce_axes().size()); }
  const IterVar& loop(int i) const { return iters[loops[i].iter]; }
  Annotation annotation(int i) const { return loops[i].annotation; }
};
using StagePtr = std::shared_ptr<const Stage>;

// TVM's names: "i.0" is a part of the split axis i, "i.0@j.0@" a fused loop. Made on demand: hot
// paths do not use names.
std::string IterName(const Stage& stage, int32_t iter);
std::string LoopName(const Stage& stage, int loop);
// The tile level: the last ".N" of a split child; -1 for axes and fused iterators.
int LoopLevel(const Stage& stage, int loop);
// The axes an iterator is made of, ascending.
std::vector<int> AxesOf(const Stage& stage, int32_t iter);

struct Attach {
  enum Kind : uint8_t { kRoot = 0, kInlined = 1, kIter = 2 };
  Kind kind = kRoot;
  int32_t stage = -1;  // kIter: computed inside loop `loop` of stage `stage`
  int32_t loop = -1;
  bool operator==(const Attach&) const = default;
};

class Step;
using StepPtr = std::shared_ptr<const Step>;

class State {
 public:
  explicit State(dag::DagPtr dag);  // every compute operator at root, loops = its axes

  const dag::DagPtr& initial_dag() const { return initial_dag_; }
  const dag::DagPtr& dag() const { return dag_; }  // stage i computes operator i of this
  int num_stages() const { return static_cast<int>(stages_.size()); }
  const Stage& stage(int i) const { return *stages_[i]; }
  const StagePtr& stage_ptr(int i) const { return stages_[i]; }
  const Attach& attach(int i) const { return places_[i].attach; }
  const std::vector<StepPtr>& steps() const { return steps_; }
  bool concrete() const;  // no blank length anywhere

  // Stages attached to (stage, loop), ascending.
  std::vector<int> AttachedTo(int stage, int loop) const;
  bool HasAttached(int stage, int loop) const;
  // How many stages are attached to any loop of this one.
  int NumAttached(int stage) const { return places_[stage].attached; }
  // The tile by which the output, the last stage, is computed with all others; null: by loops.
  const OnlineTile* online() const;
  // The most loops that stand around a statement: a stage's own, and those it is attached to.
  int NestDepth() const;

  // Applies the step and appends it. Refused: the state is unchanged; the message names the step,
  // the reason and what would have been legal ("split #3 (SP) of stage 4 (conv): loop 9 does not
  // exist, the stage has loops 0 to 6").
  Status Apply(StepPtr step);

  // Readers and producers through inlined stages: in place of an inlined stage stand its own
  // readers or producers.
  std::vector<int> Consumers(int stage) const;
  std::vector<int> Producers(int stage) const;

  // For steps only (schedule/steps): the parts that a step edits.
  Stage& MutableStage(int i);  // clones it first when other states share it
  void SetAttach(int i, Attach attach);
  // For every stage that is attached to `stage`, ascending: its loop becomes loop_of(loop).
  template <typename LoopOf>
  void MoveAttached(int stage, const LoopOf& loop_of);
  // Replaces the DAG by one where an operator was inserted as `position`; stages and attachments at
  // and after it move up, the new stage is at root. The stages listed in `changed` (numbers in the
  // new DAG) are reset to fresh loops of their operator; they stay attached where they are, in the
  // memory that they were made for.
  void InsertStage(dag::DagPtr dag, int position, std::span<const int> changed);
  // Replaces the DAG by one with other operators in some of its places, whose stages get fresh loops.
  void ReplaceOperators(dag::DagPtr dag);
  // For bound inference: sets the extent of every iterator (indices of Stage::iters) of one stage.
  void SetExtents(int stage, std::span<const int64_t> iter_extents);

 private:
  dag::DagPtr initial_dag_, dag_;
  // Where a stage is computed, and how many are attached to it: most have none, which saves the
  // search for them.
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
  for (int i = stage - 1; left > 0 && i >= 0; --i) {  // what is attached stands before it
    Attach& attach = places_[i].attach;
    if (attach.kind != Attach::kIter || attach.stage != stage) continue;
    attach.loop = loop_of(attach.loop);
    --left;
  }
}

// A fresh stage of an operator: loops are its axes.
Stage MakeStage(dag::OperatorPtr op);

// Applies all steps to the initial state of dag. The error names the step by number. Cancelled when
// `stop` is requested.
StatusOr<State> Replay(dag::DagPtr dag, std::span<const StepPtr> steps,
                       const std::stop_token& stop = {});

// The loop nest as text for people, in the form that TVM prints.
std::string PrintLoops(const State& state, bool omit_unit_loops = true);
// Identity of a state for duplicate detection: a hash over the steps' effect-bearing fields. Equal
// step lists: equal hash.
uint64_t HashSteps(std::span<const StepPtr> steps);

}  // namespace kiln::schedule
