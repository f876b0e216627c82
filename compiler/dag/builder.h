// A DAG written in C++:
//
//   DagBuilder b;
//   TensorRef A = b.Placeholder("A", ir::kFloat32, {m, k});
//   TensorRef B = b.Placeholder("B", ir::kFloat32, {k, n});
//   TensorRef C = b.Reduce("C", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::kSum,
//                          [&](Vars v) { return A(v[0], v[2]) * B(v[2], v[1]); });
//   b.Compute("D", {{"i", m}, {"j", n}}, [&](Vars v) { return Max(C(v[0], v[1]), 0); });
//   StatusOr<DagPtr> dag = b.Build();
//
// Errors do not stop the writing: Build() returns the first one, and later ones are dropped.
// Literals take the type of the other operand. Whatever the order in which operators are written,
// the DAG has them in the order of Dag::Make (dag.h). Operators that are not read are outputs.
//
// Values and TensorRefs refer to their builder and must not outlive it. One thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

class DagBuilder;

// An expression being written, or a literal whose type is still open.
class Value {
 public:
  template <std::integral T>
  Value(T literal)
      : is_int_(true), int_(literal), float_(static_cast<double>(literal)) {}  // NOLINT
  Value(double literal) : float_(literal) {}                                   // NOLINT
  Value(DagBuilder* builder, ir::Expr expr) : builder_(builder), expr_(expr) {}

  // Null for a literal, and after an error.
  ir::Expr expr() const { return expr_; }
  // Null for a literal.
  DagBuilder* builder() const { return builder_; }
  bool is_literal() const { return builder_ == nullptr; }

 private:
  friend class DagBuilder;
  friend Value operator-(const Value& a);
  DagBuilder* builder_ = nullptr;
  ir::Expr expr_ = nullptr;
  bool is_int_ = false;
  int64_t int_ = 0;
  double float_ = 0;
};

// The variables of an operator: spatial axes, then reduce axes.
using Vars = std::span<const Value>;

// At least one operand must not be a literal.
Value Binary(ir::Op op, const Value& a, const Value& b);
inline Value operator+(const Value& a, const Value& b) { return Binary(ir::Op::kAdd, a, b); }
inline Value operator-(const Value& a, const Value& b) { return Binary(ir::Op::kSub, a, b); }
inline Value operator*(const Value& a, const Value& b) { return Binary(ir::Op::kMul, a, b); }
inline Value operator/(const Value& a, const Value& b) {
  return Binary(ir::Op::kDiv, a, b);
  // Operator / is for floats.
}
inline Value operator%(const Value& a, const Value& b) { return Binary(ir::Op::kFloorMod, a, b); }
inline Value FloorDiv(const Value& a, const Value& b) { return Binary(ir::Op::kFloorDiv, a, b); }
inline Value Min(const Value& a, const Value& b) { return Binary(ir::Op::kMin, a, b); }
inline Value Max(const Value& a, const Value& b) { return Binary(ir::Op::kMax, a, b); }
inline Value operator<(const Value& a, const Value& b) { return Binary(ir::Op::kLt, a, b); }
inline Value operator<=(const Value& a, const Value& b) { return Binary(ir::Op::kLe, a, b); }
inline Value operator>(const Value& a, const Value& b) { return Binary(ir::Op::kGt, a, b); }
inline Value operator>=(const Value& a, const Value& b) { return Binary(ir::Op::kGe, a, b); }
inline Value operator==(const Value& a, const Value& b) { return Binary(ir::Op::kEq, a, b); }
inline Value operator!=(const Value& a, const Value& b) { return Binary(ir::Op::kNe, a, b); }
inline Value operator&&(const Value& a, const Value& b) { return Binary(ir::Op::kAnd, a, b); }
inline Value operator||(const Value& a, const Value& b) { return Binary(ir::Op::kOr, a, b); }
Value operator!(const Value& a);
// Computes 0 - a.
Value operator-(const Value& a);

// Evaluates both values.
Value Select(const Value& condition, const Value& a, const Value& b);
// Evaluates only the chosen value, so the condition guards the loads in it.
Value If(const Value& condition, const Value& a, const Value& b);
Value Cast(ir::Type type, const Value& a);
// Returns the value of `type` that has the same bits as `a`.
Value Reinterpret(ir::Type type, const Value& a);
Value Call(ir::Intrinsic intrinsic, const Value& a);
Value Pow(const Value& a, const Value& b);
inline Value Exp(const Value& a) { return Call(ir::Intrinsic::kExp, a); }
inline Value Log(const Value& a) { return Call(ir::Intrinsic::kLog, a); }
inline Value Sqrt(const Value& a) { return Call(ir::Intrinsic::kSqrt, a); }
inline Value Rsqrt(const Value& a) { return Call(ir::Intrinsic::kRsqrt, a); }
inline Value Tanh(const Value& a) { return Call(ir::Intrinsic::kTanh, a); }
inline Value Sigmoid(const Value& a) { return Call(ir::Intrinsic::kSigmoid, a); }
inline Value Erf(const Value& a) { return Call(ir::Intrinsic::kErf, a); }
inline Value Abs(const Value& a) { return Call(ir::Intrinsic::kAbs, a); }

// A tensor of the builder. Copyable. After an error in its operator the tensor still has the shape
// that was asked for.
class TensorRef {
 public:
  TensorRef() = default;

