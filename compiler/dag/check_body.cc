#include "compiler/dag/check_body.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/status.h"
#include "compiler/arith/facts.h"
#include "compiler/arith/linear.h"
#include "compiler/arith/range.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

using arith::Interval;
using arith::Linear;
using ir::Expr;
using ir::Op;

bool IsIndex(Expr e) { return e->type == ir::kIndex; }
// True for a constant of uint64 that is too large for an int64.
bool IsLargeConstant(Expr e) {
  return e->is_const_int() && e->type == ir::kUInt64 && e->int_value < 0;
}
bool IsIndexSum(Expr e) { return IsIndex(e) && (e->op == Op::kAdd || e->op == Op::kSub); }

// Limit of the ranges that are computed for all parts of a body. Conditions inside conditions ask
// for each part again and again. Bodies that people write take a few hundred.
constexpr int64_t kMaxRanges = 1'000'000;
constexpr std::string_view kEntangled =
    "its index expressions are too entangled to be checked: conditions stand inside of conditions; "
    "give parts of them operators of their own";

// More nodes than this are kept in a hash table.
constexpr size_t kSmall = 64;

class Checker {
 public:
  Checker(std::span<const int64_t> extents, std::span<const ir::Type> types,
          std::span<const std::vector<int64_t>> shapes, const BodyNames& names)
      : types_(types), shapes_(shapes), names_(names) {
    vars_.reserve(extents.size());
    for (int64_t extent : extents) vars_.push_back(Interval::Of(0, extent - 1));
  }

  std::optional<BodyError> TakeError() { return std::move(error_); }

  // Returns false if an error was found. Of nested sums only the outermost is checked for overflow.
  bool Check(Expr e, bool in_sum = false);
  Interval RangeOf(Expr e);

 private:
  template <typename... Args>
  bool Fail(Expr where, fmt::format_string<Args...> format, Args&&... args) {
    if (error_) return false;
    error_ = BodyError{where, ranges_left_ < 0 ? std::string(kEntangled)
                                               : fmt::format(format, std::forward<Args>(args)...)};
    return false;
  }
  std::string InputName(int slot) const {
    return names_.input ? names_.input(slot) : fmt::format("input {}", slot);
  }
  // Returns " i + 1", or "" without a printer.
  std::string IndexText(Expr e) const { return names_.expr ? " " + names_.expr(e) : std::string(); }

  bool CheckVar(Expr e);
  bool CheckLoad(Expr e);
  bool CheckIndex(Expr load, int dim);
  bool CheckArithmetic(Expr e);
  bool CheckGuarded(Expr condition, bool value, Expr e);
  bool CheckArgs(Expr e) {
    for (Expr a : e->args()) {
      if (!Check(a, IsIndexSum(e))) return false;
    }
    return true;
  }
  bool IsChecked(Expr e) const {
    if (checked_.size() > kSmall) return checked_set_.contains(e);
    return std::find(checked_.begin(), checked_.end(), e) != checked_.end();
  }
  void MarkChecked(Expr e) {
    checked_.push_back(e);
    if (checked_.size() <= kSmall) return;
    if (checked_.size() == kSmall + 1) checked_set_.insert(checked_.begin(), checked_.end());
    checked_set_.insert(e);
  }

  Interval RangeOfAtom(Expr e);
  Interval RangeOfTerms(const Linear& form);
  Interval RangeOf(const Linear& form);
  Interval RangeOfChoice(Expr e);

  // Assumes `condition == value` until Restore.
  void Assume(Expr condition, bool value);
  void AssumeFact(arith::Fact fact);

  struct Mark {
    size_t facts, checked;
    std::vector<Interval> vars;
    bool dead;
  };
  Mark Save() const { return {facts_.size(), checked_.size(), vars_, dead_}; }
  void Restore(Mark mark) {
    facts_.Truncate(mark.facts);
    for (size_t i = mark.checked; i < checked_.size(); ++i) checked_set_.erase(checked_[i]);
    checked_.resize(mark.checked);
    vars_ = std::move(mark.vars);
    dead_ = mark.dead;
  }

  std::span<const ir::Type> types_;
  std::span<const std::vector<int64_t>> shapes_;
  const BodyNames& names_;
  std::vector<Interval> vars_;
  // Further facts that hold at the current place of the body.
  arith::Facts facts_;
  // Nodes that were found good under the current conditions or weaker ones.
  std::vector<Expr> checked_;
  // Holds the same nodes if there are many.
  std::unordered_set<Expr> checked_set_;
  int64_t ranges_left_ = kMaxRanges;
  // The conditions contradict each other, so nothing at this place is ever evaluated.
  bool dead_ = false;
  std::optional<BodyError> error_;
};

