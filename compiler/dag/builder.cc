#include "compiler/dag/builder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "compiler/dag/check_body.h"
#include "compiler/ir/infix.h"
#include "compiler/ir/scalar.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {
using ir::Expr;
using ir::Op;
}  // namespace

DagBuilder::DagBuilder() : pool_(std::make_shared<ir::ExprPool>()) {}

void DagBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Value DagBuilder::Constant(double value, ir::Type type) {
  if (type.is_float()) return Value(this, pool_->Float(value, type));
  // A uint64 may be larger than any int64.
  if (type == ir::kUInt64) {
    const ir::Value cast = ir::CastValue(ir::Value::Float(value), ir::kFloat64, type);
    return Value(this, pool_->Int(cast.i, type));
  }
  return Value(this, pool_->Int(static_cast<int64_t>(value), type));
}

Expr DagBuilder::Resolve(const Value& v, ir::Type type) {
  if (!v.is_literal()) {
    KILN_CHECK(v.builder() == this, "a value of another builder");
    return v.expr();
  }
  if (type.is_float()) return pool_->Float(v.float_, type);
  if (v.is_int_) return pool_->Int(v.int_, type);
  Fail(InvalidArgument("the literal {} meets a value of type {}", v.float_, TypeName(type)));
  return nullptr;
}

bool DagBuilder::Unify(const Value& a, const Value& b, Expr* x, Expr* y) {
  if ((!a.is_literal() && a.expr() == nullptr) || (!b.is_literal() && b.expr() == nullptr))
    return false;
  const ir::Type type = (a.is_literal() ? b : a).expr()->type;
  *x = Resolve(a, type);
  *y = Resolve(b, type);
  if (*x == nullptr || *y == nullptr) return false;
  if ((*x)->type == (*y)->type) return true;
  Fail(InvalidArgument("operands of types {} and {}: cast one of them", TypeName((*x)->type),
                       TypeName((*y)->type)));
  return false;
}

Value Binary(Op op, const Value& a, const Value& b) {
  DagBuilder* builder = a.is_literal() ? b.builder() : a.builder();
  KILN_CHECK(builder != nullptr, "{} of two literals", ir::BinarySymbol(op));
  Expr x, y;
  if (!builder->Unify(a, b, &x, &y)) return Value(builder, nullptr);
  const ir::Type type = x->type;
  const bool logic = op == Op::kAnd || op == Op::kOr;
  const bool equality = op == Op::kEq || op == Op::kNe;
  const bool bits_of_bools = ir::IsBits(op) && type.is_bool() && op <= Op::kBitXor;
  if ((logic != type.is_bool() && !equality && !bits_of_bools) ||
      (ir::IsBits(op) && type.is_float())) {
    return builder->FailValue(
        InvalidArgument("{} of values of type {}", ir::BinarySymbol(op), TypeName(type)));
  }
  if ((op == Op::kDiv && !type.is_float()) ||
      ((op == Op::kFloorDiv || op == Op::kFloorMod) && type.is_float())) {
    return builder->FailValue(
        InvalidArgument("{} of values of type {}: / is for floats, // and % are for integers",
                        ir::BinarySymbol(op), TypeName(type)));
  }
  return Value(builder, builder->pool_->Binary(op, x, y));
}

Value operator!(const Value& a) {
  KILN_CHECK(!a.is_literal());
  if (a.expr() == nullptr) return a;
  if (!a.expr()->type.is_bool()) {
    return a.builder()->FailValue(
        InvalidArgument("not of a value of type {}", TypeName(a.expr()->type)));
  }
  return Value(a.builder(), a.builder()->pool_->Not(a.expr()));
}

Value operator-(const Value& a) {
  if (a.is_literal()) return a.is_int_ ? Value(-a.int_) : Value(-a.float_);
  return Binary(Op::kSub, 0, a);
}

Value ChooseValue(Op op, const Value& condition, const Value& a, const Value& b) {
  KILN_CHECK(!condition.is_literal() && !(a.is_literal() && b.is_literal()),
             "a choice between two literals");
  DagBuilder* builder = condition.builder();
  Expr x, y;
  if (condition.expr() == nullptr || !builder->Unify(a, b, &x, &y)) return Value(builder, nullptr);
  if (!condition.expr()->type.is_bool()) {
    return builder->FailValue(InvalidArgument("the condition has type {}, expected bool",
                                              TypeName(condition.expr()->type)));
  }
  Expr c = condition.expr();
  return Value(builder,
               op == Op::kIf ? builder->pool_->If(c, x, y) : builder->pool_->Select(c, x, y));
}

