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
// Errors don't stop the writing: the first one is kept and comes out of Build(), later ones are
// dropped. Literals take the type of the other operand. Operators come out in the order of
// Dag::Make (dag.h), whatever order they were written in; operators that are not read are outputs.
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

  ir::Expr expr() const { return expr_; }           // null for a literal, and after an error
  DagBuilder* builder() const { return builder_; }  // null for a literal
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

Value Binary(ir::Op op, const Value& a, const Value& b);  // at least one not a literal
inline Value operator+(const Value& a, const Value& b) { return Binary(ir::Op::kAdd, a, b); }
inline Value operator-(const Value& a, const Value& b) { return Binary(ir::Op::kSub, a, b); }
inline Value operator*(const Value& a, const Value& b) { return Binary(ir::Op::kMul, a, b); }
inline Value operator/(const Value& a, const Value& b) {
  return Binary(ir::Op::kDiv, a, b);
}  // floats
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
Value operator-(const Value& a);  // 0 - a

Value Select(const Value& condition, const Value& a, const Value& b);  // evaluates both
Value If(const Value& condition, const Value& a, const Value& b);  // evaluates one: guards loads
Value Cast(ir::Type type, const Value& a);
Value Reinterpret(ir::Type type, const Value& a);  // the same bits
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

// A tensor of the builder. Copyable. After an error in its operator it still has the shape asked
// for.
class TensorRef {
 public:
  TensorRef() = default;

  template <typename... Index>
  Value operator()(const Index&... index) const {
    const Value indices[] = {Value(index)..., Value(0)};  // one more: no array is empty
    return At({indices, sizeof...(Index)});
  }
  Value At(std::span<const Value> indices) const;

  const std::string& name() const;
  ir::Type type() const;
  const std::vector<int64_t>& shape() const;
  int rank() const { return static_cast<int>(shape().size()); }
  // Output k of the same operator (argmax: 0 index, 1 value).
  TensorRef output(int k) const;

 private:
  friend class DagBuilder;
  TensorRef(DagBuilder* builder, int id) : builder_(builder), id_(id) {}
  DagBuilder* builder_ = nullptr;
  int id_ = -1;  // index into DagBuilder::tensors_
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
  // The variables that `body` gets are the axes, then the reduce axes.
  TensorRef Reduce(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                   Combiner combiner, const Body& body, Attrs attrs = {});
  // argmax and argmin: `body` gives (index, value). The result is the index; output(1) is the
  // value.
  TensorRef ReduceArg(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                      Combiner combiner, const PairBody& body, Attrs attrs = {});

  // An operator with several outputs: `body` gives a value for each, output(0) is the result. With
  // reduce axes each is reduced by itself; kNone without.
  TensorRef Tuple(std::string name, std::vector<Axis> axes, std::vector<Axis> reduce_axes,
                  Combiner combiner, const TupleBody& body, Attrs attrs = {});

  // One operator in place of these, of which some may be made of others: output(k) of the result is
  // outputs[k]. They and what lies between them are written into its bodies, so that one loop nest
  // computes a value and functions of it; reductions stay operators, which it reads. Its name and
  // axes are those of the last one. Refuses outputs of several shapes. Cost: linear in the bodies
  // that it gets.
  TensorRef Join(std::span<const TensorRef> outputs);

  Value Constant(double value, ir::Type type);

  // Refuses with the first error.
  StatusOr<DagPtr> Build();
  // What these are made of, and nothing else. Refuses an output that another one is made of, since
  // a DAG's outputs are what nothing in it reads, and one that is a placeholder.
  StatusOr<DagPtr> Build(std::span<const TensorRef> outputs);

  // The operator behind a tensor, which stands in the DAG that is built, and which of its outputs
  // the tensor is. Only while there is no error.
  const OperatorPtr& OperatorOf(const TensorRef& x) const;
  int OutputOf(const TensorRef& x) const;
  // Does an operator written so far read this one, or another output of the same operator?
  bool IsRead(const TensorRef& x) const;

  // Notes an error of the caller's own; the first one is kept.
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

  // The expression of a value, a literal as `type`; null after an error.
  ir::Expr Resolve(const Value& v, ir::Type type);
  // Brings both to one type; false after an error.
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
  // By operator: these, and what is made of them, as far as it is no reduction.
  std::vector<bool> ElementwiseFrom(std::span<const TensorRef> outputs) const;
  // A tensor's value at these indices, with the bodies of `inlined` operators written out.
  ir::Expr WrittenOut(Tensor tensor, std::span<const ir::Expr> indices,
                      const std::vector<bool>& inlined);

  std::shared_ptr<ir::ExprPool> pool_;
  std::vector<NamedTensor> tensors_;  // loads in bodies being written name these
  std::vector<OpNode> nodes_;
  Status status_;
};

}  // namespace kiln::dag
