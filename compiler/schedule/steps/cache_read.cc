#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/chosen_copy.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

Status CheckReaders(const State& state, int stage, const std::vector<int>& readers) {
  const std::vector<int>& consumers = state.dag()->consumers(stage);
  if (readers.empty()) {
    return InvalidArgument("the list of readers is empty; its readers are {}",
                           DescribeStages(state, consumers));
  }
  for (size_t i = 0; i < readers.size(); ++i) {
    if (std::find(consumers.begin(), consumers.end(), readers[i]) == consumers.end()) {
      return InvalidArgument("stage {} does not read it; its readers are {}", readers[i],
                             DescribeStages(state, consumers));
    }
    if (std::find(readers.begin(), readers.begin() + i, readers[i]) != readers.begin() + i) {
      return InvalidArgument("reader {} is listed twice", readers[i]);
    }
  }
  return OkStatus();
}

Status CheckOrder(std::span<const int> order, size_t dimensions) {
  if (order.empty()) return OkStatus();
  std::vector<int> sorted(order.begin(), order.end()), all(dimensions);
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  if (sorted == all) return OkStatus();
  return InvalidArgument("[{}] is not an order of {} dimensions; expected each number from 0 once",
                         fmt::join(order, ", "), dimensions);
}

// Dimension d of the copy is dimension order[d] of the producer.
std::vector<int> OrderOf(const CacheReadStep& step, size_t dimensions) {
  if (!step.order.empty()) return step.order;
  std::vector<int> order(dimensions);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<dag::Axis> CopyAxes(const dag::Operator& producer, std::span<const int> order) {
  std::vector<dag::Axis> axes;
  for (size_t d = 0; d < order.size(); ++d)
    axes.push_back({fmt::format("ax{}", d), producer.shape()[static_cast<size_t>(order[d])]});
  return axes;
}

// Makes an operator that computes the same values and reads the reordered copy at some of its
// slots.
class Reordered {
 public:
  Reordered(const dag::Operator& op, std::span<const int> order) : op_(op), order_(order) {}

  StatusOr<dag::OperatorPtr> Reading(const std::vector<bool>& slots) const {
    auto pool = std::make_shared<ir::ExprPool>();
    std::vector<ir::Expr> bodies;
    for (const ir::Expr body : op_.bodies()) bodies.push_back(Rewrite(body, slots, *pool));
    std::vector<ir::Type> types;
    std::vector<std::vector<int64_t>> shapes;
    for (int slot = 0; slot < op_.num_inputs(); ++slot) {
      types.push_back(op_.input_type(slot));
      shapes.push_back(op_.input_shape(slot));
      if (slots[static_cast<size_t>(slot)]) shapes.back() = InOrder(shapes.back());
    }
    return dag::Operator::Compute(op_.name(), op_.axes(), op_.reduce_axes(), op_.reduction(),
                                  std::move(bodies), std::move(pool), types, shapes, op_.attrs());
  }

 private:
  template <typename T>
  std::vector<T> InOrder(const std::vector<T>& all) const {
    std::vector<T> ordered;
    for (const int d : order_) ordered.push_back(all[static_cast<size_t>(d)]);
    return ordered;
  }

  ir::Expr Rewrite(ir::Expr body, const std::vector<bool>& slots, ir::ExprPool& pool) const {
    std::unordered_map<ir::Expr, ir::Expr> made;
    ir::Visit(body, [&](ir::Expr e) {
      std::vector<ir::Expr> args;
      for (const ir::Expr arg : e->args()) args.push_back(made.at(arg));
      if (e->op != ir::Op::kLoad) {
        made[e] = args.empty() ? pool.Import(e) : pool.WithArgs(e, args);
      } else {
        made[e] =
            pool.Load(e->id, slots[static_cast<size_t>(e->id)] ? InOrder(args) : args, e->type);
      }
    });
    return made.at(body);
  }

  const dag::Operator& op_;
  const std::span<const int> order_;
};

// Inserts the copy behind its producer, and lets the readers read the copy.
StatusOr<dag::DagPtr> WithCopy(const dag::Dag& dag, const CacheReadStep& step,
                               std::span<const int> order) {
  const dag::Operator& producer = dag.op(step.stage_id);
  const int position = step.stage_id + 1;
  std::vector<dag::OpNode> nodes = NodesWithGap(dag, position);
  KILN_ASSIGN_OR_RETURN(nodes[position].op,
                        MakeCopy(producer, CacheName(dag, producer.name(), step.scope),
                                 CopyAxes(producer, order), order));
  nodes[position].inputs = {{step.stage_id, 0}};
  for (int reader : step.readers) {
    // Readers stand after the producer, so they have moved up.
    dag::OpNode& node = nodes[reader + 1];
    std::vector<bool> slots;
    for (dag::Tensor& input : node.inputs) {
      slots.push_back(input.op == step.stage_id);
      if (slots.back()) input.op = position;
    }
    if (step.order.empty()) continue;
    KILN_ASSIGN_OR_RETURN(node.op, Reordered(*node.op, order).Reading(slots));
  }
  return dag::Dag::Make(std::move(nodes));
}

}  // namespace