Value Select(const Value& condition, const Value& a, const Value& b) {
  return ChooseValue(Op::kSelect, condition, a, b);
}
Value If(const Value& condition, const Value& a, const Value& b) {
  return ChooseValue(Op::kIf, condition, a, b);
}

Value Cast(ir::Type type, const Value& a) {
  KILN_CHECK(!a.is_literal());
  if (a.expr() == nullptr) return a;
  return Value(a.builder(), a.builder()->pool_->Cast(type, a.expr()));
}

Value Reinterpret(ir::Type type, const Value& a) {
  KILN_CHECK(!a.is_literal());
  if (a.expr() == nullptr) return a;
  const ir::Type from = a.expr()->type;
  if (from.bits != type.bits || from.is_bool()) {
    return a.builder()->FailValue(
        InvalidArgument("the bits of a value of type {} as {}", TypeName(from), TypeName(type)));
  }
  return Value(a.builder(), a.builder()->pool_->Reinterpret(type, a.expr()));
}

Value Call(ir::Intrinsic intrinsic, const Value& a) {
  KILN_CHECK(!a.is_literal());
  if (a.expr() == nullptr) return a;
  if (!a.expr()->type.is_float() && intrinsic != ir::Intrinsic::kAbs) {
    return a.builder()->FailValue(InvalidArgument("{} of a value of type {}, expected a float",
                                                  IntrinsicName(intrinsic),
                                                  TypeName(a.expr()->type)));
  }
  const Expr args[] = {a.expr()};
  return Value(a.builder(), a.builder()->pool_->Call(intrinsic, args));
}

Value Pow(const Value& a, const Value& b) {
  DagBuilder* builder = a.is_literal() ? b.builder() : a.builder();
  KILN_CHECK(builder != nullptr);
  Expr args[2];
  if (!builder->Unify(a, b, &args[0], &args[1])) return Value(builder, nullptr);
  if (!args[0]->type.is_float()) {
    return builder->FailValue(
        InvalidArgument("pow of values of type {}, expected floats", TypeName(args[0]->type)));
  }
  return Value(builder, builder->pool_->Call(ir::Intrinsic::kPow, args));
}

const std::string& TensorRef::name() const { return builder_->tensors_[id_].name; }
ir::Type TensorRef::type() const { return builder_->tensors_[id_].type; }
const std::vector<int64_t>& TensorRef::shape() const { return builder_->tensors_[id_].shape; }

TensorRef TensorRef::output(int k) const {
  KILN_CHECK(k >= 0 && k < builder_->tensors_[id_].num_outputs);
  return TensorRef(builder_, id_ - builder_->tensors_[id_].tensor.output + k);
}

Value TensorRef::At(std::span<const Value> indices) const {
  KILN_CHECK(builder_ != nullptr, "an empty TensorRef");
  if (indices.size() != shape().size()) {
    return builder_->FailValue(InvalidArgument("{} has {} dimensions, got {} indices", name(),
                                               shape().size(), indices.size()));
  }
  std::vector<Expr> exprs;
  for (const Value& index : indices) {
    Expr e = builder_->Resolve(index, ir::kIndex);
    if (e == nullptr) return Value(builder_, nullptr);
    exprs.push_back(e);
  }
  return Value(builder_, builder_->pool_->Load(id_, exprs, type()));
}

std::vector<Value> DagBuilder::MakeVars(size_t count) {
  std::vector<Value> vars;
  for (size_t i = 0; i < count; ++i) vars.emplace_back(this, pool_->Var(static_cast<int32_t>(i)));
  return vars;
}

TensorRef DagBuilder::AddTensors(const std::string& name, std::vector<ir::Type> types,
                                 const std::vector<int64_t>& shape, int op) {
  const int id = static_cast<int>(tensors_.size());
  for (size_t k = 0; k < types.size(); ++k) {
    tensors_.push_back(
        {name, types[k], shape, {op, static_cast<int32_t>(k)}, static_cast<int>(types.size())});
  }
  return TensorRef(this, id);
}

TensorRef DagBuilder::Placeholder(std::string name, ir::Type type, std::vector<int64_t> shape) {
  const int op = static_cast<int>(nodes_.size());
  auto made = Operator::Placeholder(name, type, shape);
  if (made.ok()) {
    nodes_.push_back({*std::move(made), {}});
  } else {
    Fail(made.status());
  }
  return AddTensors(name, {type}, shape, op);
}

