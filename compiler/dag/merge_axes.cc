#include "compiler/dag/merge_axes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

using ir::Expr;

class Merger {
 public:
  Merger(const Dag& dag, int count)
      : dag_(dag), count_(count), first_(static_cast<size_t>(dag.size())), bodies_(first_.size()) {}

  StatusOr<DagPtr> Run(int op, int first) {
    KILN_RETURN_IF_ERROR(Mark(op, first));
    while (!waiting_.empty()) {
      const int next = waiting_.back();
      waiting_.pop_back();
      if (!dag_.op(next).is_placeholder()) KILN_RETURN_IF_ERROR(MarkRead(next));
      for (const int reader : dag_.consumers(next)) KILN_RETURN_IF_ERROR(MarkReader(next, reader));
    }
    std::vector<OpNode> nodes = dag_.nodes();
    for (int i = 0; i < dag_.size(); ++i) {
      if (!first_[static_cast<size_t>(i)]) continue;
      KILN_ASSIGN_OR_RETURN(nodes[static_cast<size_t>(i)].op, Merged(i));
    }
    return Dag::Make(std::move(nodes));
  }

 private:
  int first(int op) const { return *first_[static_cast<size_t>(op)]; }
  bool is_marked(int op) const { return first_[static_cast<size_t>(op)].has_value(); }

  // Marks an operator whose axes or dimensions from `first` on are to become one.
  Status Mark(int op, int first) {
    std::optional<int>& known = first_[static_cast<size_t>(op)];
    if (known == first) return OkStatus();
    const Operator& of = dag_.op(op);
    if (known || of.num_outputs() != 1) {
      return InvalidArgument("{} would have its axes merged in two ways, or in several outputs",
                             of.name());
    }
    for (int i = first; i < first + count_ && !of.is_placeholder(); ++i) {
      if (IsNamed(of, of.axes()[static_cast<size_t>(i)].name))
        return InvalidArgument("an attribute of {} names axis {}", of.name(),
                               of.axes()[static_cast<size_t>(i)].name);
    }
    known = first;
    waiting_.push_back(op);
    return OkStatus();
  }

  static bool IsNamed(const Operator& op, const std::string& axis) {
    const Attrs& attrs = op.attrs();
    for (const auto* names : {&attrs.simplify_const_tensor_indices, &attrs.always_unroll_inner,
                              &attrs.no_split_at_inner}) {
      if (std::ranges::find(*names, axis) != names->end()) return true;
    }
    return false;
  }

  // Returns bodies in which variables of reduction axes of length 1 are replaced by 0.
  const std::vector<Expr>& BodiesOf(int op) {
    std::vector<Expr>& bodies = bodies_[static_cast<size_t>(op)];
    if (!bodies.empty()) return bodies;
    const Operator& of = dag_.op(op);
    ir::Substitution units;
    for (size_t i = 0; i < of.reduce_axes().size(); ++i) {
      if (of.reduce_axes()[i].extent == 1)
        units.SetVar(static_cast<int32_t>(of.axes().size() + i), pool_.Int(0));
    }
    for (const Expr body : of.bodies()) bodies.push_back(pool_.Substitute(body, units));
    return bodies;
  }

  // Marks the tensors that the marked operator reads along its merged axes.
  Status MarkRead(int op) {
    std::unordered_set<Expr> seen;
    for (const Expr body : BodiesOf(op)) KILN_RETURN_IF_ERROR(MarkReadBy(op, body, seen));
    return OkStatus();
  }

  bool UsesMerged(int op, Expr e) const {
    for (int i = first(op); i < first(op) + count_; ++i) {
      if (ir::UsesVar(e, i)) return true;
    }
    return false;
  }

  bool UsesLong(int op, Expr e) const {
    for (int i = first(op); i < first(op) + count_; ++i) {
      if (dag_.op(op).axes()[static_cast<size_t>(i)].extent > 1 && ir::UsesVar(e, i)) return true;
    }
    return false;
  }

  // `seen` holds parts of the body, which may be shared, that need not be visited again.
  Status MarkReadBy(int op, Expr e, std::unordered_set<Expr>& seen) {
    if (!seen.insert(e).second || !UsesMerged(op, e)) return OkStatus();
    if (e->op == ir::Op::kVar) {
      return InvalidArgument("{} depends on axis {} by itself", dag_.op(op).name(),
                             dag_.op(op).axes()[static_cast<size_t>(e->id)].name);
    }
    if (e->op != ir::Op::kLoad) {
      for (const Expr arg : e->args()) KILN_RETURN_IF_ERROR(MarkReadBy(op, arg, seen));
      return OkStatus();
    }
    const auto args = e->args();
    const auto at = std::ranges::find_if(args, [&](Expr arg) { return UsesMerged(op, arg); });
    const int dimension = static_cast<int>(at - args.begin());
    if (!ReadsInOrder(op, e, dimension, first(op))) {
      // The index is 0, as in a read of a bias of shape [1, 1, 1, c].
      if (!UsesLong(op, e)) return OkStatus();
      return InvalidArgument("{} reads {} along single axes", dag_.op(op).name(),
                             dag_.op(InputOf(op, e)).name());
    }
    for (int d = 0; d < static_cast<int>(args.size()); ++d) {
      const bool is_inside = dimension <= d && d < dimension + count_;
      if (!is_inside && UsesMerged(op, args[static_cast<size_t>(d)]))
        return InvalidArgument("{} reads {} twice along an axis", dag_.op(op).name(),
                               dag_.op(InputOf(op, e)).name());
    }
    return Mark(InputOf(op, e), dimension);
  }

  int InputOf(int op, Expr load) const {
    return dag_.node(op).inputs[static_cast<size_t>(load->id)].op;
  }

