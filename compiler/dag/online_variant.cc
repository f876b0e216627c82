#include "compiler/dag/online_variant.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/dag/softmax_chain.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

// Makes the sum of values in float64, with its own numbering of axes, as an operator of a DAG.
class WideSum {
 public:
  WideSum(const Dag& dag, const SoftmaxChain& chain)
      : dag_(dag), chain_(chain), op_(dag.op(chain.weighted)) {}

  StatusOr<OpNode> Make() {
    KILN_RETURN_IF_ERROR(NumberAxes());
    const Expr term = Term();
    std::vector<ir::Type> types;
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& input : inputs_) {
      types.push_back(dag_.type(input));
      shapes.push_back(dag_.shape(input));
    }
    KILN_ASSIGN_OR_RETURN(
        OperatorPtr made,
        Operator::Compute(op_.name() + "_in_float64", op_.axes(), op_.reduce_axes(), Combiner::kSum,
                          {term}, pool_, types, shapes));
    return OpNode{std::move(made), inputs_};
  }

 private:
  Expr LoadIn(Expr root, int op) const {
    Expr found = nullptr;
    ir::Visit(root, [&](Expr node) {
      if (node->op == Op::kLoad && node->id == op) found = node;
    });
    return found;
  }

  // Numbers the axis of the operator for each variable of the chain.
  Status NumberAxes() {
    axes_.assign(chain_.extents.size(), -1);
    const Expr load = LoadIn(chain_.result, chain_.weighted);
    if (load == nullptr) return Internal("the result of a softmax chain does not read its sum");
    for (int axis = 0; axis < load->num_args; ++axis) {
      if (load->arg(axis)->op == Op::kVar) axes_[static_cast<size_t>(load->arg(axis)->id)] = axis;
    }
    axes_[static_cast<size_t>(chain_.key)] = load->num_args;
    return OkStatus();
  }

  // A variable without an axis is always 0.
  Expr Variable(int32_t var) {
    const int32_t axis = axes_[static_cast<size_t>(var)];
    return axis < 0 ? pool_->Int(0) : pool_->Var(axis);
  }

  Expr Written(Expr e) {
    if (e->op == Op::kVar) return Variable(e->id);
    if (e->num_args == 0) return pool_->Import(e);
    std::vector<Expr> args;
    for (const Expr arg : e->args()) args.push_back(Written(arg));
    return e->op == Op::kLoad ? pool_->Load(SlotOf(e->id), args, e->type)
                              : pool_->WithArgs(e, args);
  }

  int32_t SlotOf(int32_t op) {
    for (size_t slot = 0; slot < inputs_.size(); ++slot) {
      if (inputs_[slot].op == op) return static_cast<int32_t>(slot);
    }
    inputs_.push_back({op, 0});
    return static_cast<int32_t>(inputs_.size()) - 1;
  }

  Expr Widened(Expr e) { return pool_->Cast(ir::kFloat64, Written(e)); }

  Expr Term() {
    const Expr exponent[] = {Widened(chain_.exponential->arg(0))};
    Expr weight = pool_->Call(ir::Intrinsic::kExp, exponent);
    if (chain_.is_normalized_before)
      weight = pool_->Div(weight, Widened(LoadIn(chain_.result, chain_.total)));
    const Expr term = pool_->Mul(weight, Widened(chain_.values));
    if (!chain_.last_key) return term;
    const Expr last = pool_->Add(Variable(chain_.row), pool_->Int(*chain_.last_key));
    return pool_->If(pool_->Le(Variable(chain_.key), last), term, pool_->Float(0, ir::kFloat64));
  }

  const Dag& dag_;
  const SoftmaxChain& chain_;
  const Operator& op_;
  const std::shared_ptr<ir::ExprPool> pool_ = std::make_shared<ir::ExprPool>();
  // Indexed by variable of the chain. -1: the variable has no axis.
  std::vector<int32_t> axes_;
  std::vector<Tensor> inputs_;
};

StatusOr<OperatorPtr> Rounded(const Operator& op) {
  auto pool = std::make_shared<ir::ExprPool>();
  std::vector<Expr> indices;
  for (size_t d = 0; d < op.axes().size(); ++d)
    indices.push_back(pool->Var(static_cast<int32_t>(d)));
  const Expr rounded = pool->Cast(op.type(), pool->Load(0, indices, ir::kFloat64));
  const ir::Type types[] = {ir::kFloat64};
  const std::vector<int64_t> shapes[] = {op.shape()};
  return Operator::Compute(op.name(), op.axes(), {}, Combiner::kNone, {rounded}, pool, types,
                           shapes);
}

// Makes the DAG without operators that the output does not need, such as rounded weights.
StatusOr<DagPtr> Needed(const std::vector<OpNode>& nodes, size_t output) {
  std::vector<bool> needed(nodes.size(), false);
  needed[output] = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const Tensor& input : nodes[i].inputs) needed[static_cast<size_t>(input.op)] = true;
  }
  std::vector<OpNode> kept;
  std::vector<int> places(nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    OpNode node = nodes[i];
    for (Tensor& input : node.inputs) input.op = places[static_cast<size_t>(input.op)];
    places[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(node));
  }
  return Dag::Make(std::move(kept));
}

}  // namespace

StatusOr<DagPtr> OnlineVariant(const Dag& dag) {
  KILN_ASSIGN_OR_RETURN(const SoftmaxChain chain, FindSoftmaxChain(dag));
  std::vector<OpNode> nodes;
  // Indexed by operator of the original DAG.
  std::vector<int> places;
  for (int i = 0; i < dag.size(); ++i) {
    OpNode node = dag.node(i);
    if (i == chain.weighted) {
      KILN_ASSIGN_OR_RETURN(node, WideSum(dag, chain).Make());
    }
    for (Tensor& input : node.inputs) input.op = places[static_cast<size_t>(input.op)];
    nodes.push_back(std::move(node));
    if (i == chain.weighted) {
      KILN_ASSIGN_OR_RETURN(OperatorPtr rounded, Rounded(dag.op(i)));
      const auto wide = static_cast<int32_t>(nodes.size()) - 1;
      nodes.push_back({std::move(rounded), {Tensor{wide, 0}}});
    }
    places.push_back(static_cast<int>(nodes.size()) - 1);
  }
  return Needed(nodes, static_cast<size_t>(places[static_cast<size_t>(chain.output)]));
}

int64_t TakeVariantOfNaN(const ir::NDArray& found, const ir::NDArray& variant,
                         ir::NDArray& expected) {
  if (!expected.type().is_float()) return 0;
  int64_t taken = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (!std::isnan(expected.GetDouble(i)) || std::isnan(found.GetDouble(i))) continue;
    expected.Set(i, variant.Get(i));
    ++taken;
  }
  return taken;
}

}  // namespace kiln::dag