bool Checker::Check(Expr e, bool in_sum) {
  if (ranges_left_ < 0) return Fail(e, "{}", kEntangled);
  if (e->num_args == 0) return e->op != Op::kVar || CheckVar(e);
  if (IsChecked(e)) return true;
  bool good;
  switch (e->op) {
    case Op::kIf:
      good = Check(e->arg(0)) && CheckGuarded(e->arg(0), true, e->arg(1)) &&
             CheckGuarded(e->arg(0), false, e->arg(2));
      break;
    case Op::kAnd:
    case Op::kOr:
      good = Check(e->arg(0)) && CheckGuarded(e->arg(0), e->op == Op::kAnd, e->arg(1));
      break;
    case Op::kLoad:
      good = CheckLoad(e);
      break;
    default:
      good = CheckArgs(e) && ((in_sum && IsIndexSum(e)) || CheckArithmetic(e));
      break;
  }
  if (good && !(in_sum && IsIndexSum(e))) MarkChecked(e);
  return good;
}

bool Checker::CheckGuarded(Expr condition, bool value, Expr e) {
  Mark mark = Save();
  Assume(condition, value);
  const bool good = dead_ || Check(e);
  Restore(std::move(mark));
  return good;
}

bool Checker::CheckVar(Expr e) {
  if (e->id < 0 || static_cast<size_t>(e->id) >= vars_.size()) {
    return Fail(e, "variable {} is used but there are only {} axes", e->id, vars_.size());
  }
  if (!IsIndex(e))
    return Fail(e, "variable {} has type {}, expected int64", e->id, TypeName(e->type));
  return true;
}

bool Checker::CheckLoad(Expr e) {
  if (e->id < 0 || static_cast<size_t>(e->id) >= shapes_.size()) {
    return Fail(e, "load of input {} but there are only {} inputs", e->id, shapes_.size());
  }
  if (e->type != types_[e->id]) {
    return Fail(e, "{} is read as {} but holds {}", InputName(e->id), TypeName(e->type),
                TypeName(types_[e->id]));
  }
  if (e->num_args != shapes_[e->id].size()) {
    return Fail(e, "{} has {} dimension{}, got {} ind{}", InputName(e->id), shapes_[e->id].size(),
                shapes_[e->id].size() == 1 ? "" : "s", e->num_args,
                e->num_args == 1 ? "ex" : "ices");
  }
  for (int d = 0; d < e->num_args; ++d) {
    if (!Check(e->arg(d)) || !CheckIndex(e, d)) return false;
  }
  return true;
}

bool Checker::CheckIndex(Expr load, int dim) {
  const Expr index = load->arg(dim);
  if (!index->type.is_int()) {
    return Fail(index, "index{} of {} has type {}, expected an integer", IndexText(index),
                InputName(load->id), TypeName(index->type));
  }
  const Expr inner = index->op == Op::kCast ? index->arg(0) : index;
  if (inner->op == Op::kLoad && inner->type.is_int()) return true;
  const Interval range = RangeOf(index);
  // An access with an empty range is never evaluated.
  if (range.empty()) return true;
  const int64_t extent = shapes_[load->id][dim];
  if (Interval{0, extent - 1}.Contains(range)) return true;
  if (!range.bounded() || ir::HasLoad(index)) {
    return Fail(
        index,
        "index{} of {}, axis {}: its range can't be bounded; clamp it with max(min(..., {}), 0)",
        IndexText(index), InputName(load->id), dim, extent - 1);
  }
  return Fail(index, "index{} of {} reaches {}, axis {} has extent {}", IndexText(index),
              InputName(load->id), range.lo < 0 ? range.lo : range.hi, dim, extent);
}

bool Checker::CheckArithmetic(Expr e) {
  if ((e->op == Op::kFloorDiv || e->op == Op::kFloorMod) && !e->type.is_float()) {
    if (RangeOf(e->arg(1)).Contains(0))
      return Fail(e, "the divisor{} may be 0", IndexText(e->arg(1)));
  }
  if (e->op == Op::kShl || e->op == Op::kShr) {
    if (!Interval{0, e->type.bits - 1}.Contains(RangeOf(e->arg(1)))) {
      return Fail(e, "the shift{} may be by less than 0 or more than {}; clamp it with % {}",
                  IndexText(e), e->type.bits - 1, e->type.bits);
    }
  }
  if (e->op == Op::kFloorDiv && e->type.is_float()) {
    return Fail(e, "// needs integers, got {}; use / and floor", TypeName(e->type));
  }
  if (e->op == Op::kFloorMod && e->type.is_float()) {
    return Fail(e, "% needs integers, got {}", TypeName(e->type));
  }
  if (IsIndex(e) && e->op >= Op::kAdd && e->op <= Op::kMul && !RangeOf(e).bounded() &&
      !ir::HasLoad(e)) {
    return Fail(e, "index arithmetic{} can overflow", IndexText(e));
  }
  return true;
}

