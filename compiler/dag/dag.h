// The compute DAG: placeholders and compute operators with index expressions and static shapes.
// Immutable once made; freely shared between threads.
//
// A tensor has at most kMaxElements elements, and so has the reduction domain of an operator, so
// that every linear offset and every product of loop extents that Kiln forms is far from overflow.
//
// An operator's body is closed over local numbers, so that it can be shared and moved between DAGs
// unchanged:
//   variable i   is axis i: spatial axes 0..n-1, then reduce axes n..n+m-1
//   load slot s  is inputs[s]
// A step that changes stages (cache read, cache write, rfactor) makes new operators that reuse
// these bodies.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/body_size.h"
#include "compiler/dag/known_edits.h"
#include "compiler/dag/reduction.h"
#include "compiler/ir/expr.h"

namespace kiln::dag {

inline constexpr int64_t kMaxElements = int64_t{1} << 40;

enum class OpKind : uint8_t { kPlaceholder, kCompute };

struct Axis {
  // Unique within the operator.
  std::string name;
  // Positive.
  int64_t extent;
};

// Attributes of an operator that the search understands. All but hash_body and packed_placeholders
// are TVM's (v0.14: auto_scheduler_always_unroll_inner and so on).
struct Attrs {
  std::vector<std::string> simplify_const_tensor_indices = {};
  std::vector<std::string> always_unroll_inner = {};
  std::vector<std::string> no_split_at_inner = {};
  // Names of inputs.
  std::vector<std::string> layout_free_placeholders = {};
  // Kiln's own attribute: names of inputs that programs take packed (packed_inputs.h).
  std::vector<std::string> packed_placeholders = {};
  std::string task_scheduler_tag = {};
  // Overrides the estimate if >= 0.
  double flop = -1;
  // Replaces the body in the hash text (workload_key.h), for keys of TVM that spell out a part that
  // the IR folds away.
  std::string hash_body = {};
  // The operator is a constant matrix. Features read it as 1.0.
  bool const_matrix = false;
  bool operator==(const Attrs&) const = default;
};

class Operator;
using OperatorPtr = std::shared_ptr<const Operator>;

// One output of an operator.
struct Tensor {
  // Index into Dag::ops().
  int32_t op = -1;
  int32_t output = 0;
  bool operator==(const Tensor&) const = default;
};

// One read of an input.
struct Access {
  int32_t slot;
  // The arguments of the load are the index expressions.
  ir::Expr load;
};

// Properties of the bodies, computed once when the operator is made.
struct BodyProperties {
  // Distinct loads in order of first occurrence, loads inside of indices first.
  std::vector<Access> reads;
  // A body has kSelect or kIf.
  bool has_branch = false;
  // A body has exp.
  bool has_expensive = false;
  // Counted as body_properties.h says. Negative if unknown.
  double flops_per_element = 0;
  BodySize size;
};

class Operator {
 public:
  // Refuses non-positive extents and more than kMaxElements elements. Rank 0 is a scalar.
  static StatusOr<OperatorPtr> Placeholder(std::string name, ir::Type type,
                                           std::vector<int64_t> shape);
  // `bodies` has one body for each output: two for argmax and argmin, one for each part of a
  // written combiner. For a reduction a body is the source that is combined. `pool` keeps the
  // bodies alive. `input_shapes` and `input_types` follow the load slots used in the bodies.
  // Refuses: duplicate axis names, non-positive or overflowing extents, unknown variables, a load
  // with the wrong number of indices, a body of a wrong type, a reduction without reduce axes or
  // the reverse, and an index that can leave its input (check_body.h).
  static StatusOr<OperatorPtr> Compute(std::string name, std::vector<Axis> axes,
                                       std::vector<Axis> reduce_axes, Reduction reduction,
                                       std::vector<ir::Expr> bodies,
                                       std::shared_ptr<const ir::ExprPool> pool,
                                       std::span<const ir::Type> input_types,
                                       std::span<const std::vector<int64_t>> input_shapes,
                                       Attrs attrs = {});