  template <typename... Index>
  Value operator()(const Index&... index) const {
    // An additional element, because an array cannot be empty.
    const Value indices[] = {Value(index)..., Value(0)};
    return At({indices, sizeof...(Index)});
  }
  Value At(std::span<const Value> indices) const;

  const std::string& name() const;
  ir::Type type() const;
  const std::vector<int64_t>& shape() const;
  int rank() const { return static_cast<int>(shape().size()); }
  // Returns output k of the same operator (argmax: 0 index, 1 value).
  TensorRef output(int k) const;

 private:
  friend class DagBuilder;
  TensorRef(DagBuilder* builder, int id) : builder_(builder), id_(id) {}
  DagBuilder* builder_ = nullptr;
  // Index into DagBuilder::tensors_.
  int id_ = -1;
};

class DagBuilder {
 public:
  using Body = std::function<Value(Vars)>;
  using PairBody = std::function<std::pair<Value, Value>(Vars)>;
  using TupleBody = std::function<std::vector<Value>(Vars)>;

  DagBuilder();
  DagBuilder(const DagBuilder&) = delete;
  DagBuilder& operator=(const DagBuilder&) = delete;

  TensorRef Placeholder(std::string name, ir::Type type, std::vector<int64_t> shape);
  TensorRef Compute(std::string name, std::vector<Axis> axes, const Body& body, Attrs attrs = {});
  // `body` gets the axes as variables, then the reduce axes.
  TensorRef Reduce(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                   Combiner combiner, const Body& body, Attrs attrs = {});
  // Makes argmax and argmin: `body` returns (index, value). The result is the index; output(1) is
  // the value.
  TensorRef ReduceArg(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                      Combiner combiner, const PairBody& body, Attrs attrs = {});

  // Makes an operator with several outputs: `body` returns a value for each, and output(0) is the
  // result. With reduce axes each output is reduced by itself. Without reduce axes the combiner is
  // kNone.
  TensorRef Tuple(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                  Combiner combiner, const TupleBody& body, Attrs attrs = {});

  // Replaces these outputs, some of which may be made of others, by one operator: output(k) of the
  // result is outputs[k]. The bodies of the outputs and of the operators between them are written
  // into its bodies, so that one loop nest computes a value and functions of it. Reductions stay
  // operators, which the new one reads. The name and the axes are those of the last output. Refuses
  // outputs of several shapes. Cost: linear in the bodies of the new operator.
  TensorRef Join(std::span<const TensorRef> outputs);

  Value Constant(double value, ir::Type type);

  // Returns the first error, if there was one.
  StatusOr<DagPtr> Build();
  // Builds only these outputs and the operators that they are made of. Refuses an output that
  // another one is made of, since a DAG's outputs are the operators that nothing in it reads. Also
  // refuses a placeholder.
  StatusOr<DagPtr> Build(std::span<const TensorRef> outputs);

  // Return the operator of a tensor, which the built DAG will contain, and the number of its output
  // that the tensor is. Only valid while there is no error.
  const OperatorPtr& OperatorOf(const TensorRef& x) const;
  int OutputOf(const TensorRef& x) const;
  // Returns true if an operator written so far reads this tensor or another output of the same
  // operator.
  bool IsRead(const TensorRef& x) const;

  // Records an error of the caller. The first error is kept.
  void Fail(Status status);
  const Status& status() const { return status_; }

 private:
  friend class TensorRef;
  friend Value Binary(ir::Op op, const Value& a, const Value& b);
  friend Value operator!(const Value& a);
  friend Value operator-(const Value& a);
  friend Value ChooseValue(ir::Op op, const Value& condition, const Value& a, const Value& b);
  friend Value Cast(ir::Type type, const Value& a);
  friend Value Reinterpret(ir::Type type, const Value& a);
  friend Value Call(ir::Intrinsic intrinsic, const Value& a);
  friend Value Pow(const Value& a, const Value& b);

  struct NamedTensor {
    std::string name;
    ir::Type type;
    std::vector<int64_t> shape;
    Tensor tensor;
    int num_outputs;
  };

  // Returns the expression of a value, and a literal as `type`. Null after an error.
  ir::Expr Resolve(const Value& v, ir::Type type);
  // Brings both to one type. Returns false after an error.
  bool Unify(const Value& a, const Value& b, ir::Expr* x, ir::Expr* y);
  Value FailValue(Status status) {
    Fail(std::move(status));
    return Value(this, nullptr);
  }
  TensorRef AddOperator(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                        Combiner combiner, std::vector<ir::Expr> bodies, Attrs attrs);
  TensorRef AddTensors(const std::string& name, std::vector<ir::Type> types,
                       const std::vector<int64_t>& shape, int op);
  std::vector<Value> MakeVars(size_t count);
  // Returns for each operator whether it is one of the outputs, or is made of them without a
  // reduction.
  std::vector<bool> ElementwiseFrom(std::span<const TensorRef> outputs) const;
  // Returns a tensor's value at these indices, with the bodies of `inlined` operators written out.
  ir::Expr WrittenOut(Tensor tensor, std::span<const ir::Expr> indices,
                      const std::vector<bool>& inlined);

  std::shared_ptr<ir::ExprPool> pool_;
  // Loads in bodies that are being written refer to these tensors.
  std::vector<NamedTensor> tensors_;
  std::vector<OpNode> nodes_;
  Status status_;
};

}  // namespace kiln::dag
