#include "compiler/dag/evaluate.h"

#include <algorithm>
#include <utility>

#include "compiler/dag/index_limit.h"
#include "compiler/ir/evaluate.h"

namespace kiln::dag {
namespace {

using ir::NDArray;
using ir::Value;

// The tensors an operator reads, by slot.
class Inputs : public ir::LoadSource {
 public:
  explicit Inputs(std::vector<const NDArray*> arrays) : arrays_(std::move(arrays)) {}

  Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) override {
    const NDArray& array = *arrays_[static_cast<size_t>(slot)];
    const int64_t flat = array.Flatten(indices);
    if (flat < 0) {
      return OutOfRange("index [{}] of input {}, whose shape is {}", fmt::join(indices, ", "), slot,
                        ir::ShapeText(array.shape()));
    }
    *value = array.Get(flat);
    return OkStatus();
  }

 private:
  std::vector<const NDArray*> arrays_;
};

// Counts through a box, last axis fastest; writes the position into `point`.
bool Advance(std::span<const Axis> axes, std::span<Value> point) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++point[i].i < axes[i].extent) return true;
    point[i].i = 0;
  }
  return false;
}

class OperatorRun {
 public:
  OperatorRun(const Operator& op, std::vector<const NDArray*> inputs,
              const EvaluateOptions& options)
      : op_(op), inputs_(std::move(inputs)) {
    for (ir::Expr body : op.bodies()) bodies_.emplace_back(body);
    if (op.is_reduction()) CompileCombiner(options.wide_accumulation);
    point_.assign(op.axes().size() + op.reduce_axes().size(), Value::Int(0));
  }

  StatusOr<std::vector<NDArray>> Run() {
    std::vector<NDArray> results;
    for (int k = 0; k < op_.num_outputs(); ++k) results.emplace_back(op_.type(k), op_.shape());
    std::vector<Value> element(bodies_.size());
    for (int64_t flat = 0; flat < op_.num_elements(); ++flat) {
      KILN_RETURN_IF_ERROR(op_.is_reduction() ? Reduce(element) : Sources(element));
      for (size_t k = 0; k < results.size(); ++k) results[k].Set(flat, element[k]);
      Advance(op_.axes(), std::span(point_).first(op_.axes().size()));
    }
    return results;
  }

 private:
  // Combination as expressions of variables: accumulators 0..n-1, sources n..2n-1.
  void CompileCombiner(bool wide) {
    ir::ExprPool pool;
    const int n = op_.num_outputs();
    std::vector<ir::Expr> accumulators, sources;
    for (int k = 0; k < n; ++k) {
      // A written combiner says its types.
      const bool widens = wide && op_.type(k).is_float() && op_.combiner() != Combiner::kCustom;
      const ir::Type type = widens ? ir::kFloat64 : op_.type(k);
      types_.push_back(type);
      accumulators.push_back(pool.Var(k, type));
      sources.push_back(pool.Var(n + k, type));
      const ir::Expr identity = ReduceIdentity(op_.reduction(), k, type, pool);
      identity_.push_back(type.is_float() ? Value::Float(identity->float_value)
                                          : Value::Int(identity->int_value));
    }
    for (ir::Expr e : Combine(op_.reduction(), accumulators, sources, pool))
      combiners_.emplace_back(e);
  }

  // A value carried wider than its type is rounded before it meets the accumulator, as a store
  // would do.
  static Value Rounded(Value value, ir::Type type) {
    return type.is_float() ? Value::Float(ir::RoundToType(value.f, type))
                           : Value::Int(ir::WrapToType(value.i, type));
  }

  Status Sources(std::span<Value> out) {
    for (size_t k = 0; k < bodies_.size(); ++k) {
      KILN_RETURN_IF_ERROR(Annotate(bodies_[k].Run(point_, &inputs_, &out[k]), op_.name()));
    }
    return OkStatus();
  }

