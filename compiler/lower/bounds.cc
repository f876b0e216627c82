#include "compiler/lower/bounds.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>

#include "base/numbers/integers.h"
#include "compiler/dag/limits.h"
#include "compiler/ir/integer_ops.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/body.h"
#include "compiler/lower/indexed_regions.h"
#include "compiler/lower/iteration.h"
#include "compiler/lower/launch.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::Stage;
using schedule::State;

// The interval of one dimension that is touched.
struct Range {
  arith::Linear min;
  int64_t extent;
};

// An extent that no tensor has: any element may be touched.
constexpr int64_t kUnbounded = int64_t{1} << 50;

void AddGuard(ir::Expr guard, std::vector<ir::Expr>& guards) {
  if (std::find(guards.begin(), guards.end(), guard) == guards.end()) guards.push_back(guard);
}

// Returns value < limit without the terms that make no difference: for j below 8, 8*i + j < 16 is
// 8*i < 16. The guard then stands outside the loop j, and a vector of that loop has one guard.
ir::Expr Below(const arith::Linear& value, int64_t limit, arith::Simplifier& simplifier) {
  ir::ExprPool& pool = simplifier.pool();
  std::vector<arith::Term> terms(value.terms.begin(), value.terms.end());
  std::ranges::stable_sort(terms, {},
                           [](const arith::Term& t) { return -std::abs(t.coefficient); });
  int64_t unit = 0;
  arith::Linear rest = value;
  for (const arith::Term& term : terms) {
    unit = std::gcd(unit, std::abs(term.coefficient));
    rest = rest - arith::Linear{0, {term}};
    if (rest.is_constant()) break;
    const arith::Interval range = simplifier.RangeOf(rest);
    const int64_t most = ir::FloorDiv(limit - 1 - range.lo, unit);
    if (most != ir::FloorDiv(limit - 1 - range.hi, unit)) continue;
    return pool.Lt(simplifier.ToExpr(value - rest), pool.Int((most + 1) * unit));
  }
  return pool.Lt(simplifier.ToExpr(value), pool.Int(limit));
}

bool IsInBlock(Annotation a) { return IsThread(a) || a == Annotation::kVThread; }

class BoundInference {
 public:
  // `only_extents` leaves out values that are only needed for guards and bodies.
  BoundInference(const State& state, bool gpu, bool only_extents, const std::stop_token& stop,
                 Bounds& out)
      : state_(state), gpu_(gpu), only_extents_(only_extents), stop_(stop), out_(out) {}

  Status Run() {
    const int n = state_.num_stages();
    out_.stages.resize(n);
    reads_.resize(n);
    first_vars_.resize(n);
    KILN_RETURN_IF_ERROR(CheckNests());
    FindWanted();
    for (int s = n - 1; s >= 0; --s) {
      if (state_.stage(s).is_placeholder() || state_.attach(s).kind == Attach::kInlined) continue;
      KILN_RETURN_IF_ERROR(InferStage(s));
      if (stop_.stop_requested()) return Cancelled("stopped");
    }
    if (!gpu_ || only_extents_) return OkStatus();
    for (int s = 0; s < n; ++s) {
      if (out_.stages[s].computed) DropGuards(s);
    }
    return OkStatus();
  }

 private:
  // One read of a stage, by a computed stage.
  struct Read {
    int reader;
    std::vector<arith::Linear> indices;
  };

  std::string NameOf(int s) const {
    return fmt::format("stage {} ({})", s, state_.stage(s).op->name());
  }