TensorRef DagBuilder::Compute(std::string name, std::vector<Axis> axes, const Body& body,
                              Attrs attrs) {
  return Reduce(std::move(name), std::move(axes), {}, Combiner::kNone, body, std::move(attrs));
}

TensorRef DagBuilder::Reduce(std::string name, std::vector<Axis> axes,
                             std::vector<Axis> reduce_axes, Combiner combiner, const Body& body,
                             Attrs attrs) {
  const Value value = body(MakeVars(axes.size() + reduce_axes.size()));
  Expr e = Resolve(value, ir::kFloat32);
  return AddOperator(std::move(name), std::move(axes), std::move(reduce_axes), combiner, {e},
                     std::move(attrs));
}

TensorRef DagBuilder::Tuple(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                            Combiner combiner, const TupleBody& body, Attrs attrs) {
  std::vector<Expr> bodies;
  for (const Value& value : body(MakeVars(axes.size() + reduce_axes.size())))
    bodies.push_back(Resolve(value, ir::kFloat32));
  return AddOperator(std::move(name), std::move(axes), std::move(reduce_axes), combiner,
                     std::move(bodies), std::move(attrs));
}

std::vector<bool> DagBuilder::ElementwiseFrom(std::span<const TensorRef> outputs) const {
  std::vector<bool> is_made(nodes_.size(), false), found(nodes_.size(), false);
  for (const TensorRef& output : outputs)
    is_made[static_cast<size_t>(tensors_[output.id_].tensor.op)] = true;
  // An operator reads only earlier ones.
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const Tensor& input : nodes_[i].inputs)
      is_made[i] = is_made[i] || is_made[static_cast<size_t>(input.op)];
    found[i] = is_made[i] && !nodes_[i].op->is_placeholder() && !nodes_[i].op->is_reduction();
  }
  return found;
}

Expr DagBuilder::WrittenOut(Tensor tensor, std::span<const Expr> indices,
                            const std::vector<bool>& inlined) {
  const OpNode& node = nodes_[static_cast<size_t>(tensor.op)];
  if (!inlined[static_cast<size_t>(tensor.op)]) {
    const auto id = std::ranges::find(tensors_, tensor, &NamedTensor::tensor) - tensors_.begin();
    return pool_->Load(static_cast<int32_t>(id), indices, node.op->type(tensor.output));
  }
  std::unordered_map<Expr, Expr> written;
  const Expr body = node.op->body(tensor.output);
  ir::Visit(body, [&](Expr e) {
    std::vector<Expr> args;
    for (const Expr arg : e->args()) args.push_back(written.at(arg));
    if (e->op == Op::kVar) {
      written[e] = indices[static_cast<size_t>(e->id)];
    } else if (e->op == Op::kLoad) {
      written[e] = WrittenOut(node.inputs[static_cast<size_t>(e->id)], args, inlined);
    } else {
      written[e] = pool_->WithArgs(e, args);
    }
  });
  return written.at(body);
}

TensorRef DagBuilder::Join(std::span<const TensorRef> outputs) {
  KILN_CHECK(!outputs.empty());
  const TensorRef last = outputs.back();
  for (const TensorRef& output : outputs) {
    if (output.shape() == last.shape()) continue;
    Fail(InvalidArgument("{} has shape [{}], {} has [{}]: they can't be outputs of one operator",
                         output.name(), fmt::join(output.shape(), ", "), last.name(),
                         fmt::join(last.shape(), ", ")));
  }
  std::vector<Expr> bodies(outputs.size(), nullptr);
  std::vector<Axis> axes;
  for (int64_t extent : last.shape()) axes.push_back({"", extent});
  if (status_.ok()) {
    axes = OperatorOf(last)->axes();
    const std::vector<bool> inlined = ElementwiseFrom(outputs);
    std::vector<Expr> at;
    for (const Value& var : MakeVars(axes.size())) at.push_back(var.expr());
    for (size_t k = 0; k < outputs.size(); ++k)
      bodies[k] = WrittenOut(tensors_[static_cast<size_t>(outputs[k].id_)].tensor, at, inlined);
  }
  return AddOperator(last.name(), std::move(axes), {}, Combiner::kNone, std::move(bodies), {});
}