Interval Checker::RangeOfTerms(const Linear& form) {
  return arith::RangeOfLinear(form, [this](Expr atom) { return RangeOfAtom(atom); });
}

Interval Checker::RangeOf(const Linear& form) {
  const Interval range = RangeOfTerms(form);
  if (facts_.empty()) return range;
  return facts_.Narrow(form, range, [this](const Linear& rest) { return RangeOfTerms(rest); });
}

Interval Checker::RangeOf(Expr e) {
  if (IsLargeConstant(e)) return arith::RangeOfType(e->type);
  if (e->is_const_int()) return Interval::Of(e->int_value);
  return RangeOf(arith::Linearize(e));
}

Interval Checker::RangeOfAtom(Expr e) {
  if (--ranges_left_ < 0) return arith::kEverything;
  if (e->op == Op::kVar)
    return e->id >= 0 && static_cast<size_t>(e->id) < vars_.size() ? vars_[e->id]
                                                                   : arith::kEverything;
  if (e->op == Op::kIf || e->op == Op::kSelect) return RangeOfChoice(e);
  return arith::RangeOfNode(e, [this](Expr operand) { return RangeOf(operand); });
}

// Computes the range of each side under the condition that chooses the side.
Interval Checker::RangeOfChoice(Expr e) {
  if (e->type.is_bool()) return {0, 1};
  Interval result = arith::kNothing;
  for (int side = 1; side <= 2; ++side) {
    Mark mark = Save();
    Assume(e->arg(0), side == 1);
    if (!dead_) result = arith::Hull(result, RangeOf(e->arg(side)));
    Restore(std::move(mark));
  }
  return result;
}

void Checker::Assume(Expr condition, bool value) {
  switch (condition->op) {
    case Op::kInt:
      dead_ |= (condition->int_value != 0) != value;
      return;
    case Op::kNot:
      return Assume(condition->arg(0), !value);
    case Op::kAnd:
    case Op::kOr:
      // That one of two conditions holds says nothing about each of them.
      if (value != (condition->op == Op::kAnd)) return;
      Assume(condition->arg(0), value);
      return Assume(condition->arg(1), value);
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      break;
    default:
      return;
  }
  if (!condition->arg(0)->type.is_int()) return;
  if (IsLargeConstant(condition->arg(0)) || IsLargeConstant(condition->arg(1))) return;
  static constexpr std::array<Op, 6> kOpposite = {Op::kNe, Op::kEq, Op::kGe,
                                                  Op::kGt, Op::kLe, Op::kLt};
  const Op op = value ? condition->op
                      : kOpposite[static_cast<int>(condition->op) - static_cast<int>(Op::kEq)];
  Linear difference = arith::Linearize(condition->arg(0));
  difference.AddScaled(arith::Linearize(condition->arg(1)), -1);
  if (!difference.overflow) AssumeFact(arith::FactOf(op, std::move(difference)));
}

void Checker::AssumeFact(arith::Fact fact) {
  if (arith::Intersect(RangeOf(fact.sum), fact.range).empty()) dead_ = true;
  if (fact.sum.is_constant()) return;
  const auto& [atom, coefficient] = fact.sum.terms[0];
  if (fact.sum.terms.size() > 1 || atom->op != Op::kVar) return facts_.Add(std::move(fact));
  if (static_cast<size_t>(atom->id) >= vars_.size()) return;
  Interval& var = vars_[atom->id];
  var = arith::Intersect(var, arith::Divisible(fact.range, coefficient));
  if (var.empty()) dead_ = true;
}

}  // namespace

Interval RangeOf(Expr e, std::span<const int64_t> extents) {
  const BodyNames names;
  Checker checker(extents, {}, {}, names);
  return checker.RangeOf(e);
}

std::optional<BodyError> CheckBody(Expr body, std::span<const int64_t> extents,
                                   std::span<const ir::Type> input_types,
                                   std::span<const std::vector<int64_t>> input_shapes,
                                   const BodyNames& names) {
  Checker checker(extents, input_types, input_shapes, names);
  checker.Check(body);
  return checker.TakeError();
}

}  // namespace kiln::dag
