#include "compiler/dag/sample_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/numbers/rng.h"
#include "compiler/dag/input_facts.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

// With more operators than this, parts of the computation would be repeated too often.
constexpr size_t kMaxSampledOperators = 256;
// Nodes of expressions.
constexpr size_t kMaxNodes = 200'000;
// Limit of the elements of an intermediate operator. A larger one is inlined into its reader.
constexpr int64_t kMaxIntermediateElements = int64_t{1} << 24;
constexpr int64_t kMinElements = 16;
constexpr double kMuchCheaper = 0.25;
// Grids of ends have so many times fewer elements.
constexpr int64_t kEndsShare = 4;

// ---- where

// Makes a grid of at most `most` elements, spread over dimensions in proportion to their extents.
// Dimension `ends` has only its two ends.
OutputGrid Spread(const std::vector<int64_t>& shape, int64_t most, int ends, Rng& rng) {
  OutputGrid grid;
  const size_t rank = shape.size();
  grid.count.assign(rank, 1);
  if (ends >= 0) grid.count[ends] = std::min<int64_t>(2, shape[ends]);
  while (true) {
    int next = -1;
    for (size_t d = 0; d < rank; ++d) {
      if (static_cast<int>(d) == ends || grid.count[d] >= shape[d]) continue;
      const bool rarer = next < 0 || shape[d] / grid.count[d] > shape[next] / grid.count[next];
      if (rarer) next = static_cast<int>(d);
    }
    if (next < 0) break;
    const int64_t more = std::min(shape[next], 2 * grid.count[next]);
    if (grid.elements() / grid.count[next] * more > most) break;
    grid.count[next] = more;
  }
  for (size_t d = 0; d < rank; ++d) {
    int64_t stride = std::max<int64_t>(1, shape[d] / grid.count[d]);
    if (stride > 2 && stride % 2 == 0) --stride;
    if (static_cast<int>(d) == ends) stride = std::max<int64_t>(1, shape[d] - 1);
    const int64_t free = shape[d] - stride * (grid.count[d] - 1);
    grid.stride.push_back(stride);
    grid.offset.push_back(UniformInt(rng, free));
  }
  return grid;
}

OutputGrid Corners(const std::vector<int64_t>& shape) {
  OutputGrid grid;
  for (const int64_t extent : shape) {
    grid.offset.push_back(0);
    grid.stride.push_back(std::max<int64_t>(1, extent - 1));
    grid.count.push_back(std::min<int64_t>(2, extent));
  }
  return grid;
}

std::vector<OutputGrid> GridsOf(const std::vector<int64_t>& shape, int64_t elements, Rng& rng) {
  std::vector<OutputGrid> grids = {Corners(shape), Spread(shape, elements, -1, rng),
                                   Spread(shape, elements, -1, rng)};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    grids.push_back(
        Spread(shape, std::max<int64_t>(1, elements / kEndsShare), static_cast<int>(d), rng));
  }
  return grids;
}

// ---- what

// An operator that is being made.
struct Draft {
  // Extents of its variables: axes, then reduce axes.
  std::vector<int64_t> extents;
  // Indexed by load slot.
  std::vector<Tensor> inputs;
};

class Sampler {
 public:
  explicit Sampler(const Dag& whole) : whole_(whole), pool_(std::make_shared<ir::ExprPool>()) {
    for (int i = 0; i < whole.size(); ++i) {
      if (!whole.op(i).is_placeholder()) continue;
      made_[i] = static_cast<int>(nodes_.size());
      nodes_.push_back({whole.node(i).op, {}});
    }
  }

  // Adds the elements of all outputs of an operator.
  Status AddOutput(int op, const OutputGrid& grid) {
    std::vector<ir::Expr> indices;
    for (size_t d = 0; d < grid.count.size(); ++d) {
      const ir::Expr axis = pool_->Var(static_cast<int32_t>(d));
      indices.push_back(
          pool_->Add(pool_->Int(grid.offset[d]), pool_->Mul(pool_->Int(grid.stride[d]), axis)));
    }
    return MakeAnew(op, indices, grid.count).status();
  }

