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
// were written out. The walk enters loads to find their properties, but operations in their indices
// are free.
class Walk {
 public:
  Walk(ir::Type type, BodyProperties& properties) : code_(CodeOf(type)), properties_(properties) {}

  double Flops(Expr e) {
    if (e->num_args == 0) return 0;
    if (const double* known = Find(e)) return *known;
    const double flops = Count(e);
    Add(e, flops);
    return flops;
  }

 private:
  // TVM's bool is an unsigned integer of one bit.
  static ir::TypeCode CodeOf(ir::Type type) {
    return type.is_bool() ? ir::TypeCode::kUInt : type.code;
  }
  bool Counts(Expr e) const { return CodeOf(e->type) == code_; }

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
      case Op::kReinterpret:
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
        return Flops(e->arg(0)) + (Counts(e) ? 1 : 0);
      case Op::kBitAnd:
      case Op::kBitOr:
      case Op::kBitXor:
      case Op::kShl:
      case Op::kShr:
        // In TVM these are calls.
        return SumOfArgs(e);
      default: {
        const double inner = SumOfArgs(e);
        return inner + (Counts(e->arg(0)) || Counts(e->arg(1)) ? 1 : 0);
      }
    }
  }

  double SumOfArgs(Expr e) {
    double sum = 0;
    for (Expr a : e->args()) sum += Flops(a);
    return sum;
  }

  // There are few nodes, for which a list is faster than a hash table.
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

// Operations of one combination: one for each value, or the operations of a written combiner. The
// comparisons of indices in argmax and argmin count, those of values don't.
double CombinerFlops(const Reduction& reduction, size_t num_bodies) {
  if (reduction.kind == Combiner::kNone) return 0;
  if (reduction.custom != nullptr) {
    BodyProperties unused;
    Walk walk(reduction.custom->results[0]->type, unused);
    double flops = 0;
    for (Expr result : reduction.custom->results) flops += walk.Flops(result);
    return flops;
  }
  return IsArg(reduction.kind) ? 1 : static_cast<double>(num_bodies);
}

}  // namespace

BodyProperties ComputeProperties(const std::vector<Expr>& bodies, const Reduction& reduction,
                                 int64_t reduce_size) {
  BodyProperties properties;
  Walk walk(bodies[0]->type, properties);
  double flops = CombinerFlops(reduction, bodies.size());
  for (Expr body : bodies) flops += walk.Flops(body);
  properties.flops_per_element = flops * static_cast<double>(reduce_size);
  properties.size = SizeOf(bodies);
  return properties;
}

}  // namespace kiln::dag
