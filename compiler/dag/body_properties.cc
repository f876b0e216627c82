#include "compiler/dag/body_properties.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

// Walks the distinct nodes of the bodies once, children first, and counts operations as if the tree
// were written out. Loads are entered for what they contain, but what is inside them is free.
class Walk {
 public:
  Walk(ir::TypeCode code, BodyProperties& properties) : code_(code), properties_(properties) {}

  double Flops(Expr e) {
    if (e->num_args == 0) return 0;
    if (const double* known = Find(e)) return *known;
    const double flops = Count(e);
    Add(e, flops);
    return flops;
  }

 private:
  double Count(Expr e) {
    switch (e->op) {
      case Op::kLoad:
        for (Expr a : e->args()) Flops(a);
        properties_.reads.push_back({e->id, e});
        return 0;
      case Op::kCall:
        properties_.has_expensive |= e->intrinsic() == ir::Intrinsic::kExp;
        return SumOfArgs(e);
      case Op::kCast:
        return Flops(e->arg(0));
      case Op::kIf:
        properties_.has_branch = true;
        return SumOfArgs(e);
      case Op::kSelect: {
        properties_.has_branch = true;
        const double condition = Flops(e->arg(0));
        const double yes = Flops(e->arg(1)), no = Flops(e->arg(2));
        return condition + std::max(yes, no);
      }
      case Op::kNot:
        return Flops(e->arg(0)) + (e->type.code == code_ ? 1 : 0);
      default: {
        const double inner = SumOfArgs(e);
        return inner + (e->arg(0)->type.code == code_ || e->arg(1)->type.code == code_ ? 1 : 0);
      }
    }
  }

  double SumOfArgs(Expr e) {
    double sum = 0;
    for (Expr a : e->args()) sum += Flops(a);
    return sum;
  }

  // Few nodes: a list is faster than a hash table.
  const double* Find(Expr e) const {
    if (!large_.empty()) {
      auto it = large_.find(e);
      return it == large_.end() ? nullptr : &it->second;
    }
    for (const auto& [key, value] : small_) {
      if (key == e) return &value;
    }
    return nullptr;
  }
  void Add(Expr e, double value) {
    if (large_.empty() && small_.size() < 48) {
      small_.emplace_back(e, value);
      return;
    }
    if (large_.empty()) large_.insert(small_.begin(), small_.end());
    large_.emplace(e, value);
  }

  ir::TypeCode code_;
  BodyProperties& properties_;
  std::vector<std::pair<Expr, double>> small_;
  std::unordered_map<Expr, double> large_;
};

// Operations of one combination: one for each value. The comparisons of argmax and argmin that are
// on indices count, those on values don't.
double CombinerFlops(Combiner combiner, size_t num_bodies) {
  if (combiner == Combiner::kNone) return 0;
  return IsArg(combiner) ? 1 : static_cast<double>(num_bodies);
}

}  // namespace

BodyProperties ComputeProperties(const std::vector<Expr>& bodies, Combiner combiner,
                                 int64_t reduce_size) {
  BodyProperties properties;
  Walk walk(bodies[0]->type.code, properties);
  double flops = CombinerFlops(combiner, bodies.size());
  for (Expr body : bodies) flops += walk.Flops(body);
  properties.flops_per_element = flops * static_cast<double>(reduce_size);
  properties.size = SizeOf(bodies);
  return properties;
}

}  // namespace kiln::dag
