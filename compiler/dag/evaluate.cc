#include "compiler/dag/evaluate.h"

#include <algorithm>
#include <utility>

#include "compiler/dag/index_limit.h"
#include "compiler/ir/evaluate.h"

namespace kiln::dag {
namespace {

using ir::NDArray;
using ir::Value;

// A tensor that an operator reads: an array, or an input whose elements are made when they are
// read.
struct Readable {
  const NDArray* array = nullptr;
  const ElementSource* source = nullptr;

  const std::vector<int64_t>& shape() const {
    return array != nullptr ? array->shape() : source->shape();
  }
  Value At(int64_t flat) const { return array != nullptr ? array->Get(flat) : source->At(flat); }
};

// Returns -1 outside of the shape.
int64_t Flatten(const std::vector<int64_t>& shape, std::span<const int64_t> indices) {
  if (indices.size() != shape.size()) return -1;
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (indices[d] < 0 || indices[d] >= shape[d]) return -1;
    flat = flat * shape[d] + indices[d];
  }
  return flat;
}

// The tensors that an operator reads, by slot.
class Inputs : public ir::LoadSource {
 public:
  explicit Inputs(std::vector<Readable> tensors) : tensors_(std::move(tensors)) {}

  Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) override {
    const Readable& tensor = tensors_[static_cast<size_t>(slot)];
    const int64_t flat = Flatten(tensor.shape(), indices);
    if (flat < 0) {
      return OutOfRange("index [{}] of input {}, whose shape is {}", fmt::join(indices, ", "), slot,
                        ir::ShapeText(tensor.shape()));
    }
    *value = tensor.At(flat);
    return OkStatus();
  }

 private:
  std::vector<Readable> tensors_;
};

// Counts through a box, the last axis fastest. Writes the position into `point`.
bool Advance(std::span<const Axis> axes, std::span<Value> point) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++point[i].i < axes[i].extent) return true;
    point[i].i = 0;
  }
  return false;
}

class OperatorRun {
 public:
  OperatorRun(const Operator& op, std::vector<Readable> inputs, const EvaluateOptions& options)
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
  // Compiles the combination as expressions of variables: accumulators 0..n-1, sources n..2n-1.
  void CompileCombiner(bool wide) {
    ir::ExprPool pool;
    const int n = op_.num_outputs();
    std::vector<ir::Expr> accumulators, sources;
    for (int k = 0; k < n; ++k) {
      // A written combiner declares its own types.
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

  // A value carried wider than its type is rounded before it is combined with the accumulator, as a
  // store would round it.
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

Status CheckInput(const Operator& op, ir::Type type, const std::vector<int64_t>& shape) {
  if (type == op.type() && shape == op.shape()) return OkStatus();
  return InvalidArgument("input {} is {}{}, expected {}{}", op.name(), TypeName(type),
                         ir::ShapeText(shape), TypeName(op.type()), ir::ShapeText(op.shape()));
}

Status CheckNumber(const Dag& dag, size_t inputs) {
  size_t expected = 0;
  for (const OpNode& node : dag.nodes()) expected += node.op->is_placeholder() ? 1 : 0;
  if (inputs == expected) return OkStatus();
  return InvalidArgument("got {} inputs, expected {}", inputs, expected);
}

// Indexed by [operator][output]; empty for placeholders. `inputs` has one entry for each
// placeholder.
using Tensors = std::vector<std::vector<NDArray>>;
StatusOr<Tensors> Compute(const Dag& dag, std::span<const Readable> inputs,
                          const EvaluateOptions& options) {
  Tensors tensors(static_cast<size_t>(dag.size()));
  std::vector<Readable> placeholders(tensors.size());
  size_t next_input = 0;
  for (int i = 0; i < dag.size(); ++i) {
    const OpNode& node = dag.node(i);
    if (node.op->is_placeholder()) {
      placeholders[static_cast<size_t>(i)] = inputs[next_input++];
      continue;
    }
    std::vector<Readable> read;
    for (const Tensor in : node.inputs) {
      const auto op = static_cast<size_t>(in.op);
      const bool is_input = dag.op(in.op).is_placeholder();
      read.push_back(is_input ? placeholders[op]
                              : Readable{&tensors[op][static_cast<size_t>(in.output)], nullptr});
    }
    KILN_ASSIGN_OR_RETURN(tensors[static_cast<size_t>(i)],
                          OperatorRun(*node.op, std::move(read), options).Run());
  }
  return tensors;
}

std::vector<NDArray> TakeOutputs(const Dag& dag, Tensors tensors) {
  std::vector<NDArray> outputs;
  for (const Tensor t : dag.arguments()) {
    if (dag.op(t.op).is_placeholder()) continue;
    outputs.push_back(std::move(tensors[static_cast<size_t>(t.op)][static_cast<size_t>(t.output)]));
  }
  return outputs;
}

StatusOr<std::vector<Readable>> ReadableInputs(const Dag& dag, std::span<const NDArray> inputs) {
  KILN_RETURN_IF_ERROR(CheckNumber(dag, inputs.size()));
  std::vector<Readable> readable;
  for (const OpNode& node : dag.nodes()) {
    if (!node.op->is_placeholder()) continue;
    const NDArray& array = inputs[readable.size()];
    KILN_RETURN_IF_ERROR(CheckInput(*node.op, array.type(), array.shape()));
    readable.push_back({&array, nullptr});
  }
  return readable;
}

}  // namespace

StatusOr<std::vector<std::vector<NDArray>>> EvaluateAll(const Dag& dag,
                                                        std::span<const NDArray> inputs,
                                                        const EvaluateOptions& options) {
  KILN_ASSIGN_OR_RETURN(const std::vector<Readable> readable, ReadableInputs(dag, inputs));
  KILN_ASSIGN_OR_RETURN(Tensors tensors, Compute(dag, readable, options));
  size_t next_input = 0;
  for (int i = 0; i < dag.size(); ++i) {
    if (!dag.op(i).is_placeholder()) continue;
    tensors[static_cast<size_t>(i)].push_back(inputs[next_input++]);
  }
  return tensors;
}

StatusOr<std::vector<NDArray>> Evaluate(const Dag& dag, std::span<const NDArray> inputs,
                                        const EvaluateOptions& options) {
  KILN_ASSIGN_OR_RETURN(const std::vector<Readable> readable, ReadableInputs(dag, inputs));
  KILN_ASSIGN_OR_RETURN(Tensors tensors, Compute(dag, readable, options));
  return TakeOutputs(dag, std::move(tensors));
}

StatusOr<std::vector<NDArray>> EvaluateOn(const Dag& dag,
                                          std::span<const ElementSource* const> inputs,
                                          const EvaluateOptions& options) {
  KILN_RETURN_IF_ERROR(CheckNumber(dag, inputs.size()));
  std::vector<Readable> readable;
  for (const OpNode& node : dag.nodes()) {
    if (!node.op->is_placeholder()) continue;
    const ElementSource& source = *inputs[readable.size()];
    KILN_RETURN_IF_ERROR(CheckInput(*node.op, source.type(), source.shape()));
    readable.push_back({nullptr, &source});
  }
  KILN_ASSIGN_OR_RETURN(Tensors tensors, Compute(dag, readable, options));
  return TakeOutputs(dag, std::move(tensors));
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