  Status Reduce(std::span<Value> out) {
    const size_t n = bodies_.size();
    std::vector<Value>& vars = combine_vars_;
    vars.assign(identity_.begin(), identity_.end());
    vars.resize(2 * n);
    const std::span<Value> reduce_point = std::span(point_).subspan(op_.axes().size());
    do {
      KILN_RETURN_IF_ERROR(Sources(std::span(vars).subspan(n)));
      for (size_t k = 0; k < n; ++k)
        KILN_RETURN_IF_ERROR(combiners_[k].Run(vars, nullptr, &out[k]));
      for (size_t k = 0; k < n; ++k) vars[k] = Rounded(out[k], types_[k]);
    } while (Advance(op_.reduce_axes(), reduce_point));
    std::copy_n(vars.begin(), n, out.begin());
    return OkStatus();
  }

  const Operator& op_;
  Inputs inputs_;
  std::vector<ir::CompiledExpr> bodies_, combiners_;
  std::vector<ir::Type> types_;
  std::vector<Value> identity_, point_, combine_vars_;
};

Status CheckInput(const Operator& op, const NDArray& array) {
  if (array.type() == op.type() && array.shape() == op.shape()) return OkStatus();
  return InvalidArgument("input {} is {}{}, expected {}{}", op.name(), TypeName(array.type()),
                         ir::ShapeText(array.shape()), TypeName(op.type()),
                         ir::ShapeText(op.shape()));
}

}  // namespace

StatusOr<std::vector<std::vector<NDArray>>> EvaluateAll(const Dag& dag,
                                                        std::span<const NDArray> inputs,
                                                        const EvaluateOptions& options) {
  std::vector<std::vector<NDArray>> tensors(static_cast<size_t>(dag.size()));
  size_t next_input = 0;
  for (int i = 0; i < dag.size(); ++i) {
    const OpNode& node = dag.node(i);
    if (node.op->is_placeholder()) {
      if (next_input == inputs.size())
        return InvalidArgument("got {} inputs, {} has none", inputs.size(), node.op->name());
      KILN_RETURN_IF_ERROR(CheckInput(*node.op, inputs[next_input]));
      tensors[static_cast<size_t>(i)].push_back(inputs[next_input++]);
      continue;
    }
    std::vector<const NDArray*> arrays;
    for (Tensor in : node.inputs) {
      arrays.push_back(&tensors[static_cast<size_t>(in.op)][static_cast<size_t>(in.output)]);
    }
    KILN_ASSIGN_OR_RETURN(tensors[static_cast<size_t>(i)],
                          OperatorRun(*node.op, std::move(arrays), options).Run());
  }
  if (next_input != inputs.size())
    return InvalidArgument("got {} inputs, expected {}", inputs.size(), next_input);
  return tensors;
}

StatusOr<std::vector<NDArray>> Evaluate(const Dag& dag, std::span<const NDArray> inputs,
                                        const EvaluateOptions& options) {
  KILN_ASSIGN_OR_RETURN(auto tensors, EvaluateAll(dag, inputs, options));
  std::vector<NDArray> outputs;
  for (Tensor t : dag.arguments()) {
    if (dag.op(t.op).is_placeholder()) continue;
    outputs.push_back(std::move(tensors[static_cast<size_t>(t.op)][static_cast<size_t>(t.output)]));
  }
  return outputs;
}

std::vector<NDArray> RandomInputs(const Dag& dag, uint64_t seed, ir::RandomKind kind) {
  std::vector<NDArray> inputs;
  const std::vector<int64_t> limits = IndexLimits(dag);
  for (int i = 0; i < dag.size(); ++i) {
    const Operator& op = dag.op(i);
    if (!op.is_placeholder()) continue;
    inputs.emplace_back(op.type(), op.shape());
    inputs.back().FillRandom(seed + inputs.size() * 0x9e3779b97f4a7c15ULL, kind,
                             limits[static_cast<size_t>(i)]);
  }
  return inputs;
}

}  // namespace kiln::dag