  StatusOr<DagPtr> Build() && { return Dag::Make(std::move(nodes_)); }

 private:
  // Makes an operator with the axes `extents`, whose element at a point is the element of `op` at
  // `indices`, which are expressions of the axes.
  StatusOr<int> Make(int op, const std::vector<ir::Expr>& indices,
                     const std::vector<int64_t>& extents) {
    const auto key = std::tuple(op, indices, extents);
    if (const auto known = restricted_.find(key); known != restricted_.end()) return known->second;
    KILN_ASSIGN_OR_RETURN(const int made, MakeAnew(op, indices, extents));
    restricted_[key] = made;
    return made;
  }

  StatusOr<int> MakeAnew(int op, const std::vector<ir::Expr>& indices,
                         const std::vector<int64_t>& extents) {
    KILN_RETURN_IF_ERROR(CheckSize());
    const Operator& from = whole_.op(op);
    Draft draft;
    draft.extents = extents;
    ir::Substitution vars;
    for (size_t d = 0; d < indices.size(); ++d) {
      vars.SetVar(static_cast<int32_t>(d), indices[d]);
    }
    std::vector<Axis> axes, reduce_axes = from.reduce_axes();
    for (size_t a = 0; a < extents.size(); ++a) axes.push_back({AxisName(from, a), extents[a]});
    for (size_t r = 0; r < reduce_axes.size(); ++r) {
      vars.SetVar(static_cast<int32_t>(indices.size() + r),
                  pool_->Var(static_cast<int32_t>(extents.size() + r)));
      draft.extents.push_back(reduce_axes[r].extent);
    }
    std::vector<ir::Expr> bodies;
    for (const ir::Expr body : from.bodies()) {
      KILN_ASSIGN_OR_RETURN(const ir::Expr rewritten, Rewrite(body, op, vars, draft));
      bodies.push_back(rewritten);
    }
    KILN_ASSIGN_OR_RETURN(
        const OperatorPtr made,
        Operator::Compute(from.name(), std::move(axes), std::move(reduce_axes), from.reduction(),
                          std::move(bodies), pool_, TypesOf(draft), ShapesOf(draft)));
    const int index = static_cast<int>(nodes_.size());
    nodes_.push_back({made, std::move(draft.inputs)});
    return index;
  }

  Status CheckSize() const {
    if (nodes_.size() <= kMaxSampledOperators && pool_->num_nodes() <= kMaxNodes) return OkStatus();
    return InvalidArgument("parts of it would be computed again and again");
  }

  // Returns a name that no reduce axis has.
  static std::string AxisName(const Operator& op, size_t number) {
    std::string name = fmt::format("at{}", number);
    while (std::ranges::any_of(op.reduce_axes(),
                               [&](const Axis& axis) { return axis.name == name; })) {
      name += "_";
    }
    return name;
  }

