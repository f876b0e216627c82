#include "compiler/schedule/evaluate_dag_testing.h"

#include <functional>
#include <string>

#include "compiler/ir/evaluate.h"

namespace kiln::schedule {
namespace {

class Inputs : public ir::LoadSource {
 public:
  explicit Inputs(std::vector<const ir::NDArray*> slots) : slots_(std::move(slots)) {}
  Status Load(int32_t slot, std::span<const int64_t> indices, ir::Value* value) override {
    const int64_t flat = slots_[slot]->Flatten(indices);
    if (flat < 0) return OutOfRange("slot {} is read out of bounds", slot);
    *value = slots_[slot]->Get(flat);
    return OkStatus();
  }

 private:
  std::vector<const ir::NDArray*> slots_;
};

// One element of a one-output operator: the loop over its reduce axes.
ir::Value Element(const dag::Operator& op, ir::CompiledExpr& body, Inputs& inputs,
                  std::vector<ir::Value> vars) {
  const auto run = [&] {
    ir::Value value;
    const Status status = body.Run(vars, &inputs, &value);
    KILN_CHECK(status.ok(), "{}: {}", op.name(), Message(status));
    return value;
  };
  if (!op.is_reduction()) return run();
  ir::ExprPool pool;
  StatusOr<ir::Value> result =
      ir::EvaluateExpr(dag::ReduceIdentity(op.combiner(), 0, op.type(), pool), {});
  const ir::Expr operands[] = {pool.Var(0, op.type()), pool.Var(1, op.type())};
  ir::CompiledExpr combine(dag::Combine(op.combiner(), {operands, 1}, {operands + 1, 1}, pool)[0]);
  const size_t first = vars.size();
  vars.resize(first + op.reduce_axes().size(), ir::Value::Int(0));
  while (true) {
    const ir::Value pair[] = {*result, run()};
    KILN_CHECK(combine.Run(pair, nullptr, &*result).ok());
    size_t i = op.reduce_axes().size();
    while (i > 0 && ++vars[first + i - 1].i == op.reduce_axes()[i - 1].extent) {
      vars[first + --i].i = 0;
    }
    if (i == 0) return *result;
  }
}

ir::NDArray EvaluateOperator(const dag::Operator& op, std::vector<const ir::NDArray*> slots) {
  KILN_CHECK(op.num_outputs() == 1);
  Inputs inputs(std::move(slots));
  ir::CompiledExpr body(op.body());
  ir::NDArray result(op.type(), op.shape());
  for (int64_t flat = 0; flat < result.num_elements(); ++flat) {
    std::vector<ir::Value> vars;
    for (int64_t index : result.Unflatten(flat)) vars.push_back(ir::Value::Int(index));
    result.Set(flat, Element(op, body, inputs, std::move(vars)));
  }
  return result;
}

}  // namespace

std::vector<ir::NDArray> EvaluateDag(const dag::Dag& dag, uint64_t seed) {
  std::vector<ir::NDArray> values;
  std::vector<ir::NDArray> outputs;
  values.reserve(dag.size());
  for (int i = 0; i < dag.size(); ++i) {
    const dag::Operator& op = dag.op(i);
    if (op.is_placeholder()) {
      values.emplace_back(op.type(), op.shape());
      values.back().FillRandom(seed + std::hash<std::string>()(op.name()),
                               ir::RandomKind::kSmallIntegers);
      continue;
    }
    std::vector<const ir::NDArray*> slots;
    for (dag::Tensor input : dag.node(i).inputs) slots.push_back(&values[input.op]);
    values.push_back(EvaluateOperator(op, std::move(slots)));
    if (dag.is_output(i)) outputs.push_back(values.back());
  }
  return outputs;
}

}  // namespace kiln::schedule
