#include "compiler/schedule/steps/joined_sums.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/ir/substitution.h"
#include "compiler/schedule/steps/insertion.h"

namespace kiln::schedule {
namespace {

bool HaveSameExtents(const std::vector<dag::Axis>& a, const std::vector<dag::Axis>& b) {
  return std::ranges::equal(a, b, {}, &dag::Axis::extent, &dag::Axis::extent);
}

Status CheckSum(const State& state, int stage, const dag::Operator& first) {
  const dag::Operator& op = state.dag()->op(stage);
  if (op.reduction().kind != dag::Combiner::kSum || op.num_outputs() != 1) {
    return InvalidArgument("stage {} ({}) is no sum of one value; expected sums to join", stage,
                           op.name());
  }
  if (op.type() != first.type() || !HaveSameExtents(op.axes(), first.axes()) ||
      !HaveSameExtents(op.reduce_axes(), first.reduce_axes())) {
    return InvalidArgument(
        "stage {} ({}) has another type or other axes than {}; expected sums of one type over the "
        "same axes",
        stage, op.name(), first.name());
  }
  if (op.attrs() != dag::Attrs{}) {
    return InvalidArgument("stage {} ({}) has attributes, which joined sums have not", stage,
                           op.name());
  }
  if (state.attach(stage).kind != Attach::kRoot)
    return InvalidArgument("stage {} ({}) is not computed at root", stage, op.name());
  return OkStatus();
}

// Returns the number of the tensor among the inputs, which it joins.
int32_t SlotOf(const dag::Tensor& tensor, std::vector<dag::Tensor>& inputs) {
  const auto found = std::ranges::find(inputs, tensor);
  const auto slot = static_cast<int32_t>(found - inputs.begin());
  if (found == inputs.end()) inputs.push_back(tensor);
  return slot;
}

StatusOr<dag::OpNode> JoinedNode(const dag::Dag& dag, std::span<const int> stages,
                                 std::string name) {
  const dag::Operator& first = dag.op(stages[0]);
  auto pool = std::make_shared<ir::ExprPool>();
  dag::OpNode node;
  std::vector<ir::Expr> bodies;
  std::vector<ir::Type> types;
  std::vector<std::vector<int64_t>> shapes;
  for (const int stage : stages) {
    const dag::Operator& op = dag.op(stage);
    ir::Substitution names;
    for (int32_t slot = 0; slot < op.num_inputs(); ++slot) {
      const int32_t joined = SlotOf(dag.node(stage).inputs[static_cast<size_t>(slot)], node.inputs);
      names.SetSlot(slot, joined);
      if (static_cast<size_t>(joined) < types.size()) continue;
      types.push_back(op.input_type(slot));
      shapes.push_back(op.input_shape(slot));
    }
    bodies.push_back(pool->Substitute(op.body(), names));
  }
  KILN_ASSIGN_OR_RETURN(
      node.op,
      dag::Operator::Compute(std::move(name), first.axes(), first.reduce_axes(), first.reduction(),
                             std::move(bodies), std::move(pool), types, shapes));
  return node;
}

// Makes name[axes] = output k of the joined sums.
StatusOr<dag::OperatorPtr> CopyOf(const dag::Operator& op) {
  auto pool = std::make_shared<ir::ExprPool>();
  std::vector<ir::Expr> indices;
  for (size_t d = 0; d < op.axes().size(); ++d)
    indices.push_back(pool->Var(static_cast<int32_t>(d)));
  const std::vector<ir::Type> types = {op.type()};
  const std::vector<std::vector<int64_t>> shapes = {op.shape()};
  std::vector<ir::Expr> bodies = {pool->Load(0, indices, op.type())};
  return dag::Operator::Compute(op.name(), op.axes(), {}, dag::Combiner::kNone, std::move(bodies),
                                std::move(pool), types, shapes);
}

}  // namespace

Status CheckJoinable(const State& state, std::span<const int> stages) {
  const dag::Operator& first = state.dag()->op(stages[0]);
  for (size_t i = 0; i < stages.size(); ++i) {
    if (i > 0 && stages[i] <= stages[i - 1]) {
      return InvalidArgument("stage {} stands behind stage {}; expected them in ascending order",
                             stages[i], stages[i - 1]);
    }
    KILN_RETURN_IF_ERROR(CheckSum(state, stages[i], first));
    for (const dag::Tensor& input : state.dag()->node(stages[i]).inputs) {
      if (input.op < stages[0]) continue;
      return InvalidArgument("stage {} ({}) reads stage {}, which does not stand before stage {}",
                             stages[i], state.dag()->op(stages[i]).name(), input.op, stages[0]);
    }
  }
  return OkStatus();
}

StatusOr<dag::DagPtr> WithJoinedSums(const dag::Dag& dag, std::span<const int> stages,
                                     const std::string& scope) {
  std::string name;
  for (const int stage : stages) name += (name.empty() ? "" : ".") + dag.op(stage).name();
  const int position = stages[0];
  std::vector<dag::OpNode> nodes = NodesWithGap(dag, position);
  KILN_ASSIGN_OR_RETURN(nodes[static_cast<size_t>(position)],
                        JoinedNode(dag, stages, CacheName(dag, name, scope)));
  for (size_t k = 0; k < stages.size(); ++k) {
    dag::OpNode& copy = nodes[static_cast<size_t>(stages[k]) + 1];
    KILN_ASSIGN_OR_RETURN(copy.op, CopyOf(dag.op(stages[k])));
    copy.inputs = {{position, static_cast<int32_t>(k)}};
  }
  return dag::Dag::Make(std::move(nodes));
}

}  // namespace kiln::schedule
