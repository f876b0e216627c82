#include "compiler/features/op_counts.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "compiler/features/feature_columns.h"

namespace kiln::features {
namespace {

using ir::Expr;
using ir::Op;

class Counter {
 public:
  OpCounts Count(Expr e) {
    if (e->num_args == 0) return {};
    for (const auto& [known, counts] : known_) {
      if (known == e) return counts;
    }
    OpCounts counts;
    for (Expr a : e->args()) counts.Add(Count(a));
    AddNode(e, counts);
    // Leaves, and nodes whose arguments are leaves, are counted faster than they are looked up.
    const bool shallow =
        std::all_of(e->args().begin(), e->args().end(), [](Expr a) { return a->num_args == 0; });
    if (!shallow) known_.emplace_back(e, counts);
    return counts;
  }

 private:
  static void AddNode(Expr e, OpCounts& counts) {
    const bool is_float = e->arg(0)->type.is_float();
    const auto add = [&](int float_column, int int_column) {
      counts.of[is_float ? float_column : int_column] += 1;
    };
    switch (e->op) {
      case Op::kAdd:
      case Op::kSub:
        if (e->arg(0)->op == Op::kMul || e->arg(1)->op == Op::kMul) {
          add(col::float_mad, col::int_mad);
          counts.of[is_float ? col::float_mul : col::int_mul] -= 1;
        } else {
          add(col::float_addsub, col::int_addsub);
        }
        break;
      case Op::kMul:
        add(col::float_mul, col::int_mul);
        break;
      case Op::kDiv:
      case Op::kFloorDiv:
      case Op::kFloorMod:
        add(col::float_divmod, col::int_divmod);
        break;
      case Op::kMin:
      case Op::kMax:
      case Op::kEq:
      case Op::kNe:
      case Op::kLt:
      case Op::kLe:
      case Op::kGt:
      case Op::kGe:
        add(col::float_cmp, col::int_cmp);
        break;
      case Op::kBitAnd:
      case Op::kBitOr:
      case Op::kBitXor:
      case Op::kShl:
      case Op::kShr:
        // In TVM these are calls.
        counts.of[e->type.is_bool() ? col::bool_op : col::int_mathfunc] += 1;
        break;
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot:
        counts.of[col::bool_op] += 1;
        break;
      case Op::kSelect:
      case Op::kIf:
        counts.of[col::select_op] += 1;
        break;
      case Op::kCast:
      case Op::kReinterpret:
        counts.of[e->type.is_float() ? col::float_otherfunc : col::int_otherfunc] += 1;
        break;
      case Op::kCall:
        counts.of[e->type.is_float() ? col::float_mathfunc : col::int_mathfunc] += 1;
        break;
      default:
        break;
    }
  }

  absl::InlinedVector<std::pair<Expr, OpCounts>, 12> known_;
};

}  // namespace

double OpCounts::flops() const {
  return 2 * of[col::float_mad] + of[col::float_addsub] + of[col::float_mul] +
         of[col::float_divmod] + of[col::float_cmp] + of[col::float_mathfunc];
}

double OpCounts::float_instructions() const {
  return of[col::float_mad] + of[col::float_addsub] + of[col::float_mul] +
         8 * of[col::float_divmod] + of[col::float_cmp] + of[col::select_op];
}

OpCounts OpCounts::Times(float factor) const {
  OpCounts counts = *this;
  for (float& count : counts.of) count *= factor;
  return counts;
}

float ShareOf(const instructions::MatrixUnit& unit) {
  return 1.0F / static_cast<float>(unit.speed);
}

OpCounts InMatrixUnit(const instructions::MatrixUnit& unit, OpCounts counts, float share) {
  counts.of[unit.sum.is_float() ? col::float_otherfunc : col::int_otherfunc] = 0;
  return counts.Times(share);
}

double OpCounts::special() const { return of[col::float_mathfunc]; }

OpCounts CountOps(Expr e) { return Counter().Count(e); }

}  // namespace kiln::features