  // Limits the loops and buffers inside of each other, because later passes recurse into them.
  Status CheckNests() const {
    std::vector<int> around(state_.num_stages(), 0), buffers(state_.num_stages(), 0);
    for (int s = 0; s < state_.num_stages(); ++s) {
      const Attach& at = state_.attach(s);
      if (at.kind == Attach::kIter) buffers[at.stage] += state_.stage(s).op->num_outputs();
    }
    for (int s = state_.num_stages() - 1; s >= 0; --s) {
      const Attach& at = state_.attach(s);
      if (at.kind == Attach::kIter) around[s] = around[at.stage] + at.loop + 1 + buffers[at.stage];
      const int depth = around[s] + static_cast<int>(state_.stage(s).loops.size()) + buffers[s];
      if (depth <= dag::kMaxNestLoops) continue;
      return FailedPrecondition(
          "{}: {} loops and buffers stand in each other around it, expected at most {}", NameOf(s),
          depth, dag::kMaxNestLoops);
    }
    return OkStatus();
  }

  // Products of extents must not overflow: those of each iterator, and those of the pieces of a
  // split.
  Status CheckIterations(int s, const std::vector<int64_t>& extents) const {
    const Stage& stage = state_.stage(s);
    for (const schedule::Relation& relation : stage.relations) {
      int64_t product = 1;
      const bool split = relation.kind == schedule::Relation::kSplit;
      for (int32_t iter : split ? std::span<const int32_t>(relation.children)
                                : std::span<const int32_t>(relation.parents)) {
        product = MultiplyCounts(product, extents[iter]);
        if (product <= dag::kMaxIterations) continue;
        return FailedPrecondition("{}: its loops have more than 2^60 iterations", NameOf(s));
      }
    }
    return OkStatus();
  }

  Status InferStage(int s) {
    StageBounds& bounds = out_.stages[s];
    bounds.computed = true;
    KILN_RETURN_IF_ERROR(InferRegion(s, bounds));

    const Stage& stage = state_.stage(s);
    for (const auto& relation : stage.relations) {
      for (int64_t length : relation.lengths) {
        if (length <= 0) {
          return FailedPrecondition(
              "{}: a split has a blank length; fill all tile sizes before lowering", NameOf(s));
        }
      }
    }
    std::vector<int64_t> axis_extents;
    axis_extents.reserve(static_cast<size_t>(stage.num_axes()));
    axis_extents.assign(bounds.region_extent.begin(), bounds.region_extent.end());
    for (const dag::Axis& axis : stage.op->reduce_axes()) axis_extents.push_back(axis.extent);
    bounds.iter_extents = IterExtents(stage, axis_extents);
    KILN_RETURN_IF_ERROR(CheckIterations(s, bounds.iter_extents));

    KILN_RETURN_IF_ERROR(MakeLoopVars(s, bounds));
    const bool reads_wanted = ReadsWanted(s);
    if (only_extents_ && !reads_wanted) return OkStatus();
    InferValues(s, bounds);
    if (!only_extents_) {
      bounds.guards =
          Guards(stage, bounds, bounds.iter_values, /*reductions=*/true, out_.simplifier);
    }
    if (reads_wanted) CollectReads(s, bounds);
    return OkStatus();
  }

  void InferValues(int s, StageBounds& bounds) {
    const Stage& stage = state_.stage(s);
    std::vector<arith::Linear> loop_values;
    loop_values.reserve(stage.loops.size());
    for (int32_t var : bounds.loop_vars) {
      loop_values.push_back(var < 0 ? arith::Linear{} : out_.simplifier.Var(var));
    }
    bounds.iter_values = IterValues(stage, bounds.iter_extents, loop_values, out_.simplifier,
                                    state_.NumAttached(s) > 0);
    bounds.axis_values.reserve(static_cast<size_t>(stage.num_axes()));
    for (int i = 0; i < stage.num_axes(); ++i) {
      bounds.axis_values.push_back(i < static_cast<int>(bounds.region_min.size())
                                       ? bounds.region_min[i] + bounds.iter_values[i]
                                       : bounds.iter_values[i]);
      if (i >= static_cast<int>(bounds.chosen.size()) || bounds.chosen[i].index == nullptr)
        continue;
      bounds.axis_values[i] = ChosenAt(bounds.chosen[i], bounds.axis_values[i], out_.simplifier);
    }
  }

