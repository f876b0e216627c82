#include "compiler/dag/softmax_chain.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/arith/simplify.h"
#include "compiler/dag/unrounded.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

constexpr int kMaxChainOperators = 64;
// Limit of the nodes that are written out.
constexpr int kMaxNodes = 4096;
// A logit up to this value masks its key: its exponential is 0 beside that of any score of numbers
// that have not overflowed or come near it.
constexpr double kMasked = -1e30;

Status NotOne(std::string_view why) {
  return NotFound("it is no product of a softmax of products: {}", why);
}

Expr WithoutCasts(Expr e) {
  while (e->op == Op::kCast) e = e->arg(0);
  return e;
}

// Returns x of a choice between 0, where x is NaN, and x; null for another expression.
Expr GuardedFromNaN(Expr e) {
  if (e->op != Op::kSelect && e->op != Op::kIf) return nullptr;
  const Expr condition = e->arg(0);
  const bool is_other = condition->op == Op::kEq;  // x == x
  if (!is_other && condition->op != Op::kNe) return nullptr;
  const Expr zero = e->arg(is_other ? 2 : 1), x = e->arg(is_other ? 1 : 2);
  const bool is_zero = zero->op == Op::kFloat && zero->float_value == 0;
  const bool is_of_x =
      condition->arg(0) == condition->arg(1) && WithoutCasts(condition->arg(0)) == WithoutCasts(x);
  return is_zero && is_of_x ? x : nullptr;
}

class Finder {
 public:
  explicit Finder(const Dag& dag)
      : dag_(dag), pool_(std::make_shared<ir::ExprPool>()), simplifier_(*pool_) {
    chain_.pool = pool_;
  }

  StatusOr<SoftmaxChain> Run() {
    KILN_RETURN_IF_ERROR(CheckShape());
    KILN_RETURN_IF_ERROR(FindResult());
    KILN_RETURN_IF_ERROR(FindSums());
    KILN_RETURN_IF_ERROR(FindLogit());
    KILN_RETURN_IF_ERROR(FindScores());
    KILN_RETURN_IF_ERROR(FindRoles());
    chain_.logit = Unrounded(pool(), chain_.logit);
    FindLastKey();
    return std::move(chain_);
  }

 private:
  // Checks the conditions that most DAGs fail.
  Status CheckShape() {
    if (dag_.size() > kMaxChainOperators) return NotOne("there are too many operators");
    int sums = 0, maxima = 0, outputs = 0;
    for (int i = 0; i < dag_.size(); ++i) {
      const Operator& op = dag_.op(i);
      if (op.is_placeholder()) continue;
      if (op.num_outputs() != 1) return NotOne("an operator has several outputs");
      if (dag_.is_output(i)) chain_.output = i, ++outputs;
      if (!op.is_reduction()) continue;
      sums += op.combiner() == Combiner::kSum;
      maxima += op.combiner() == Combiner::kMax;
      if (op.reduce_axes().size() != 1) return NotOne("a reduction has several axes");
      if (op.combiner() != Combiner::kSum && op.combiner() != Combiner::kMax)
        return NotOne("a reduction is neither a sum nor a maximum");
      if (op.type() != ir::kFloat32) return NotOne("a reduction is not in float32");
    }
    if (sums != 3 || maxima != 1 || outputs != 1)
      return NotOne("it has not three sums, a maximum and one output");
    return OkStatus();
  }

  ir::ExprPool& pool() { return *pool_; }

  int32_t NewVar(int64_t extent) {
    chain_.extents.push_back(extent);
    // The simplifier gets an extent of at least 2, so that an index keeps the variable, which tells
    // its axis.
    return simplifier_.AddVar(std::max<int64_t>(extent, 2));
  }

  // Returns an expression of operator `op` at these values of its axes. The bodies of the operators
  // that it reads are written out, up to reductions and placeholders. Null: the expression is too
  // long.
  Expr WriteOut(int op, Expr e, const std::vector<Expr>& axes) {
    if (--budget_ < 0) return nullptr;
    if (e->op == Op::kVar) return axes[static_cast<size_t>(e->id)];
    std::vector<Expr> args;
    for (Expr arg : e->args()) {
      args.push_back(WriteOut(op, arg, axes));
      if (args.back() == nullptr) return nullptr;
    }
    if (e->op != Op::kLoad) return e->num_args == 0 ? pool().Import(e) : pool().WithArgs(e, args);
    const int from = dag_.node(op).inputs[static_cast<size_t>(e->id)].op;
    const Operator& producer = dag_.op(from);
    if (!producer.is_placeholder() && !producer.is_reduction())
      return WriteOut(from, producer.body(), args);
    for (Expr& arg : args) arg = simplifier_.Simplify(arg);
    return pool().Load(from, args, e->type);
  }