  std::vector<ir::Type> TypesOf(const Draft& draft) const {
    std::vector<ir::Type> types;
    for (const Tensor t : draft.inputs) types.push_back(nodes_[t.op].op->type(t.output));
    return types;
  }
  std::vector<std::vector<int64_t>> ShapesOf(const Draft& draft) const {
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor t : draft.inputs) shapes.push_back(nodes_[t.op].op->shape());
    return shapes;
  }

  ir::Expr LoadOf(Draft& draft, Tensor tensor, std::span<const ir::Expr> indices) {
    const auto found = std::ranges::find(draft.inputs, tensor);
    const auto slot = static_cast<int32_t>(found - draft.inputs.begin());
    if (found == draft.inputs.end()) draft.inputs.push_back(tensor);
    return pool_->Load(slot, indices, nodes_[tensor.op].op->type(tensor.output));
  }

  using Memo = std::unordered_map<ir::Expr, ir::Expr>;

  // Rewrites an expression of the body of `op` in terms of the draft's variables.
  StatusOr<ir::Expr> Rewrite(ir::Expr e, int op, const ir::Substitution& vars, Draft& draft) {
    Memo memo;
    return Rewrite(e, op, vars, draft, memo);
  }

  StatusOr<ir::Expr> Rewrite(ir::Expr e, int op, const ir::Substitution& vars, Draft& draft,
                             Memo& memo) {
    if (const auto known = memo.find(e); known != memo.end()) return known->second;
    if (e->op == ir::Op::kVar) return vars.VarOrNull(e->id);
    std::vector<ir::Expr> args;
    for (const ir::Expr arg : e->args()) {
      KILN_ASSIGN_OR_RETURN(const ir::Expr rewritten, Rewrite(arg, op, vars, draft, memo));
      args.push_back(rewritten);
    }
    ir::Expr result = nullptr;
    if (e->op == ir::Op::kLoad) {
      KILN_ASSIGN_OR_RETURN(result, Read(whole_.node(op).inputs[e->id], args, draft));
    } else {
      result = pool_->WithArgs(e, args);
    }
    memo[e] = result;
    return result;
  }

  // Returns the element of a tensor of the whole computation.
  StatusOr<ir::Expr> Read(Tensor tensor, const std::vector<ir::Expr>& indices, Draft& draft) {
    const Operator& from = whole_.op(tensor.op);
    if (from.is_placeholder()) return LoadOf(draft, {made_.at(tensor.op), 0}, indices);
    if (std::ranges::any_of(indices, ir::HasLoad) &&
        from.num_elements() <= kMaxIntermediateElements) {
      return ReadFromWhole(tensor, indices, draft);
    }
    if (GoesIntoReader(from, indices, draft)) {
      KILN_RETURN_IF_ERROR(CheckSize());
      ir::Substitution vars;
      for (size_t d = 0; d < indices.size(); ++d) {
        vars.SetVar(static_cast<int32_t>(d), indices[d]);
      }
      return Rewrite(from.body(), tensor.op, vars, draft);
    }
    // The new operator has the variables that occur in the indices as axes, in their order.
    const std::vector<int32_t> used = UsedVars(indices, draft);
    std::vector<int64_t> extents;
    std::vector<ir::Expr> at;
    ir::Substitution renumbered;
    for (const int32_t var : used) {
      renumbered.SetVar(var, pool_->Var(static_cast<int32_t>(extents.size())));
      extents.push_back(draft.extents[var]);
      at.push_back(pool_->Var(var));
    }
    std::vector<ir::Expr> own;
    for (const ir::Expr index : indices) own.push_back(pool_->Substitute(index, renumbered));
    if (std::ranges::any_of(own, ir::HasLoad)) {
      return InvalidArgument("an index of {} is read from a tensor", from.name());
    }
    KILN_ASSIGN_OR_RETURN(const int made, Make(tensor.op, own, extents));
    return LoadOf(draft, {made, tensor.output}, at);
  }

  // The positions at which the tensor is read depend on the values of inputs, so all its elements
  // are made. The values of the inputs are then indices below the same extents as in the whole
  // computation.
  StatusOr<ir::Expr> ReadFromWhole(Tensor tensor, const std::vector<ir::Expr>& indices,
                                   Draft& draft) {
    std::vector<ir::Expr> axes;
    for (size_t d = 0; d < indices.size(); ++d) axes.push_back(pool_->Var(static_cast<int32_t>(d)));
    KILN_ASSIGN_OR_RETURN(const int made, Make(tensor.op, axes, whole_.op(tensor.op).shape()));
    return LoadOf(draft, {made, tensor.output}, indices);
  }

  std::vector<int32_t> UsedVars(const std::vector<ir::Expr>& indices, const Draft& draft) const {
    std::vector<int32_t> used;
    for (int32_t var = 0; var < static_cast<int32_t>(draft.extents.size()); ++var) {
      if (std::ranges::any_of(indices, [&](ir::Expr e) { return ir::UsesVar(e, var); })) {
        used.push_back(var);
      }
    }
    return used;
  }

  // Returns true if the operator can be inlined into its reader. Reductions and operators whose
  // stores round cannot. Expensive operators are inlined only if their elements would fill the
  // memory.
  bool GoesIntoReader(const Operator& from, const std::vector<ir::Expr>& indices,
                      const Draft& draft) const {
    if (from.is_reduction() || from.num_outputs() > 1) return false;
    if (from.type().is_short_float() && from.properties().flops_per_element != 0) return false;
    if (!from.properties().has_expensive) return true;
    double elements = 1;
    for (const int32_t var : UsedVars(indices, draft)) {
      elements *= static_cast<double>(draft.extents[var]);
    }
    return elements > static_cast<double>(kMaxIntermediateElements);
  }

  const Dag& whole_;
  const std::shared_ptr<ir::ExprPool> pool_;
  std::vector<OpNode> nodes_;
  // Maps placeholders of the whole computation to those of the sample.
  std::map<int, int> made_;
  std::map<std::tuple<int, std::vector<ir::Expr>, std::vector<int64_t>>, int> restricted_;
};

