#include "compiler/schedule/steps/chosen_copy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/insertion.h"

namespace kiln::schedule {
namespace {

using ir::Expr;
using ir::Op;

// A load at places that an index input chooses.
struct ChosenLoad {
  Expr load = nullptr;
  // The reader's slot of the index.
  int index_slot = -1;
  // The dimension of the array that the index chooses.
  int dimension = -1;
  // The reader's axis along which the elements of the index lie.
  int32_t axis = -1;
};

// Returns the load of an index input that an index is, in any width.
Expr IndexLoad(Expr index) {
  while (index->op == Op::kCast) index = index->arg(0);
  const bool is_element = index->op == Op::kLoad && index->num_args == 1 &&
                          index->arg(0)->op == Op::kVar && !ir::HasLoad(index->arg(0));
  return is_element ? index : nullptr;
}

StatusOr<ChosenLoad> ChosenLoadOf(const dag::Operator& reader) {
  std::set<Expr> loads;
  for (const Expr body : reader.bodies()) {
    ir::Visit(body, [&](Expr e) {
      if (e->op == Op::kLoad && std::ranges::any_of(e->args(), ir::HasLoad)) loads.insert(e);
    });
  }
  if (loads.size() != 1) {
    return InvalidArgument("{} reads {} arrays at places that an index chooses; expected one",
                           reader.name(), loads.size());
  }
  ChosenLoad chosen{.load = *loads.begin()};
  for (int d = 0; d < static_cast<int>(chosen.load->num_args); ++d) {
    const Expr index = chosen.load->arg(static_cast<size_t>(d));
    if (!ir::HasLoad(index)) continue;
    const Expr element = IndexLoad(index);
    const bool is_of_result =
        element != nullptr && element->arg(0)->id < static_cast<int32_t>(reader.axes().size());
    if (!is_of_result || chosen.dimension >= 0) {
      return InvalidArgument(
          "{} reads places that are no elements of one input along one of its axes", reader.name());
    }
    chosen.dimension = d;
    chosen.index_slot = element->id;
    chosen.axis = element->arg(0)->id;
  }
  int uses = 0;
  for (const Expr body : reader.bodies()) {
    ir::Visit(body, [&](Expr e) {
      uses += e->op == Op::kLoad && (e->id == chosen.load->id || e->id == chosen.index_slot);
    });
  }
  if (uses == 2) return chosen;
  return InvalidArgument("{} reads the array or the index at other places as well", reader.name());
}

// Makes copy[i, k] = x[rows[i], k], whose first input is x.
StatusOr<dag::OperatorPtr> MakeChosenCopy(std::string name, const dag::Operator& reader,
                                          const ChosenLoad& chosen) {
  auto pool = std::make_shared<ir::ExprPool>();
  const std::vector<int64_t> shape = reader.input_shape(chosen.load->id);
  std::vector<dag::Axis> axes;
  std::vector<Expr> indices;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const bool is_chosen = d == chosen.dimension;
    axes.push_back({fmt::format("ax{}", d),
                    is_chosen ? reader.axes()[chosen.axis].extent : shape[static_cast<size_t>(d)]});
    Expr index = pool->Var(d);
    if (is_chosen) {
      const Expr before = chosen.load->arg(static_cast<size_t>(d));
      const Expr element[] = {index};
      index = pool->Load(1, element, IndexLoad(before)->type);
      if (before->op == Op::kCast) index = pool->Cast(before->type, index);
    }
    indices.push_back(index);
  }
  const std::vector<ir::Type> types = {reader.input_type(chosen.load->id),
                                       reader.input_type(chosen.index_slot)};
  const std::vector<std::vector<int64_t>> shapes = {shape, reader.input_shape(chosen.index_slot)};
  const Expr body = pool->Load(0, indices, types[0]);
  return dag::Operator::Compute(std::move(name), std::move(axes), {}, dag::Combiner::kNone, {body},
                                std::move(pool), types, shapes);
}

// Makes the operator that reads the copy at the array's slot, and no index.
StatusOr<dag::OperatorPtr> ReadingCopy(const dag::Operator& reader, const ChosenLoad& chosen,
                                       std::vector<int64_t> shape_of_copy) {
  auto pool = std::make_shared<ir::ExprPool>();
  const auto slot_of = [&](int slot) { return slot > chosen.index_slot ? slot - 1 : slot; };
  std::vector<Expr> bodies;
  for (const Expr body : reader.bodies()) {
    std::unordered_map<Expr, Expr> made;
    ir::Visit(body, [&](Expr e) {
      std::vector<Expr> args;
      for (const Expr arg : e->args()) args.push_back(made.at(arg));
      if (e == chosen.load) args[static_cast<size_t>(chosen.dimension)] = pool->Var(chosen.axis);
      if (e->op == Op::kLoad) {
        // The load of the index is left out by its only reader.
        made[e] = pool->Load(slot_of(e->id), args, e->type);
      } else {
        made[e] = args.empty() ? pool->Import(e) : pool->WithArgs(e, args);
      }
    });
    bodies.push_back(made.at(body));
  }
  std::vector<ir::Type> types;
  std::vector<std::vector<int64_t>> shapes;
  for (int slot = 0; slot < reader.num_inputs(); ++slot) {
    if (slot == chosen.index_slot) continue;
    types.push_back(reader.input_type(slot));
    shapes.push_back(slot == chosen.load->id ? shape_of_copy : reader.input_shape(slot));
  }
  return dag::Operator::Compute(reader.name(), reader.axes(), reader.reduce_axes(),
                                reader.reduction(), std::move(bodies), std::move(pool), types,
                                shapes, reader.attrs());
}

}  // namespace

StatusOr<dag::DagPtr> WithChosenCopy(const dag::Dag& dag, int stage, int reader) {
  const dag::Operator& op = dag.op(reader);
  KILN_ASSIGN_OR_RETURN(const ChosenLoad chosen, ChosenLoadOf(op));
  const dag::Tensor array = dag.node(reader).inputs[static_cast<size_t>(chosen.load->id)],
                    index = dag.node(reader).inputs[static_cast<size_t>(chosen.index_slot)];
  if (std::max(array.op, index.op) != stage) {
    return InvalidArgument("it is not the later one of the array {} and the index {}", array.op,
                           index.op);
  }
  const int position = stage + 1;
  std::vector<dag::OpNode> nodes = NodesWithGap(dag, position);
  KILN_ASSIGN_OR_RETURN(
      nodes[position].op,
      MakeChosenCopy(CacheName(dag, dag.op(array.op).name(), kChosenScope), op, chosen));
  nodes[position].inputs = {array, index};
  dag::OpNode& node = nodes[reader + 1];
  KILN_ASSIGN_OR_RETURN(node.op, ReadingCopy(op, chosen, nodes[position].op->shape()));
  node.inputs[static_cast<size_t>(chosen.load->id)] = {position, 0};
  node.inputs.erase(node.inputs.begin() + chosen.index_slot);
  return dag::Dag::Make(std::move(nodes));
}

}  // namespace kiln::schedule