  // Regions follow from the reads of attached stages. Reads through inlined stages count as reads
  // of the inlined stages' readers.
  void FindWanted() {
    wanted_.resize(static_cast<size_t>(state_.num_stages()));
    for (int s = 0; s < state_.num_stages(); ++s) {
      const Attach::Kind kind = state_.attach(s).kind;
      wanted_[s] = kind == Attach::kIter || (kind == Attach::kInlined && ReadsWanted(s));
    }
  }

  bool ReadsWanted(int s) const {
    return std::ranges::any_of(state_.dag()->node(s).inputs,
                               [&](const dag::Tensor& input) { return wanted_[input.op]; });
  }

  Status MakeLoopVars(int s, StageBounds& bounds) {
    const Stage& stage = state_.stage(s);
    first_vars_[s] = out_.owners.size();
    bounds.loop_vars.reserve(stage.loops.size());
    for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
      const int64_t extent = bounds.iter_extents[stage.loops[i].iter];
      const Annotation annotation = stage.annotation(i);
      if (!gpu_ || !schedule::IsBound(annotation) || annotation == Annotation::kVThread) {
        bounds.loop_vars.push_back(extent == 1 ? -1 : NewVar(s, i, extent));
        continue;
      }
      // Inside a loop with the same binding, the loop has the variable of that loop.
      const LoopOwner outer = EnclosingLoop(s, annotation);
      if (outer.stage < 0) {
        bounds.loop_vars.push_back(extent == 1 ? -1 : NewVar(s, i, extent));
        continue;
      }
      const StageBounds& around = out_.stages[outer.stage];
      const int64_t outer_extent =
          around.iter_extents[state_.stage(outer.stage).loops[outer.loop].iter];
      if (outer_extent != extent) {
        return FailedPrecondition(
            "{}: loop {} is bound to {} with extent {}, the loop around it with extent {}",
            NameOf(s), i, schedule::AnnotationName(annotation), extent, outer_extent);
      }
      bounds.loop_vars.push_back(around.loop_vars[outer.loop]);
    }
    return OkStatus();
  }

  // Returns the loop with this annotation around stage s. Its stage is -1 if there is none.
  LoopOwner EnclosingLoop(int s, Annotation annotation) const {
    for (Attach at = state_.attach(s); at.kind == Attach::kIter; at = state_.attach(at.stage)) {
      for (int l = 0; l <= at.loop; ++l) {
        if (state_.stage(at.stage).annotation(l) == annotation) return {at.stage, l};
      }
    }
    return {-1, -1};
  }

  int32_t NewVar(int s, int loop, int64_t extent) {
    out_.owners.push_back({s, loop});
    return out_.simplifier.AddVar(extent);
  }

  void CollectReads(int s, const StageBounds& bounds) {
    const auto record = [&](int producer, int output, const std::vector<arith::Linear>& indices,
                            ir::Type type) {
      if (state_.attach(producer).kind == Attach::kIter) reads_[producer].push_back({s, indices});
      (void)output;
      return type.is_float() ? out_.pool->Float(0, type) : UnknownInteger(producer, indices, type);
    };
    for (int output = 0; output < state_.stage(s).op->num_outputs(); ++output) {
      VisitReads(state_, s, output, bounds.axis_values, out_.simplifier, wanted_, record);
    }
  }

  // Stands for a loaded integer in index arithmetic, about which nothing is known.
  ir::Expr UnknownInteger(int producer, const std::vector<arith::Linear>& indices, ir::Type type) {
    std::vector<ir::Expr> exprs;
    exprs.reserve(indices.size());
    for (const arith::Linear& index : indices) exprs.push_back(out_.simplifier.ToExpr(index));
    return out_.pool->Load(producer, exprs, type);
  }

  // ---- guards that are not needed (GPU)

  // Must be called for producers first.
  void DropGuards(int s) {
    StageBounds& bounds = out_.stages[s];
    const Stage& stage = state_.stage(s);
    if (bounds.guards.empty() || state_.attach(s).kind != Attach::kIter) return;
    if (state_.stage(s).asks_for_shared()) {
      bounds.fill_guards = AxisGuards(stage, bounds, bounds.iter_values, out_.simplifier);
      // The tile is filled with zeros outside.
      bounds.computes_outside = true;
    } else if (ReadsInsideOfTiles(s)) {
      bounds.computes_outside = true;
      bounds.adds_zeros_outside = stage.op->is_reduction() && AddsZerosOutside(s);
    } else {
      return;
    }
    bounds.guards = Guards(stage, bounds, bounds.iter_values, /*reductions=*/true, out_.simplifier);
  }

  // The value that the stage computes for an output with all loads replaced by 0, and the reads for
  // it.
  struct Body {
    ir::Expr value;
    // Pairs of producer and indices.
    std::vector<std::pair<int, std::vector<arith::Linear>>> reads;
  };
  Body BodyOf(int s, int output) {
    Body body{nullptr, {}};
    const auto read = [&](int producer, int, const std::vector<arith::Linear>& indices,
                          ir::Type type) {
      body.reads.emplace_back(producer, indices);
      if (IsIntegerInput(producer)) return UnknownInteger(producer, indices, type);
      return type.is_float() ? out_.pool->Float(0, type) : out_.pool->Int(0, type);
    };
    body.value = LowerBody(state_, s, output, out_.stages[s].axis_values, out_.simplifier, read);
    return body;
  }

  // Is it an input whose elements may be indices? They choose tiles (UsesOf), and are read in
  // global memory.
  bool IsIntegerInput(int s) const {
    const Stage& stage = state_.stage(s);
    return stage.is_placeholder() && stage.op->type().is_int() && stage.op->type().bytes() >= 4;
  }

  bool IsInsideTensor(int s, const std::vector<arith::Linear>& indices) const {
    const std::vector<int64_t> shape = state_.stage(s).op->shape();
    for (size_t d = 0; d < indices.size(); ++d) {
      const arith::Interval range = out_.simplifier.RangeOf(indices[d]);
      if (range.lo < 0 || range.hi >= shape[d]) return false;
    }
    return true;
  }

  // Returns true if every access of the stage, guarded or not, stays inside of the tiles that the
  // stage is computed from, and all places of those tiles hold a value.
  bool ReadsInsideOfTiles(int s) {
    for (int output = 0; output < state_.stage(s).op->num_outputs(); ++output) {
      const Body body = BodyOf(s, output);
      for (const auto& [producer, indices] : body.reads) {
        if (IsIntegerInput(producer) &&
            (IsInsideTensor(producer, indices) || OnlyChooses(body, producer, indices)))
          continue;
        if (state_.attach(producer).kind != Attach::kIter) return false;
        const StageBounds& tile = out_.stages[producer];
        if (!tile.computes_outside &&
            !AxisGuards(state_.stage(producer), tile, tile.iter_values, out_.simplifier).empty())
          return false;
        for (size_t d = 0; d < indices.size(); ++d) {
          const arith::Interval range =
              out_.simplifier.RangeOf(PlaceInTile(tile, d, indices[d], out_.simplifier));
          if (range.lo < 0 || range.hi >= tile.region_extent[d]) return false;
        }
      }
    }
    return true;
  }

  // Returns true if the element of an integer input says no more than which place of a tile is
  // read: the tile is fetched by it, and its reader does not read it again.
  bool OnlyChooses(const Body& body, int input, const std::vector<arith::Linear>& at) const {
    if (ir::HasLoad(body.value)) return false;
    const auto is_it = [&](ir::Expr load) {
      if (load->id != input) return false;
      for (size_t d = 0; d < at.size(); ++d) {
        if (out_.simplifier.ToLinear(load->arg(d)) != at[d]) return false;
      }
      return true;
    };
    return std::ranges::any_of(body.reads, [&](const auto& read) {
      const std::vector<ChosenPlaces>& chosen = out_.stages[read.first].chosen;
      for (size_t d = 0; d < chosen.size(); ++d) {
        if (chosen[d].index != nullptr && is_it(ChoosingLoad(read.second[d]))) return true;
      }
      return false;
    });
  }

  // Returns true if an iteration past the end of a reduction adds 0: then all its reads are zeros
  // of tiles.
  bool AddsZerosOutside(int s) {
    const Stage& stage = state_.stage(s);
    const StageBounds& bounds = out_.stages[s];
    if (stage.op->combiner() != dag::Combiner::kSum) return false;
    for (int output = 0; output < stage.op->num_outputs(); ++output) {
      if (!AddsZerosOutside(stage, bounds, BodyOf(s, output))) return false;
    }
    return true;
  }

  bool AddsZerosOutside(const Stage& stage, const StageBounds& bounds, const Body& body) const {
    if (!IsZero(body.value)) return false;
    const int spatial = static_cast<int>(stage.op->axes().size());
    for (const SplitGuard& guard : SplitGuards(stage, bounds.iter_extents)) {
      if (guard.iter < spatial || stage.iters[guard.iter].kind == schedule::IterKind::kSpatial)
        continue;
      if (guard.iter >= stage.num_axes()) return false;
      for (const auto& [producer, indices] : body.reads) {
        // It is in an index alone: as a part of the value it would be no zero.
        if (IsIntegerInput(producer)) continue;
        if (!IsZeroBehind(producer, indices, bounds.axis_values[guard.iter], guard.extent))
          return false;
      }
    }
    return true;
  }

  // Returns true if all elements that are read with this index from `extent` on are zeros of a
  // tile.
  bool IsZeroBehind(int producer, const std::vector<arith::Linear>& indices,
                    const arith::Linear& index, int64_t extent) const {
    if (!state_.stage(producer).asks_for_shared() || out_.stages[producer].fill_guards.empty())
      return false;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d] == index && state_.stage(producer).op->axes()[d].extent == extent) return true;
    }
    return false;
  }

  // Returns true if e is 0 whatever its conditions are. Sums and products are 0 if both operands
  // are.
  static bool IsZero(ir::Expr e) {
    switch (e->op) {
      case ir::Op::kInt:
        return e->int_value == 0;
      case ir::Op::kFloat:
        return e->float_value == 0;
      case ir::Op::kAdd:
      case ir::Op::kSub:
      case ir::Op::kMul:
        return IsZero(e->arg(0)) && IsZero(e->arg(1));
      case ir::Op::kCast:
        return IsZero(e->arg(0));
      case ir::Op::kIf:
      case ir::Op::kSelect:
        return IsZero(e->arg(1)) && IsZero(e->arg(2));
      default:
        return false;
    }
  }

  // ---- regions

  Status InferRegion(int s, StageBounds& bounds) {
    const Attach& attach = state_.attach(s);
    const std::vector<int64_t> shape = state_.stage(s).op->shape();
    bounds.region_min.assign(shape.size(), {});
    bounds.region_extent = shape;
    if (attach.kind == Attach::kRoot) return OkStatus();
    if (state_.dag()->is_output(s)) {
      return FailedPrecondition("{} is an output and cannot be attached to {}", NameOf(s),
                                NameOf(attach.stage));
    }
    if (!out_.stages[attach.stage].computed) {
      return FailedPrecondition(
          "{} is attached to {}, which is not computed in a loop nest of its own", NameOf(s),
          NameOf(attach.stage));
    }
    for (const Read& read : reads_[s]) {
      if (!IsInside(read.reader, s)) {
        return FailedPrecondition(
            "{} is computed inside loop {} of {} but {} reads it outside that loop", NameOf(s),
            attach.loop, NameOf(attach.stage), NameOf(read.reader));
      }
    }
    FindFixedVars(s);
    FindChosen(s, bounds);
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool is_chosen = !bounds.chosen.empty() && bounds.chosen[d].index != nullptr;
      const Range range =
          is_chosen ? TouchedPlaces(s, d, bounds.chosen[d]) : Touched(s, d, shape[d]);
      bounds.region_min[d] = range.min;
      bounds.region_extent[d] = range.extent;
    }
    return OkStatus();
  }

  // Returns true if `reader` is executed inside the loop that s is attached to, after s.
  bool IsInside(int reader, int s) const {
    const Attach& at = state_.attach(s);
    int stage = reader;
    int loop = static_cast<int>(state_.stage(reader).loops.size());
    while (true) {
      if (stage == at.stage) return loop >= at.loop;
      const Attach& up = state_.attach(stage);
      if (up.kind != Attach::kIter) return false;
      stage = up.stage;
      loop = up.loop;
    }
  }

  // Marks the variables that are fixed at the place to which s is attached.
  void FindFixedVars(int s) {
    fixed_.assign(out_.owners.size(), false);
    const bool shared = gpu_ && state_.stage(s).asks_for_shared();
    chooses_ = shared;
    for (Attach at = state_.attach(s); at.kind == Attach::kIter; at = state_.attach(at.stage)) {
      for (size_t v = first_vars_[at.stage];
           v < out_.owners.size() && out_.owners[v].stage == at.stage; ++v) {
        if (out_.owners[v].loop > at.loop) continue;
        // Shared memory serves all threads of the block.
        const bool thread = IsInBlock(state_.stage(at.stage).annotation(out_.owners[v].loop));
        if (!(shared && thread)) fixed_[v] = true;
      }
    }
  }

  // Matrix units read whole tiles, so elements beyond the tensor are there, as zeros.
  bool IsWholeTile(int s) const {
    return gpu_ && state_.stage(s).asks_for_shared() &&
           state_.stage(state_.attach(s).stage).hints[ir::Hint::kMatrixUnit] != 0;
  }

  // The sums of matrix units have a row for each thread, also if the axis has a single one: the
  // rows behind it are sums of zeros.
  bool HasRowsOfThreads(int s, int64_t extent) const {
    return gpu_ && extent == 1 && state_.stage(s).hints[ir::Hint::kMatrixUnit] != 0 &&
           state_.attach(s).kind == Attach::kIter;
  }

  Range Touched(int s, size_t d, int64_t extent) {
    const Range whole{{}, extent};
    const bool is_cut = !IsWholeTile(s) && !HasRowsOfThreads(s, extent);
    const int64_t most = is_cut ? extent : kUnbounded;
    bool first = true;
    Range hull{{}, 0};
    for (const Read& read : reads_[s]) {
      Range range = Relax(read.indices[d]);
      if (range.extent >= most) return whole;
      if (first) {
        hull = std::move(range);
        first = false;
        continue;
      }
      const arith::Linear distance = range.min - hull.min;
      if (!distance.is_constant()) return whole;
      const int64_t end = std::max(hull.extent, distance.constant + range.extent);
      if (distance.constant < 0) {
        hull.extent = end - distance.constant;
        hull.min = range.min;
      } else {
        hull.extent = end;
      }
      if (hull.extent >= most) return whole;
    }
    // No stage that is executed reads it.
    if (first) return whole;
    if (is_cut && hull.min.is_constant()) {
      const int64_t lo = std::max<int64_t>(hull.min.constant, 0);
      const int64_t hi = std::min(hull.min.constant + hull.extent, extent);
      if (lo >= hi) return {{}, 1};
      return {arith::Constant(lo), hi - lo};
    }
    return hull;
  }

  // Finds the dimensions of a tile in shared memory whose elements an integer input chooses one by
  // one, as the only read of the tile says.
  void FindChosen(int s, StageBounds& bounds) const {
    if (!chooses_ || reads_[s].size() != 1) return;
    const std::vector<arith::Linear>& indices = reads_[s][0].indices;
    for (size_t d = 0; d < indices.size(); ++d) {
      const ChosenPlaces places = ChosenPlacesOf(indices[d]);
      if (places.index == nullptr) continue;
      bounds.chosen.resize(indices.size());
      bounds.chosen[d] = places;
    }
  }

  // Returns no places where the element is fixed, or found by another element, or the input has
  // several dimensions in which the place varies.
  ChosenPlaces ChosenPlacesOf(const arith::Linear& index) const {
    if (!IsChosenIndex(index)) return {};
    const ir::Expr load = ChoosingLoad(index);
    if (!IsIntegerInput(load->id)) return {};
    std::optional<size_t> varying;
    for (size_t d = 0; d < load->num_args; ++d) {
      const int uses = UsesOf(load->arg(d));
      if ((uses & kLoaded) != 0 || ir::HasLoad(load->arg(d))) return {};
      if ((uses & kVarying) == 0) continue;
      if (varying) return {};
      varying = d;
    }
    if (!varying) return {};
    return {.index = index.terms[0].atom,
            .argument = *varying,
            .extent = state_.stage(load->id).op->shape()[*varying]};
  }

  // Returns the places whose elements choose what is read.
  Range TouchedPlaces(int s, size_t d, const ChosenPlaces& chosen) {
    const ir::Expr load = ChoosingLoad(reads_[s][0].indices[d]);
    return Relax(out_.simplifier.ToLinear(load->arg(chosen.argument)));
  }

  // Kinds of parts of an index. A loaded element is not known, but for one of an input that is
  // fixed at the place of a tile in shared memory: the tile is what it chooses.
  enum Use { kFixed = 1, kVarying = 2, kLoaded = 4 };
  int UsesOf(ir::Expr e) const {
    if (e->op == ir::Op::kLoad) {
      if (!chooses_ || !state_.stage(e->id).is_placeholder()) return kLoaded;
      int uses = kFixed;
      for (ir::Expr index : e->args()) uses |= UsesOf(index);
      return uses == kFixed ? kFixed : kLoaded;
    }
    if (e->op == ir::Op::kVar) return fixed_[e->id] ? kFixed : kVarying;
    int uses = 0;
    for (ir::Expr a : e->args()) uses |= UsesOf(a);
    return uses;
  }

  // Returns the interval of e while the varying variables run.
  Range Relax(const arith::Linear& e) {
    Range range{arith::Constant(e.constant), 1};
    for (const arith::Term& term : e.terms) {
      const Range atom = RelaxAtom(term.atom);
      if (atom.extent >= kUnbounded) return {{}, kUnbounded};
      const int64_t k = term.coefficient, spread = atom.extent - 1;
      range.min = arith::MultiplyAdd(range.min, atom.min, k);
      if (k < 0) range.min.constant += k * spread;
      range.extent += std::abs(k) * spread;
      if (range.extent >= kUnbounded) return {{}, kUnbounded};
    }
    return range;
  }

  Range RelaxAtom(ir::Expr atom) {
    const int uses = UsesOf(atom);
    if (uses == kFixed) return {arith::Linear{0, {arith::Term{atom, 1}}}, 1};
    if (uses == (kFixed | kVarying) && atom->op == ir::Op::kFloorDiv &&
        atom->arg(1)->is_const_int()) {
      const int64_t c = atom->arg(1)->int_value;
      const Range inner = Relax(out_.simplifier.ToLinear(atom->arg(0)));
      if (inner.extent >= kUnbounded) return inner;
      const arith::Linear phase = out_.simplifier.FloorMod(inner.min, c);
      const int64_t most = out_.simplifier.RangeOf(phase).hi;
      return {out_.simplifier.FloorDiv(inner.min, c), (most + inner.extent - 1) / c + 1};
    }
    if (uses == (kFixed | kVarying) && atom->op == ir::Op::kFloorMod &&
        atom->arg(1)->is_const_int()) {
      const int64_t c = atom->arg(1)->int_value;
      const Range inner = Relax(out_.simplifier.ToLinear(atom->arg(0)));
      const arith::Linear phase = out_.simplifier.FloorMod(inner.min, c);
      if (out_.simplifier.RangeOf(phase).hi + inner.extent - 1 < c) return {phase, inner.extent};
    }
    const arith::Interval r = out_.simplifier.RangeOf(atom);
    return {arith::Constant(r.lo), r.hi - r.lo + 1};
  }

  const State& state_;
  const bool gpu_, only_extents_;
  const std::stop_token& stop_;
  Bounds& out_;
  // Indexed by stage. The variables of a stage have consecutive numbers.
  std::vector<size_t> first_vars_;
  // Indexed by attached stage.
  std::vector<std::vector<Read>> reads_;
  std::vector<bool> fixed_;
  bool chooses_ = false;  // fixed elements of inputs are known where the stage is attached
  // Indexed by stage: true if it is attached, or inlined with a read of such a stage.
  std::vector<bool> wanted_;
};

}  // namespace