StatusOr<StepPtr> CacheReadStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const std::string_view scope = reader.Text("scope");
  std::vector<int> readers = reader.Ints("readers");
  std::vector<int> order = reader.HasNext() ? reader.Ints("order") : std::vector<int>();
  return reader.Make<CacheReadStep>(stage, std::string(scope), std::move(readers),
                                    std::move(order));
}

namespace {

// Returns true if the step copies the elements that an index chooses (chosen_copy.h).
bool IsOfChosen(const CacheReadStep& step) {
  return step.scope == kChosenScope && !step.order.empty();
}

Status CheckChosen(const State& state, const CacheReadStep& step) {
  if (step.readers.size() != 1)
    return InvalidArgument("{} readers are listed, expected one", step.readers.size());
  return CheckUntouched(state, step.readers[0]);
}

}  // namespace

Status CacheReadStep::ApplyTo(State& state) const {
  const dag::Dag& dag = *state.dag();
  const dag::Operator& producer = dag.op(stage_id);
  KILN_RETURN_IF_ERROR(CheckRoomForStage(state));
  KILN_RETURN_IF_ERROR(CheckScope(scope));
  if (producer.num_outputs() != 1) {
    return InvalidArgument("it has {} outputs; expected an operator with one",
                           producer.num_outputs());
  }
  KILN_RETURN_IF_ERROR(CheckReaders(state, stage_id, readers));
  const size_t dimensions = producer.shape().size();
  const bool is_of_chosen = IsOfChosen(*this);
  KILN_RETURN_IF_ERROR(is_of_chosen ? CheckChosen(state, *this) : CheckOrder(order, dimensions));

  const int position = stage_id + 1;
  dag::EditKey key = BeginKey(EditKind::kCacheRead, stage_id);
  AddToKey(scope, key);
  AddToKey(readers, key);
  AddToKey(order, key);
  KILN_ASSIGN_OR_RETURN(dag::DagPtr changed, MakeOnce(dag, std::move(key), [&] {
                          return is_of_chosen ? WithChosenCopy(dag, stage_id, readers[0])
                                              : WithCopy(dag, *this, OrderOf(*this, dimensions));
                        }));
  for (size_t i = 0; i < readers.size() && !order.empty(); ++i)
    state.MutableStage(readers[i]).op = changed->node(readers[i] + 1).op;
  state.InsertStage(std::move(changed), position, {});
  state.MutableStage(position).scope = ScopeOf(scope);
  return OkStatus();
}

std::string CacheReadStep::ToJson() const {
  const std::string dimensions = order.empty() ? "" : fmt::format(", [{}]", fmt::join(order, ", "));
  return fmt::format("[\"CHR\", {}, \"{}\", [{}]{}]", stage_id, scope, fmt::join(readers, ", "),
                     dimensions);
}

uint64_t CacheReadStep::Hash() const {
  StepHash hash(kTag);
  hash.Add(stage_id).Add(std::string_view(scope)).AddAll(readers);
  if (!order.empty()) hash.AddAll(order);
  return hash.value();
}

}  // namespace kiln::schedule