  StatusOr<Expr> BodyOf(int op, const std::vector<Expr>& axes) {
    const Expr body = WriteOut(op, dag_.op(op).body(), axes);
    if (body == nullptr) return NotOne("its expressions are too long");
    return body;
  }

  // Returns the body of the reduction that `load` reads, over the same variables. `reduced` is the
  // variable of its reduce axis.
  StatusOr<Expr> BodyOf(Expr load, int32_t reduced) {
    const Operator& op = dag_.op(load->id);
    std::vector<Expr> axes;
    for (size_t i = 0; i < load->num_args; ++i) {
      const Expr arg = load->arg(static_cast<int>(i));
      const bool is_only = arg->is_const_int(0) && op.axes()[i].extent == 1;
      const bool is_whole = arg->op == Op::kVar && arg->id != reduced &&
                            chain_.extent(arg->id) == op.axes()[i].extent &&
                            std::ranges::find(axes, arg) == axes.end();
      if (!is_only && !is_whole) return NotOne("a reduction is read at other places than its own");
      axes.push_back(arg);
    }
    if (op.reduce_axes()[0].extent != chain_.extent(reduced))
      return NotOne("reductions are of different lengths");
    axes.push_back(pool().Var(reduced));
    return BodyOf(load->id, axes);
  }

  // Returns the only load of a reduction in the expression, not counting loads of `other`. Null:
  // there is not exactly one.
  Expr OnlyReduction(Expr e, int other = -1) {
    Expr found = nullptr;
    int count = 0;
    ir::Visit(e, [&](Expr node) {
      if (node->op != Op::kLoad || dag_.op(node->id).is_placeholder() || node->id == other) return;
      found = node;
      ++count;
    });
    return count == 1 ? found : nullptr;
  }

  // Finds the expression of the output, which must be made of two sums. Their bodies tell which is
  // which.
  Status FindResult() {
    std::vector<Expr> axes;
    for (const Axis& axis : dag_.op(chain_.output).axes())
      axes.push_back(pool().Var(NewVar(axis.extent)));
    const Operator& output = dag_.op(chain_.output);
    if (output.is_reduction()) {
      chain_.result = pool().Load(chain_.output, axes, output.type());
    } else {
      KILN_ASSIGN_OR_RETURN(chain_.result, BodyOf(chain_.output, axes));
    }
    ir::Visit(chain_.result, [&](Expr node) {
      if (node->op == Op::kLoad && dag_.op(node->id).is_reduction()) sums_.push_back(node);
    });
    chain_.is_normalized_before = sums_.size() == 1;
    if (sums_.empty() || sums_.size() > 2) return NotOne("its output is not of two sums");
    for (const Expr sum : sums_) {
      if (dag_.op(sum->id).combiner() != Combiner::kSum)
        return NotOne("its output is not of two sums");
    }
    chain_.key = NewVar(dag_.op(sums_[0]->id).reduce_axes()[0].extent);
    return OkStatus();
  }

  Status FindSums() {
    std::vector<Expr> bodies;
    for (const Expr sum : sums_) {
      KILN_ASSIGN_OR_RETURN(const Expr body, BodyOf(sum, chain_.key));
      bodies.push_back(body);
    }
    // O is the sum of products.
    const size_t o = bodies[0]->op == Op::kMul ? 0 : 1;
    if (o >= bodies.size() || bodies[o]->op != Op::kMul) return NotOne("no sum is of products");
    weighted_ = sums_[o];
    chain_.weighted = weighted_->id;
    chain_.value_term = bodies[o];
    KILN_RETURN_IF_ERROR(FindWeight());
    if (chain_.is_normalized_before) return FindTotalOfWeight();
    total_ = sums_[1 - o];
    chain_.total_term = bodies[1 - o];
    chain_.total = total_->id;
    return OkStatus();
  }

  // Finds which factor of the product is the weight and which one is the value.
  Status FindWeight() {
    for (const int side : {0, 1}) {
      const Expr value = WithoutCasts(chain_.value_term->arg(side));
      if (value->op != Op::kLoad || !dag_.op(value->id).is_placeholder()) continue;
      weight_factor_ = chain_.value_term->arg(1 - side);
      chain_.values = value;
      // The weight is the value before the last conversion, which only widens it to the type of the
      // product.
      chain_.weight = weight_factor_->op == Op::kCast ? weight_factor_->arg(0) : weight_factor_;
      return OkStatus();
    }
    return NotOne("the values are no input");
  }