  OpKind kind() const { return kind_; }
  bool is_placeholder() const { return kind_ == OpKind::kPlaceholder; }
  const std::string& name() const { return name_; }
  // Spatial axes.
  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<Axis>& reduce_axes() const { return reduce_axes_; }
  bool is_reduction() const { return reduction_.kind != Combiner::kNone; }
  Combiner combiner() const { return reduction_.kind; }
  const Reduction& reduction() const { return reduction_; }
  int num_outputs() const { return static_cast<int>(types_.size()); }
  ir::Type type(int output = 0) const { return types_[output]; }
  // Extents of the spatial axes.
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  // Product of the reduce extents, 1 without reduce axes.
  int64_t reduce_size() const { return reduce_size_; }
  ir::Expr body(int output = 0) const { return bodies_[output]; }
  const std::vector<ir::Expr>& bodies() const { return bodies_; }
  const std::shared_ptr<const ir::ExprPool>& pool() const { return pool_; }
  // Load slots are 0..num_inputs-1. A slot need not be read.
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  ir::Type input_type(int slot) const { return input_types_[slot]; }
  const std::vector<int64_t>& input_shape(int slot) const { return input_shapes_[slot]; }
  const BodyProperties& properties() const { return properties_; }
  const Attrs& attrs() const { return attrs_; }

  // Return the same computation under another name, or with other attributes.
  OperatorPtr Renamed(std::string name) const;
  OperatorPtr WithAttrs(Attrs attrs) const;

 private:
  Operator() = default;
  OpKind kind_ = OpKind::kPlaceholder;
  std::string name_;
  std::vector<Axis> axes_, reduce_axes_;
  Reduction reduction_ = Combiner::kNone;
  std::vector<ir::Type> types_;
  std::vector<ir::Expr> bodies_;
  std::shared_ptr<const ir::ExprPool> pool_;
  std::vector<ir::Type> input_types_;
  std::vector<std::vector<int64_t>> input_shapes_;
  std::vector<int64_t> shape_;
  int64_t num_elements_ = 1, reduce_size_ = 1;
  BodyProperties properties_;
  Attrs attrs_;
};

class Dag;
using DagPtr = std::shared_ptr<const Dag>;

// An operator at its place in a DAG.
struct OpNode {
  OperatorPtr op;
  // Indexed by load slot. All inputs have a smaller op index.
  std::vector<Tensor> inputs;
};

class Dag {
 public:
  // `nodes` must be in topological order. Stage ids are these positions. Names of operators need
  // not be unique (two T_add in one DAG are common): text forms print a second one as `T_add'1`
  // (see text.h). Refuses: an input that is not an earlier operator, or whose type or shape differs
  // from that for which the body was made; an input that nobody reads; a DAG without a compute
  // operator. Takes a few microseconds, because operators were checked when they were made.
  // were checked when they were made.
  static StatusOr<DagPtr> Make(std::vector<OpNode> nodes);

  // Orders the operators as TVM does: depth-first post-order from the outputs, inputs in order of
  // first occurrence. Stage numbers in records follow from this order. `nodes` may come in any
  // order. Refuses a cycle.
  static StatusOr<DagPtr> MakeOrdered(std::vector<OpNode> nodes);

  int size() const { return static_cast<int>(nodes_.size()); }
  const OpNode& node(int i) const { return nodes_[i]; }
  const Operator& op(int i) const { return *nodes_[i].op; }
  const std::vector<OpNode>& nodes() const { return nodes_; }

  // Readers of op i, ascending, each once.
  const std::vector<int>& consumers(int i) const { return consumers_[i]; }
  // Producers of op i, each once, in order of first occurrence in its body.
  const std::vector<int>& producers(int i) const { return producers_[i]; }
  bool is_output(int i) const { return consumers_[i].empty(); }

  // Arguments of the whole computation, as TVM orders them: placeholders in order, then outputs.
  const std::vector<Tensor>& arguments() const { return arguments_; }
  const std::vector<int64_t>& shape(Tensor t) const { return op(t.op).shape(); }
  ir::Type type(Tensor t) const { return op(t.op).type(t.output); }

  // Flops of all operators, -1 if unknown.
  double flop_count() const { return flop_count_; }

  // DAGs that steps made out of this one.
  KnownEdits& edits() const { return edits_; }

 private:
  Dag() = default;
  std::vector<OpNode> nodes_;
  std::vector<std::vector<int>> consumers_, producers_;
  std::vector<Tensor> arguments_;
  double flop_count_ = 0;
  mutable KnownEdits edits_;
};

// True if the same operators stand in the same places and read the same tensors. The numbers of
// load slots may differ.
bool Equal(const Dag& a, const Dag& b);

}  // namespace kiln::dag
