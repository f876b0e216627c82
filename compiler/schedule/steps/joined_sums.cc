#include "compiler/schedule/steps/joined_sums.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/insertion.h"

namespace kiln::schedule {
namespace {

bool HaveSameExtents(const std::vector<dag::Axis>& a, const std::vector<dag::Axis>& b) {
  return std::ranges::equal(a, b, {}, &dag::Axis::extent, &dag::Axis::extent);
}

Status CheckAlike(const State& state, int stage, const dag::Operator& first) {
  const dag::Operator& op = state.dag()->op(stage);
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

Status CheckSum(const State& state, int stage) {
  const dag::Operator& op = state.dag()->op(stage);
  if (op.reduction().kind == dag::Combiner::kSum && op.num_outputs() == 1) return OkStatus();
  return InvalidArgument("stage {} ({}) is no sum of one value; expected sums to join", stage,
                         op.name());
}

// The tensors that joined stages read, each once.
class JoinedInputs {
 public:
  // Adds those of the stage but for stage `other`, and returns their names among these.
  ir::Substitution Add(const dag::Dag& dag, int stage, int other = -1) {
    const dag::Operator& op = dag.op(stage);
    ir::Substitution names;
    for (int32_t slot = 0; slot < op.num_inputs(); ++slot) {
      const dag::Tensor& tensor = dag.node(stage).inputs[static_cast<size_t>(slot)];
      if (tensor.op == other) continue;
      const auto found = std::ranges::find(tensors, tensor);
      names.SetSlot(slot, static_cast<int32_t>(found - tensors.begin()));
      if (found != tensors.end()) continue;
      tensors.push_back(tensor);
      types.push_back(op.input_type(slot));
      shapes.push_back(op.input_shape(slot));
    }
    return names;
  }

  std::vector<dag::Tensor> tensors;
  std::vector<ir::Type> types;
  std::vector<std::vector<int64_t>> shapes;
};

// The exponent e of exp(e - m), and the stage whose body that is.
struct Exponential {
  ir::Expr exponent = nullptr;  // null: there is none
  int stage = -1;
};

// Returns whether the load has the variables 0, 1, ... as its indices.
bool IsAtVariables(ir::Expr load) {
  for (int32_t d = 0; d < static_cast<int32_t>(load->num_args); ++d) {
    if (load->arg(d)->op != ir::Op::kVar || load->arg(d)->id != d) return false;
  }
  return true;
}

// Returns the exponential that stage `sum` adds up, which it has in its body or reads element by
// element, if m is what stage `max` has for the same row, and e reads nothing else of that stage.
Exponential ExponentialOf(const dag::Dag& dag, int max, int sum) {
  int stage = sum;
  ir::Expr body = dag.op(sum).body();
  const size_t terms = dag.op(sum).axes().size() + dag.op(sum).reduce_axes().size();
  if (body->op == ir::Op::kLoad && body->num_args == terms && IsAtVariables(body)) {
    stage = dag.node(sum).inputs[static_cast<size_t>(body->id)].op;
    const dag::Operator& op = dag.op(stage);
    if (op.is_placeholder() || op.is_reduction() || op.num_outputs() != 1) return {};
    body = op.body();
  }
  if (body->op != ir::Op::kCall || body->intrinsic() != ir::Intrinsic::kExp ||
      body->arg(0)->op != ir::Op::kSub)
    return {};
  const auto is_maximum = [&](ir::Expr load) {
    return load->op == ir::Op::kLoad &&
           dag.node(stage).inputs[static_cast<size_t>(load->id)] == dag::Tensor{max, 0};
  };
  const ir::Expr e = body->arg(0)->arg(0), below = body->arg(0)->arg(1);
  if (!is_maximum(below) || !IsAtVariables(below)) return {};
  bool reads_maximum = false;
  ir::Visit(e, [&](ir::Expr part) { reads_maximum |= is_maximum(part); });
  return reads_maximum ? Exponential{} : Exponential{e, stage};
}

// Two pairs of a maximum m and a sum s of exponentials below it become one. The maximum of nothing
// is the lowest finite value: below minus infinity there is no difference.
dag::CustomCombinerPtr MaxAndSum() {
  auto pool = std::make_shared<ir::ExprPool>();
  auto combiner = std::make_shared<dag::CustomCombiner>();
  combiner->name = "max_and_sum";
  combiner->parts = {{.left = "m", .right = "m2", .type = ir::kFloat32},
                     {.left = "s", .right = "s2", .type = ir::kFloat32, .low = 0, .high = 4}};
  combiner->identity = {pool->Float(std::numeric_limits<float>::lowest()), pool->Float(0)};
  const auto var = [&](int32_t id) { return pool->Var(id, ir::kFloat32); };
  const ir::Expr larger = pool->Max(var(0), var(2));
  const auto below = [&](int32_t max, int32_t sum) {
    const ir::Expr difference[] = {pool->Sub(var(max), larger)};
    return pool->Mul(var(sum), pool->Call(ir::Intrinsic::kExp, difference));
  };
  combiner->results = {larger, pool->Add(below(0, 1), below(2, 3))};
  combiner->pool = std::move(pool);
  return combiner;
}

StatusOr<dag::OpNode> JoinedNode(const dag::Dag& dag, std::span<const int> stages,
                                 std::string name) {
  const dag::Operator& first = dag.op(stages[0]);
  auto pool = std::make_shared<ir::ExprPool>();
  JoinedInputs inputs;
  std::vector<ir::Expr> bodies;
  dag::Reduction reduction = first.reduction();
  if (first.reduction().kind == dag::Combiner::kMax) {
    reduction = dag::Reduction(MaxAndSum());
    bodies = {pool->Substitute(first.body(), inputs.Add(dag, stages[0])), pool->Float(1)};
  } else {
    for (const int stage : stages)
      bodies.push_back(pool->Substitute(dag.op(stage).body(), inputs.Add(dag, stage)));
  }
  dag::OpNode node;
  KILN_ASSIGN_OR_RETURN(
      node.op,
      dag::Operator::Compute(std::move(name), first.axes(), first.reduce_axes(), reduction,
                             std::move(bodies), std::move(pool), inputs.types, inputs.shapes));
  node.inputs = std::move(inputs.tensors);
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

bool IsSumBelow(const dag::Dag& dag, int max, int sum) {
  const dag::Operator &of_max = dag.op(max), &of_sum = dag.op(sum);
  if (of_max.reduction().kind != dag::Combiner::kMax || of_max.num_outputs() != 1 ||
      of_sum.reduction().kind != dag::Combiner::kSum || of_sum.num_outputs() != 1 ||
      of_max.type() != ir::kFloat32 || of_sum.type() != ir::kFloat32 ||
      !HaveSameExtents(of_max.axes(), of_sum.axes()) ||
      !HaveSameExtents(of_max.reduce_axes(), of_sum.reduce_axes()))
    return false;
  const Exponential found = ExponentialOf(dag, max, sum);
  if (found.exponent == nullptr) return false;
  ir::ExprPool pool;
  JoinedInputs inputs;
  const ir::Expr of_maximum = pool.Substitute(of_max.body(), inputs.Add(dag, max));
  return pool.Substitute(found.exponent, inputs.Add(dag, found.stage, max)) == of_maximum;
}

Status CheckJoinable(const State& state, std::span<const int> stages) {
  const dag::Dag& dag = *state.dag();
  const dag::Operator& first = dag.op(stages[0]);
  const bool is_below = first.reduction().kind == dag::Combiner::kMax;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (i > 0 && stages[i] <= stages[i - 1]) {
      return InvalidArgument("stage {} stands behind stage {}; expected them in ascending order",
                             stages[i], stages[i - 1]);
    }
    if (!is_below) KILN_RETURN_IF_ERROR(CheckSum(state, stages[i]));
    KILN_RETURN_IF_ERROR(CheckAlike(state, stages[i], first));
    for (const dag::Tensor& input : dag.node(stages[i]).inputs) {
      // A pair reads what the maximum reads, and nothing else.
      if (input.op < stages[0] || (is_below && i > 0)) continue;
      return InvalidArgument("stage {} ({}) reads stage {}, which does not stand before stage {}",
                             stages[i], dag.op(stages[i]).name(), input.op, stages[0]);
    }
  }
  if (is_below && (stages.size() != 2 || !IsSumBelow(dag, stages[0], stages[1]))) {
    return InvalidArgument(
        "stage {} ({}) is a maximum; expected one sum of exponentials below it, in float32, of "
        "what it is the maximum of",
        stages[0], first.name());
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