  // Returns true if the dimensions from `dimension` on are read in whole by the axes from `axis`
  // on.
  bool ReadsInOrder(int op, Expr load, int dimension, int axis) const {
    const Operator& reader = dag_.op(op);
    const std::vector<int64_t>& shape = dag_.op(InputOf(op, load)).shape();
    if (dimension + count_ > static_cast<int>(load->num_args)) return false;
    for (int i = 0; i < count_; ++i) {
      const Expr index = load->arg(static_cast<size_t>(dimension + i));
      if (axis + i >= std::ssize(reader.axes()) || index->op != ir::Op::kVar ||
          index->id != axis + i ||
          reader.axes()[static_cast<size_t>(axis + i)].extent !=
              shape[static_cast<size_t>(dimension + i)])
        return false;
    }
    return true;
  }

  // Marks a reader of the marked tensor. The reader must have axes for the tensor's merged
  // dimensions.
  Status MarkReader(int tensor, int reader) {
    for (const Expr body : BodiesOf(reader)) {
      Status status;
      ir::Visit(body, [&](Expr e) {
        if (!status.ok() || e->op != ir::Op::kLoad || InputOf(reader, e) != tensor) return;
        const Expr index = e->arg(static_cast<size_t>(first(tensor)));
        if (index->op == ir::Op::kVar && ReadsInOrder(reader, e, first(tensor), index->id)) {
          status = Mark(reader, index->id);
        } else {
          status = InvalidArgument("{} reads {} along single axes", dag_.op(reader).name(),
                                   dag_.op(tensor).name());
        }
      });
      KILN_RETURN_IF_ERROR(status);
    }
    return OkStatus();
  }

  std::vector<int64_t> MergedShape(int op) const {
    std::vector<int64_t> shape = dag_.op(op).shape();
    if (!is_marked(op)) return shape;
    const auto begin = shape.begin() + first(op);
    for (int i = 1; i < count_; ++i) *begin *= begin[i];
    shape.erase(begin + 1, begin + count_);
    return shape;
  }

  StatusOr<OperatorPtr> Merged(int op) {
    const Operator& of = dag_.op(op);
    const std::vector<int64_t> shape = MergedShape(op);
    if (of.is_placeholder()) return Operator::Placeholder(of.name(), of.type(), shape);
    std::vector<Axis> axes = of.axes();
    const auto begin = axes.begin() + first(op);
    for (int i = 1; i < count_; ++i) begin->name += "_" + begin[i].name;
    begin->extent = shape[static_cast<size_t>(first(op))];
    axes.erase(begin + 1, begin + count_);
    const auto is_taken = [&](const Axis& axis) {
      return &axis != &axes[static_cast<size_t>(first(op))] &&
             axis.name == axes[static_cast<size_t>(first(op))].name;
    };
    while (std::ranges::any_of(axes, is_taken) || std::ranges::any_of(of.reduce_axes(), is_taken))
      axes[static_cast<size_t>(first(op))].name += "_";

    auto pool = std::make_shared<ir::ExprPool>();
    std::vector<Expr> bodies;
    for (const Expr body : BodiesOf(op)) bodies.push_back(Rewritten(op, body, *pool));
    std::vector<ir::Type> types;
    std::vector<std::vector<int64_t>> shapes;
    for (int slot = 0; slot < of.num_inputs(); ++slot) {
      types.push_back(of.input_type(slot));
      shapes.push_back(MergedShape(dag_.node(op).inputs[static_cast<size_t>(slot)].op));
    }
    return Operator::Compute(of.name(), std::move(axes), of.reduce_axes(), of.reduction(),
                             std::move(bodies), std::move(pool), types, shapes, of.attrs());
  }

  // Variables of merged axes occur only in the indices that become one, or are always 0.
  Expr Rewritten(int op, Expr body, ir::ExprPool& pool) const {
    ir::Substitution others;
    const auto vars =
        static_cast<int>(dag_.op(op).axes().size() + dag_.op(op).reduce_axes().size());
    for (int var = first(op); var < vars; ++var) {
      const bool is_merged = var < first(op) + count_;
      others.SetVar(var, is_merged ? pool.Int(0) : pool.Var(var - count_ + 1));
    }
    std::unordered_map<Expr, Expr> made;
    ir::Visit(body, [&](Expr e) {
      std::vector<Expr> args;
      for (const Expr arg : e->args()) args.push_back(made.at(arg));
      if (e->op == ir::Op::kLoad && is_marked(InputOf(op, e))) {
        const auto begin = args.begin() + first(InputOf(op, e));
        *begin = pool.Var(first(op));
        args.erase(begin + 1, begin + count_);
      }
      made[e] = e->op == ir::Op::kLoad ? pool.Load(e->id, args, e->type)
                : args.empty()         ? pool.Substitute(e, others)
                                       : pool.WithArgs(e, args);
    });
    return made.at(body);
  }

  const Dag& dag_;
  const int count_;
  // The first merged axis of each operator that has merged axes.
  std::vector<std::optional<int>> first_;
  std::vector<std::vector<Expr>> bodies_;
  std::vector<int> waiting_;
  ir::ExprPool pool_;
};

}  // namespace

StatusOr<DagPtr> MergeAxes(const Dag& dag, int op, int first, int count) {
  const auto axes = static_cast<int>(dag.op(op).shape().size());
  if (first < 0 || count < 2 || first + count > axes) {
    return InvalidArgument("{} axes from {} on are not two or more of the {} of {}", count, first,
                           axes, dag.op(op).name());
  }
  return Merger(dag, count).Run(op, first);
}

}  // namespace kiln::dag