  // Uses that the sum over n of (P / L) * V is (sum over n of P * V) / L.
  Status FindTotalOfWeight() {
    const Expr choice = WithoutCasts(chain_.weight), guarded = GuardedFromNaN(choice);
    if (guarded != nullptr) {
      chain_.value_term = Replaced(chain_.value_term, choice, guarded);
      weight_factor_ = Replaced(weight_factor_, choice, guarded);
      chain_.weight = Replaced(chain_.weight, choice, guarded);
    }
    const Expr quotient = WithoutCasts(chain_.weight);
    if (quotient->op != Op::kDiv) return NotOne("its weights are not divided by their sum");
    total_ = quotient->arg(1);
    if (total_->op != Op::kLoad || !dag_.op(total_->id).is_reduction())
      return NotOne("its weights are not divided by their sum");
    chain_.total = total_->id;
    KILN_ASSIGN_OR_RETURN(chain_.total_term, BodyOf(total_, chain_.key));
    const Expr exponential = quotient->arg(0);
    const Expr factor = Replaced(weight_factor_, quotient, exponential);
    const bool is_first = chain_.value_term->arg(0) == weight_factor_;
    const Expr other = chain_.value_term->arg(is_first ? 1 : 0);
    chain_.weight = Replaced(chain_.weight, quotient, exponential);
    chain_.value_term = is_first ? pool().Mul(factor, other) : pool().Mul(other, factor);
    weight_factor_ = factor;
    // The result divides the sum of products by the total.
    Expr divided = pool().Div(weighted_, total_);
    if (guarded != nullptr)
      divided = pool().Select(pool().Lt(pool().Float(0), total_), divided, pool().Float(0));
    chain_.result = Replaced(chain_.result, weighted_, divided);
    return OkStatus();
  }

  // Finds exp(X - M), where M is the maximum of the same X.
  Status FindLogit() {
    const Expr e = WithoutCasts(chain_.total_term);
    const bool is_exponential = e->op == Op::kCall && e->intrinsic() == ir::Intrinsic::kExp &&
                                e->type == ir::kFloat32 && e->arg(0)->op == Op::kSub;
    if (!is_exponential) return NotOne("what is summed is no exponential of a difference");
    if (WithoutCasts(chain_.weight) != e)
      return NotOne("the weights of the values and what is summed are not the same");
    chain_.exponential = e;
    chain_.logit = e->arg(0)->arg(0);
    const Expr maximum = e->arg(0)->arg(1);
    if (maximum->op != Op::kLoad || dag_.op(maximum->id).combiner() != Combiner::kMax)
      return NotOne("no maximum is taken off before the exponential");
    chain_.maximum = maximum->id;
    KILN_ASSIGN_OR_RETURN(const Expr body, BodyOf(maximum, chain_.key));
    if (body != chain_.logit) return NotOne("the maximum is of something else");
    return OkStatus();
  }

  Status FindScores() {
    const Expr score = OnlyReduction(chain_.logit);
    if (score == nullptr || dag_.op(score->id).combiner() != Combiner::kSum)
      return NotOne("its exponential is not of one sum");
    chain_.scores = score->id;
    score_ = score;
    chain_.depth = NewVar(dag_.op(score->id).reduce_axes()[0].extent);
    KILN_ASSIGN_OR_RETURN(chain_.score_term, BodyOf(score, chain_.depth));
    if (chain_.score_term->op != Op::kMul) return NotOne("its scores are no sums of products");
    TakeScalesOut();
    for (const int side : {0, 1}) {
      const Expr load = WithoutCasts(chain_.score_term->arg(side));
      if (load->op != Op::kLoad || !dag_.op(load->id).is_placeholder())
        return NotOne("the factors of its scores are no inputs");
      (ir::UsesVar(load, chain_.key) ? chain_.keys : chain_.query) = load;
    }
    if (chain_.keys == nullptr || chain_.query == nullptr)
      return NotOne("not one of the factors of its scores depends on the key");
    return OkStatus();
  }

  // Uses that the sum over k of (Q*s)*(K*t) is s*t * sum over k of Q*K.
  void TakeScalesOut() {
    const auto q = AsScaledLoad(chain_.score_term->arg(0)),
               k = AsScaledLoad(chain_.score_term->arg(1));
    if (!q || !k || (q->scale == 1 && k->scale == 1)) return;
    chain_.score_term =
        pool().Mul(pool().Cast(ir::kFloat32, q->load), pool().Cast(ir::kFloat32, k->load));
    const Expr scaled = pool().Mul(score_, pool().Float(q->scale * k->scale));
    chain_.logit = Replaced(chain_.logit, score_, scaled);
  }