TensorRef DagBuilder::ReduceArg(std::string name, std::vector<Axis> axes,
                                std::vector<Axis> reduce_axes, Combiner combiner,
                                const PairBody& body, Attrs attrs) {
  const auto [index, value] = body(MakeVars(axes.size() + reduce_axes.size()));
  std::vector<Expr> bodies = {Resolve(index, ir::kInt64), Resolve(value, ir::kFloat32)};
  return AddOperator(std::move(name), std::move(axes), std::move(reduce_axes), combiner,
                     std::move(bodies), std::move(attrs));
}

TensorRef DagBuilder::AddOperator(std::string name, std::vector<Axis> axes,
                                  std::vector<Axis> reduce_axes, Combiner combiner,
                                  std::vector<Expr> bodies, Attrs attrs) {
  std::vector<ir::Type> types;
  for (Expr e : bodies) types.push_back(e == nullptr ? ir::kFloat32 : e->type);
  std::vector<int64_t> shape;
  for (const Axis& axis : axes) shape.push_back(axis.extent);
  const TensorRef result = AddTensors(name, types, shape, static_cast<int>(nodes_.size()));
  if (!status_.ok()) {
    return result;
  }

  // Slots are numbered in the order of their first occurrence.
  std::vector<int32_t> slot_of(tensors_.size(), -1);
  std::vector<int32_t> ids;
  std::vector<ir::Type> input_types;
  std::vector<std::vector<int64_t>> input_shapes;
  std::vector<Tensor> inputs;
  for (Expr body : bodies) {
    ir::Visit(body, [&](Expr e) {
      if (e->op != Op::kLoad || slot_of[e->id] >= 0) return;
      slot_of[e->id] = static_cast<int32_t>(ids.size());
      ids.push_back(e->id);
      input_types.push_back(tensors_[e->id].type);
      input_shapes.push_back(tensors_[e->id].shape);
      inputs.push_back(tensors_[e->id].tensor);
    });
  }
  const ir::Substitution slots{.slots = std::move(slot_of)};
  for (Expr& body : bodies) body = pool_->Substitute(body, slots);
  auto made =
      Operator::Compute(name, std::move(axes), std::move(reduce_axes), combiner, std::move(bodies),
                        pool_, input_types, input_shapes, std::move(attrs));
  if (!made.ok()) {
    Fail(made.status());
    return result;
  }
  nodes_.push_back({*std::move(made), std::move(inputs)});
  return result;
}

StatusOr<DagPtr> DagBuilder::Build() {
  if (!status_.ok()) return status_;
  return Dag::MakeOrdered(nodes_);
}

StatusOr<DagPtr> DagBuilder::Build(std::span<const TensorRef> outputs) {
  if (!status_.ok()) return status_;
  // An operator reads only earlier ones.
  std::vector<bool> wanted(nodes_.size(), false), read(nodes_.size(), false);
  for (const TensorRef& output : outputs)
    wanted[static_cast<size_t>(tensors_[output.id_].tensor.op)] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    for (const Tensor& input : nodes_[i].inputs) {
      wanted[static_cast<size_t>(input.op)] = true;
      read[static_cast<size_t>(input.op)] = true;
    }
  }
  for (const TensorRef& output : outputs) {
    const OperatorPtr& op = OperatorOf(output);
    if (op->is_placeholder())
      return InvalidArgument("{} is an input, expected an output that is computed", op->name());
    if (read[static_cast<size_t>(tensors_[output.id_].tensor.op)])
      return InvalidArgument("another output is made of {}: it can't be an output", op->name());
  }
  std::vector<OpNode> kept;
  std::vector<int> position(nodes_.size(), -1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!wanted[i]) continue;
    position[i] = static_cast<int>(kept.size());
    kept.push_back(nodes_[i]);
    for (Tensor& input : kept.back().inputs) input.op = position[static_cast<size_t>(input.op)];
  }
  return Dag::MakeOrdered(std::move(kept));
}

const OperatorPtr& DagBuilder::OperatorOf(const TensorRef& x) const {
  return nodes_[static_cast<size_t>(tensors_[x.id_].tensor.op)].op;
}

int DagBuilder::OutputOf(const TensorRef& x) const { return tensors_[x.id_].tensor.output; }

bool DagBuilder::IsRead(const TensorRef& x) const {
  const int op = tensors_[x.id_].tensor.op;
  return std::ranges::any_of(nodes_, [&](const OpNode& node) {
    return std::ranges::any_of(node.inputs, [&](const Tensor& input) { return input.op == op; });
  });
}

}  // namespace kiln::dag