std::vector<ir::Expr> Guards(const Stage& stage, const StageBounds& bounds,
                             const std::vector<arith::Linear>& iter_values, bool reductions,
                             arith::Simplifier& simplifier) {
  std::vector<ir::Expr> guards;
  for (const SplitGuard& g : SplitGuards(stage, bounds.iter_extents)) {
    const bool spatial = stage.iters[g.iter].kind == schedule::IterKind::kSpatial;
    if (!spatial && (!reductions || bounds.adds_zeros_outside)) continue;
    if (simplifier.RangeOf(iter_values[g.iter]).hi < g.extent) continue;
    AddGuard(Below(iter_values[g.iter], g.extent, simplifier), guards);
  }
  if (bounds.computes_outside) return guards;
  for (ir::Expr guard : AxisGuards(stage, bounds, iter_values, simplifier)) AddGuard(guard, guards);
  return guards;
}

std::vector<ir::Expr> AxisGuards(const Stage& stage, const StageBounds& bounds,
                                 const std::vector<arith::Linear>& iter_values,
                                 arith::Simplifier& simplifier) {
  std::vector<ir::Expr> guards;
  ir::ExprPool& pool = simplifier.pool();
  const std::vector<dag::Axis>& axes = stage.op->axes();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (bounds.region_extent[i] == 1 && IsChosenIndex(bounds.region_min[i])) continue;
    const bool is_chosen = !bounds.chosen.empty() && bounds.chosen[i].index != nullptr;
    const int64_t extent = is_chosen ? bounds.chosen[i].extent : axes[i].extent;
    const arith::Linear value = bounds.region_min[i] + iter_values[i];
    const arith::Interval range = simplifier.RangeOf(value);
    // The guards above may already keep the value inside. For a root stage they always do.
    if (bounds.region_min[i].is_constant() &&
        bounds.region_min[i].constant + bounds.region_extent[i] <= extent) {
      continue;
    }
    if (range.hi >= extent) AddGuard(Below(value, extent, simplifier), guards);
    if (range.lo < 0) AddGuard(pool.Ge(simplifier.ToExpr(value), pool.Int(0)), guards);
  }
  return guards;
}

StatusOr<std::unique_ptr<Bounds>> InferBounds(const State& state, bool gpu,
                                              const std::stop_token& stop) {
  auto bounds = std::make_unique<Bounds>(std::make_shared<ir::ExprPool>());
  KILN_RETURN_IF_ERROR(BoundInference(state, gpu, /*only_extents=*/false, stop, *bounds).Run());
  return bounds;
}

StatusOr<std::unique_ptr<Bounds>> InferExtents(const State& state, bool gpu,
                                               const std::stop_token& stop) {
  auto bounds = std::make_unique<Bounds>(std::make_shared<ir::ExprPool>());
  KILN_RETURN_IF_ERROR(BoundInference(state, gpu, /*only_extents=*/true, stop, *bounds).Run());
  return bounds;
}

}  // namespace kiln::lower