  Expr Replaced(Expr e, Expr old, Expr by) {
    if (e == old) return by;
    if (e->num_args == 0) return e;
    std::vector<Expr> args;
    for (Expr arg : e->args()) args.push_back(Replaced(arg, old, by));
    return pool().WithArgs(e, args);
  }

  Status FindRoles() {
    const int axes = static_cast<int>(dag_.op(chain_.output).axes().size());
    for (int32_t var = 0; var < axes; ++var) {
      if (ir::UsesVar(chain_.exponential, var) || ir::UsesVar(score_, var)) continue;
      if (!ir::UsesVar(chain_.values, var)) continue;
      if (chain_.column >= 0) return NotOne("its values have several axes");
      chain_.column = var;
    }
    if (chain_.column < 0) return NotOne("its values have no axis of their own");
    // The row is the longest axis along which all rows share keys and values.
    for (int32_t var = 0; var < axes; ++var) {
      if (var == chain_.column || ir::UsesVar(chain_.keys, var) || ir::UsesVar(chain_.values, var))
        continue;
      if (chain_.row < 0 || chain_.extent(var) >= chain_.extent(chain_.row)) chain_.row = var;
    }
    if (chain_.row < 0) return NotOne("no two rows have the same keys");
    for (int32_t var = 0; var < axes; ++var) {
      if (var != chain_.row && var != chain_.column) chain_.batch.push_back(var);
    }
    // Each of a thread's sums and maxima belongs to one row.
    if (weighted_->num_args != static_cast<uint16_t>(axes))
      return NotOne("its sum of values has other axes than its output");
    for (const Expr load : {total_, score_}) {
      if (ir::UsesVar(load, chain_.column)) return NotOne("its softmax depends on the column");
    }
    return OkStatus();
  }

  // Finds a condition key <= row + c of a logit that is very low if the condition is false.
  void FindLastKey() {
    const Expr logit = chain_.logit;
    if (logit->op != Op::kIf && logit->op != Op::kSelect) return;
    const auto is_low = [](Expr e) { return e->op == Op::kFloat && e->float_value <= kMasked; };
    bool holds = true;
    const Expr seen = is_low(logit->arg(1)) ? logit->arg(2) : logit->arg(1);
    if (is_low(logit->arg(1))) {
      holds = false;
    } else if (!is_low(logit->arg(2))) {
      return;
    }
    Expr condition = logit->arg(0);
    if (condition->op == Op::kNot) {
      condition = condition->arg(0);
      holds = !holds;
    }
    // The condition is written as difference <= 0.
    const bool is_less = condition->op == Op::kLt || condition->op == Op::kLe;
    if (!is_less && condition->op != Op::kGt && condition->op != Op::kGe) return;
    const arith::Linear a = arith::Linearize(condition->arg(0)),
                        b = arith::Linearize(condition->arg(1));
    const bool is_strict = condition->op == Op::kLt || condition->op == Op::kGt;
    arith::Linear difference = is_less ? a : b;
    difference.AddScaled(is_less ? b : a, -1);
    if (is_strict) difference.constant += 1;
    // The negation of d <= 0 is 1 - d <= 0.
    if (!holds) {
      arith::Linear negated = arith::Constant(1);
      negated.AddScaled(difference, -1);
      difference = negated;
    }
    if (difference.overflow || difference.terms.size() != 2 ||
        difference.Coefficient(pool().Var(chain_.key)) != 1 ||
        difference.Coefficient(pool().Var(chain_.row)) != -1)
      return;
    // Every row must see the first key, so that no row has only masked keys.
    if (difference.constant > 0) return;
    chain_.last_key = -difference.constant;
    chain_.seen_logit = seen;
  }

  const Dag& dag_;
  const std::shared_ptr<ir::ExprPool> pool_;
  // Simplifies over the chain's variables.
  arith::Simplifier simplifier_;
  SoftmaxChain chain_;
  int budget_ = kMaxNodes;
  // Sums that the output reads.
  std::vector<Expr> sums_;
  // Loads.
  Expr weighted_ = nullptr, total_ = nullptr;
  Expr score_ = nullptr;
  // The factor of the product as it is multiplied.
  Expr weight_factor_ = nullptr;
};

}  // namespace

StatusOr<SoftmaxChain> FindSoftmaxChain(const Dag& dag) { return Finder(dag).Run(); }

}  // namespace kiln::dag
