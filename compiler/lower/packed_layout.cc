#include "compiler/lower/packed_layout.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/body.h"

namespace kiln::lower {
namespace {

using arith::Interval;
using arith::Linear;
using schedule::Attach;
using schedule::State;

// Padding at most doubles an input.
constexpr int64_t kMaxGrowth = 2;

// One dimension of a packed buffer.
struct Part {
  ir::Expr index;
  PackedDim dim;
  // Depth of the loop in its nest.
  int depth = 0;
  // Number of iterations of that loop until the index changes.
  int64_t period = 1;
};

// Returns c for x // c. A remainder has the period of its first operand.
int64_t PeriodOf(ir::Expr e) {
  if (e->op != ir::Op::kFloorDiv && e->op != ir::Op::kFloorMod) return 1;
  const int64_t inner = PeriodOf(e->arg(0));
  if (e->op == ir::Op::kFloorMod || !e->arg(1)->is_const_int()) return inner;
  return MultiplyCounts(inner, e->arg(1)->int_value);
}

class LayoutFinder {
 public:
  LayoutFinder(const State& state, Bounds& bounds, bool gpu)
      : state_(state), bounds_(bounds), gpu_(gpu) {}

  // Returns the packing of a placeholder that one stage reads. None: the placeholder stays as it
  // is.
  std::optional<PackedInput> Find(int stage) {
    const std::vector<int>& readers = state_.dag()->consumers(stage);
    if (readers.size() != 1 || !bounds_.stages[readers[0]].computed) return std::nullopt;
    const int reader = readers[0];
    // Threads that read the input itself already read neighbouring elements.
    if (gpu_ && !state_.stage(reader).asks_for_shared()) return std::nullopt;
    const std::optional<std::vector<Linear>> read = TheRead(stage, reader);
    if (!read) return std::nullopt;
    // A stage that is no copy has other axes than the input.
    if (gpu_ && *read != bounds_.stages[reader].axis_values) return std::nullopt;
    std::vector<Part> parts;
    for (size_t axis = 0; axis < read->size(); ++axis) {
      if (!AddParts(reader, (*read)[axis], static_cast<int32_t>(axis), parts)) return std::nullopt;
    }
    std::ranges::stable_sort(parts, [](const Part& a, const Part& b) {
      return std::pair(a.depth, -a.period) < std::pair(b.depth, -b.period);
    });
    PackedInput found{.stage = stage, .packing = {.shape = state_.dag()->op(stage).shape()}};
    for (const Part& part : parts) {
      found.packing.dims.push_back(part.dim);
      found.indices.push_back(part.index);
    }
    if (!IsWorthIt(found.packing)) return std::nullopt;
    return found;
  }

 private:
  // Returns the indices of the only read. None: there are several.
  std::optional<std::vector<Linear>> TheRead(int stage, int reader) {
    std::vector<std::vector<Linear>> reads;
    const auto note = [&](int producer, int, const std::vector<Linear>& at, ir::Type type) {
      if (producer == stage && std::ranges::find(reads, at) == reads.end()) reads.push_back(at);
      return type.is_float() ? bounds_.pool->Float(0, type) : bounds_.pool->Int(0, type);
    };
    for (int k = 0; k < state_.stage(reader).op->num_outputs(); ++k) {
      LowerBody(state_, reader, k, bounds_.stages[reader].axis_values, bounds_.simplifier, note);
    }
    if (reads.size() != 1) return std::nullopt;
    return std::move(reads[0]);
  }

  // Returns false if the index is no sum of parts of loops.
  bool AddParts(int reader, const Linear& index, int32_t axis, std::vector<Part>& parts) const {
    if (index.overflow || index.constant != 0) return false;
    for (const arith::Term& term : index.terms) {
      const Interval range = bounds_.simplifier.RangeOf(term.atom);
      const int depth = DepthOf(reader, term.atom);
      if (term.coefficient < 1 || range.lo != 0 || !range.bounded() || depth < 0) return false;
      int64_t extent = range.hi + 1;
      // A tile ends with its last thread. Later threads fetch nothing.
      if (gpu_ && depth >= FirstDepth(reader)) {
        const int64_t tile = bounds_.stages[reader].region_extent[static_cast<size_t>(axis)];
        extent = std::min(extent, CeilDiv(tile, term.coefficient));
      }
      parts.push_back({.index = term.atom,
                       .dim = {.axis = axis, .extent = extent, .step = term.coefficient},
                       .depth = depth,
                       .period = PeriodOf(term.atom)});
    }
    return true;
  }

  // Returns the depth of the innermost loop that the part depends on, counted from the outermost
  // loop around the reader. -1: the part depends on no loop, or on something else.
  int DepthOf(int reader, ir::Expr part) const {
    int depth = -1;
    bool is_loops = !ir::HasLoad(part);
    ir::Visit(part, [&](ir::Expr e) {
      if (e->op != ir::Op::kVar) return;
      const int of_var = DepthOfVar(reader, e->id);
      is_loops = is_loops && of_var >= 0;
      depth = std::max(depth, of_var);
    });
    return is_loops ? depth : -1;
  }

  // A stage's own loops come first, because threads bind loops of several stages to one variable.
  int DepthOfVar(int reader, int32_t var) const {
    int stage = reader;
    size_t loops = bounds_.stages[stage].loop_vars.size();
    while (true) {
      const std::vector<int32_t>& vars = bounds_.stages[stage].loop_vars;
      for (size_t loop = loops; loop-- > 0;)
        if (vars[loop] == var) return FirstDepth(stage) + static_cast<int>(loop);
      const Attach& at = state_.attach(stage);
      if (at.kind != Attach::kIter) return -1;
      stage = at.stage;
      loops = static_cast<size_t>(at.loop) + 1;
    }
  }

  // Returns the depth of a stage's outermost loop, below the loops that it is attached in.
  int FirstDepth(int stage) const {
    int depth = 0;
    for (Attach at = state_.attach(stage); at.kind == Attach::kIter; at = state_.attach(at.stage))
      depth += at.loop + 1;
    return depth;
  }

  static bool IsWorthIt(const Packing& packing) {
    if (!CheckPacking(packing).ok()) return false;
    int64_t elements = 1;
    for (const int64_t extent : packing.shape) elements *= extent;
    return PackedElements(packing) <= MultiplyCounts(kMaxGrowth, elements);
  }

  const State& state_;
  Bounds& bounds_;
  const bool gpu_;
};

}  // namespace

std::vector<PackedInput> PackedLayouts(const State& state, Bounds& bounds, bool gpu) {
  std::vector<PackedInput> found;
  // The packed inputs are those of the initial DAG, because steps may have put copies between an
  // input and its reader.
  const dag::Dag& initial = *state.initial_dag();
  const std::vector<int> packed = dag::PackedInputs(initial);
  if (packed.empty() || state.steps().empty()) return found;
  LayoutFinder finder(state, bounds, gpu);
  for (size_t a = 0; a < initial.arguments().size(); ++a) {
    if (std::ranges::find(packed, initial.arguments()[a].op) == packed.end()) continue;
    auto input = finder.Find(state.dag()->arguments()[a].op);
    if (input) found.push_back(*std::move(input));
  }
  return found;
}

}  // namespace kiln::lower
