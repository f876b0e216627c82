#include "compiler/dag/wide_sums.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "compiler/dag/input_facts.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

int64_t TermsOf(const Operator& op) {
  int64_t terms = 1;
  for (const Axis& axis : op.reduce_axes()) terms = MultiplyCounts(terms, axis.extent);
  return terms;
}

bool IsLargeSum(const Operator& op) {
  return op.combiner() == Combiner::kSum && op.num_outputs() == 1 && op.type() == ir::kFloat32 &&
         TermsOf(op) >= kMinWideTerms && op.num_elements() <= kMaxWideResults;
}

// Returns a term in float64, in which additions and products are in float64 as well.
Expr Widened(ir::ExprPool& pool, Expr e) {
  if (e->type != ir::kFloat32) return pool.Cast(ir::kFloat64, e);
  switch (e->op) {
    case Op::kFloat:
      return pool.Float(e->float_value, ir::kFloat64);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
      return pool.Binary(e->op, Widened(pool, e->arg(0)), Widened(pool, e->arg(1)));
    case Op::kIf:
      return pool.If(e->arg(0), Widened(pool, e->arg(1)), Widened(pool, e->arg(2)));
    default:
      return pool.Cast(ir::kFloat64, e);
  }
}

StatusOr<OperatorPtr> Wide(const Operator& op) {
  auto pool = std::make_shared<ir::ExprPool>();
  std::vector<ir::Type> types;
  std::vector<std::vector<int64_t>> shapes;
  for (int slot = 0; slot < op.num_inputs(); ++slot) {
    types.push_back(op.input_type(slot));
    shapes.push_back(op.input_shape(slot));
  }
  const Expr term = Widened(*pool, pool->Import(op.body()));
  return Operator::Compute(op.name() + "_in_float64", op.axes(), op.reduce_axes(), Combiner::kSum,
                           {term}, pool, types, shapes);
}

StatusOr<OperatorPtr> Rounded(const Operator& op, const Operator& wide) {
  auto pool = std::make_shared<ir::ExprPool>();
  std::vector<Expr> indices;
  for (size_t d = 0; d < op.axes().size(); ++d) {
    indices.push_back(pool->Var(static_cast<int32_t>(d)));
  }
  const Expr rounded = pool->Cast(ir::kFloat32, pool->Load(0, indices, ir::kFloat64));
  const std::vector<ir::Type> types = {wide.type()};
  const std::vector<std::vector<int64_t>> shapes = {wide.shape()};
  return Operator::Compute(op.name(), op.axes(), {}, Combiner::kNone, {rounded}, pool, types,
                           shapes);
}

}  // namespace

int CountWideSums(const Dag& dag) {
  int count = 0;
  for (const OpNode& node : dag.nodes()) count += IsLargeSum(*node.op) ? 1 : 0;
  return count;
}

StatusOr<DagText> WithWideSums(const DagText& whole) {
  std::vector<OpNode> nodes;
  // Indexed by operator of the whole computation.
  std::vector<int> places;
  for (const OpNode& node : whole.dag->nodes()) {
    std::vector<Tensor> inputs = node.inputs;
    for (Tensor& input : inputs) input.op = places[static_cast<size_t>(input.op)];
    if (IsLargeSum(*node.op)) {
      KILN_ASSIGN_OR_RETURN(const OperatorPtr wide, Wide(*node.op));
      KILN_ASSIGN_OR_RETURN(const OperatorPtr rounded, Rounded(*node.op, *wide));
      const int sum = static_cast<int>(nodes.size());
      nodes.push_back({wide, std::move(inputs)});
      nodes.push_back({rounded, {Tensor{sum, 0}}});
    } else {
      nodes.push_back({node.op, std::move(inputs)});
    }
    places.push_back(static_cast<int>(nodes.size()) - 1);
  }
  DagText made;
  KILN_ASSIGN_OR_RETURN(made.dag, Dag::Make(std::move(nodes)));
  made.ranges = whole.ranges;
  KILN_RETURN_IF_ERROR(CheckSameInputs(whole, made));
  return made;
}

std::string ReferenceText(std::string_view text) {
  const auto whole = ParseDagText(text);
  if (!whole.ok() || CountWideSums(*whole->dag) == 0) return std::string(text);
  const auto wide = WithWideSums(*whole);
  return wide.ok() ? PrintDag(*wide->dag, wide->ranges) : std::string(text);
}

}  // namespace kiln::dag