StatusOr<SampledDag> Sample(const DagText& whole, int64_t elements, uint64_t seed) {
  const Dag& dag = *whole.dag;
  Rng rng(seed);
  Sampler sampler(dag);
  SampledDag sampled;
  // Number of the output of the whole computation.
  int output = 0;
  for (int op = 0; op < dag.size(); ++op) {
    if (!dag.is_output(op) || dag.op(op).is_placeholder()) continue;
    for (OutputGrid& grid : GridsOf(dag.op(op).shape(), elements, rng)) {
      KILN_RETURN_IF_ERROR(sampler.AddOutput(op, grid));
      for (int k = 0; k < dag.op(op).num_outputs(); ++k) {
        grid.output = output + k;
        sampled.grids.push_back(grid);
      }
    }
    output += dag.op(op).num_outputs();
  }
  KILN_ASSIGN_OR_RETURN(sampled.text.dag, std::move(sampler).Build());
  sampled.text.ranges = whole.ranges;
  const Status same = CheckSameInputs(whole, sampled.text);
  if (!same.ok()) return InvalidArgument("a sample of its outputs: {}", Message(same));
  return sampled;
}

Status CheckOutputs(const SampledDag& sampled) {
  size_t outputs = 0;
  for (const Tensor t : sampled.text.dag->arguments()) {
    outputs += sampled.text.dag->op(t.op).is_placeholder() ? 0 : 1;
  }
  if (outputs == sampled.grids.size()) return OkStatus();
  // One grid has the elements of another one, or is read by it.
  return InvalidArgument("its {} grids are {} outputs", sampled.grids.size(), outputs);
}

}  // namespace

int64_t OutputGrid::elements() const {
  int64_t elements = 1;
  for (const int64_t n : count) elements *= n;
  return elements;
}

int64_t SampledDag::elements() const {
  int64_t elements = 0;
  for (const OutputGrid& grid : grids) elements += grid.elements();
  return elements;
}

StatusOr<SampledDag> SampleOutputs(const DagText& whole, const SampleOptions& options) {
  const Dag& dag = *whole.dag;
  for (int64_t elements = options.grid_elements;; elements /= 2) {
    KILN_ASSIGN_OR_RETURN(SampledDag sampled, Sample(whole, elements, options.seed));
    KILN_RETURN_IF_ERROR(CheckOutputs(sampled));
    const double flops = sampled.text.dag->flop_count();
    if (flops <= options.most_flops) return sampled;
    if (elements / 2 >= kMinElements) continue;
    if (flops <= kMuchCheaper * dag.flop_count()) return sampled;
    return InvalidArgument("a few of its elements take {:.3g} operations, all of them {:.3g}",
                           flops, dag.flop_count());
  }
}

double PlainSeconds(const Dag& dag, double flops_per_s) {
  return std::max(0.0, dag.flop_count()) / flops_per_s;
}

}  // namespace kiln::dag
