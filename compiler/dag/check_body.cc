#include "compiler/dag/check_body.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/status.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

int64_t Clamp(__int128 value) {
  if (value > kRangeLimit) return kRangeLimit;
  if (value < -kRangeLimit) return -kRangeLimit;
  return static_cast<int64_t>(value);
}

bool Known(Range r) { return r.min > -kRangeLimit && r.max < kRangeLimit; }

Range Add(Range a, Range b) {
  return {Clamp(__int128{a.min} + b.min), Clamp(__int128{a.max} + b.max)};
}
Range Negate(Range a) { return {-a.max, -a.min}; }

bool IsIndex(Expr e) { return e->type == ir::kIndex; }
bool IsIndexSum(Expr e) { return IsIndex(e) && (e->op == Op::kAdd || e->op == Op::kSub); }

// Ranges asked for, of all parts of a body: conditions inside conditions ask for each part again
// and again. Bodies that people write take a few hundred.
constexpr int64_t kMostRanges = 1'000'000;
constexpr std::string_view kEntangled =
    "its index expressions are too entangled to be checked: conditions stand inside of conditions; "
    "give parts of them operators of their own";

// More nodes than this are kept in a hash table.
constexpr size_t kSmall = 64;

template <typename Corner>
Range Corners(Range a, Range b, Corner corner) {
  const std::array<int64_t, 4> c = {corner(a.min, b.min), corner(a.min, b.max),
                                    corner(a.max, b.min), corner(a.max, b.max)};
  return {*std::min_element(c.begin(), c.end()), *std::max_element(c.begin(), c.end())};
}

Range Multiply(Range a, Range b) {
  return Corners(a, b, [](int64_t x, int64_t y) { return Clamp(__int128{x} * y); });
}

Range FloorDivide(Range a, Range b) {
  if (b.min <= 0 && b.max >= 0) return kUnknownRange;
  return Corners(a, b, [](int64_t x, int64_t y) {
    if (x >= kRangeLimit || x <= -kRangeLimit) return y > 0 ? x : -x;
    return ir::FloorDiv(x, y);
  });
}

Range FloorModulo(Range a, Range b) {
  if (b.min <= 0 && b.max >= 0) return kUnknownRange;
  if (b.min == b.max && Known(a) && ir::FloorDiv(a.min, b.min) == ir::FloorDiv(a.max, b.min)) {
    return {ir::FloorMod(a.min, b.min), ir::FloorMod(a.max, b.min)};
  }
  if (b.min > 0) return {0, a.min >= 0 ? std::min(a.max, b.max - 1) : b.max - 1};
  return {b.min + 1, 0};
}

// constant + sum of coefficient * atom. Atoms are expressions that are not sums.
struct Linear {
  struct Term {
    Expr atom;
    int64_t coefficient;
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;  // ordered by hash, no zero coefficient
  int64_t constant = 0;
  bool overflow = false;
};

// What is known to hold at the current place of the body: `terms` (without constant) lies in
// `range`.
struct Constraint {
  std::vector<Linear::Term> terms;
  Range range;
};

class Checker {
 public:
  Checker(std::span<const int64_t> extents, std::span<const ir::Type> types,
          std::span<const std::vector<int64_t>> shapes, const BodyNames& names)
      : types_(types), shapes_(shapes), names_(names) {
    vars_.reserve(extents.size());
    for (int64_t extent : extents) vars_.push_back({0, extent - 1});
  }

  std::optional<BodyError> TakeError() { return std::move(error_); }

  // False when an error was found. Of nested sums only the outermost is checked for overflow.
  bool Check(Expr e, bool in_sum = false);
  Range RangeOf(Expr e);

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
  // " i + 1", or "" without a printer.
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

  void Linearize(Expr e, int64_t factor, Linear& out);
  Range RangeOfAtom(Expr e);
  Range RangeOfTerms(std::span<const Linear::Term> terms);

  // Adds what `condition == value` says; undone by Restore.
  void Assume(Expr condition, bool value);
  void AssumeComparison(Op op, Expr a, Expr b);
  void AssumeRange(Linear form, Range range);

  struct Mark {
    size_t constraints, checked;
    std::vector<Range> vars;
    bool dead;
  };
  Mark Save() const { return {constraints_.size(), checked_.size(), vars_, dead_}; }
  void Restore(Mark mark) {
    constraints_.resize(mark.constraints);
    for (size_t i = mark.checked; i < checked_.size(); ++i) checked_set_.erase(checked_[i]);
    checked_.resize(mark.checked);
    vars_ = std::move(mark.vars);
    dead_ = mark.dead;
  }

  std::span<const ir::Type> types_;
  std::span<const std::vector<int64_t>> shapes_;
  const BodyNames& names_;
  std::vector<Range> vars_;
  std::vector<Constraint> constraints_;
  // Nodes found good under the current conditions or weaker ones.
  std::vector<Expr> checked_;
  std::unordered_set<Expr> checked_set_;  // the same, when there are many
  int64_t ranges_left_ = kMostRanges;
  bool dead_ = false;  // the conditions contradict each other: nothing here is ever evaluated
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
  const Range range = RangeOf(index);
  if (range.min > range.max) return true;  // never evaluated
  const int64_t extent = shapes_[load->id][dim];
  if (!Known(range)) {
    return Fail(
        index,
        "index{} of {}, axis {}: its range can't be bounded; clamp it with max(min(..., {}), 0)",
        IndexText(index), InputName(load->id), dim, extent - 1);
  }
  if (range.max >= extent || range.min < 0) {
    return Fail(index, "index{} of {} reaches {}, axis {} has extent {}", IndexText(index),
                InputName(load->id), range.min < 0 ? range.min : range.max, dim, extent);
  }
  return true;
}

bool Checker::CheckArithmetic(Expr e) {
  if ((e->op == Op::kFloorDiv || e->op == Op::kFloorMod) && !e->type.is_float()) {
    const Range divisor = RangeOf(e->arg(1));
    if (divisor.min <= 0 && divisor.max >= 0)
      return Fail(e, "the divisor{} may be 0", IndexText(e->arg(1)));
  }
  if (e->op == Op::kFloorDiv && e->type.is_float()) {
    return Fail(e, "// needs integers, got {}; use / and floor", TypeName(e->type));
  }
  if (e->op == Op::kFloorMod && e->type.is_float()) {
    return Fail(e, "% needs integers, got {}", TypeName(e->type));
  }
  if (IsIndex(e) && e->op >= Op::kAdd && e->op <= Op::kMul && !Known(RangeOf(e)) &&
      !ir::HasLoad(e)) {
    return Fail(e, "index arithmetic{} can overflow", IndexText(e));
  }
  return true;
}

void AddTerm(Linear& out, Expr atom, int64_t coefficient) {
  auto it = std::find_if(out.terms.begin(), out.terms.end(),
                         [&](const auto& t) { return t.atom == atom; });
  if (it == out.terms.end()) {
    it = std::find_if(out.terms.begin(), out.terms.end(),
                      [&](const auto& t) { return t.atom->hash > atom->hash; });
    out.terms.insert(it, {atom, coefficient});
    return;
  }
  const __int128 sum = __int128{it->coefficient} + coefficient;
  out.overflow |= Clamp(sum) != sum;
  it->coefficient = Clamp(sum);
  if (it->coefficient == 0) out.terms.erase(it);
}

void Checker::Linearize(Expr e, int64_t factor, Linear& out) {
  switch (e->op) {
    case Op::kInt: {
      const __int128 sum = out.constant + __int128{e->int_value} * factor;
      out.overflow |= Clamp(sum) != sum;
      out.constant = Clamp(sum);
      return;
    }
    case Op::kAdd:
      Linearize(e->arg(0), factor, out);
      return Linearize(e->arg(1), factor, out);
    case Op::kSub:
      Linearize(e->arg(0), factor, out);
      return Linearize(e->arg(1), -factor, out);
    case Op::kMul: {
      const int constant = e->arg(0)->is_const_int() ? 0 : 1;
      if (!e->arg(constant)->is_const_int()) break;
      const __int128 product = __int128{e->arg(constant)->int_value} * factor;
      out.overflow |= Clamp(product) != product;
      if (out.overflow) return;
      return Linearize(e->arg(1 - constant), Clamp(product), out);
    }
    default:
      break;
  }
  AddTerm(out, e, factor);
}

Range Checker::RangeOfTerms(std::span<const Linear::Term> terms) {
  Range range{0, 0};
  for (const auto& t : terms) {
    range = Add(range, Multiply(RangeOfAtom(t.atom), {t.coefficient, t.coefficient}));
  }
  for (const Constraint& c : constraints_) {
    if (c.terms.size() != terms.size()) continue;
    const bool same = std::equal(c.terms.begin(), c.terms.end(), terms.begin());
    const bool negated =
        !same &&
        std::equal(c.terms.begin(), c.terms.end(), terms.begin(), [](const auto& a, const auto& b) {
          return a.atom == b.atom && a.coefficient == -b.coefficient;
        });
    if (!same && !negated) continue;
    const Range r = same ? c.range : Negate(c.range);
    range = {std::max(range.min, r.min), std::min(range.max, r.max)};
  }
  return range;
}

Range Checker::RangeOf(Expr e) {
  if (e->op == Op::kInt) return {e->int_value, e->int_value};
  Linear form;
  Linearize(e, 1, form);
  if (form.overflow) return kUnknownRange;
  return Add(RangeOfTerms(form.terms), {form.constant, form.constant});
}

Range Checker::RangeOfAtom(Expr e) {
  if (--ranges_left_ < 0) return kUnknownRange;
  if (e->type.is_bool()) return {0, 1};
  switch (e->op) {
    case Op::kInt:
      return {e->int_value, e->int_value};
    case Op::kVar:
      return e->id >= 0 && static_cast<size_t>(e->id) < vars_.size() ? vars_[e->id] : kUnknownRange;
    case Op::kMul:
      return Multiply(RangeOf(e->arg(0)), RangeOf(e->arg(1)));
    case Op::kFloorDiv:
      return FloorDivide(RangeOf(e->arg(0)), RangeOf(e->arg(1)));
    case Op::kFloorMod:
      return FloorModulo(RangeOf(e->arg(0)), RangeOf(e->arg(1)));
    case Op::kMin:
    case Op::kMax: {
      const Range a = RangeOf(e->arg(0)), b = RangeOf(e->arg(1));
      if (e->op == Op::kMin) return {std::min(a.min, b.min), std::min(a.max, b.max)};
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case Op::kIf:
    case Op::kSelect: {
      Range result{kRangeLimit, -kRangeLimit};
      for (int side = 1; side <= 2; ++side) {
        Mark mark = Save();
        Assume(e->arg(0), side == 1);
        if (!dead_) {
          const Range r = RangeOf(e->arg(side));
          result = {std::min(result.min, r.min), std::max(result.max, r.max)};
        }
        Restore(std::move(mark));
      }
      return result;
    }
    case Op::kCast: {
      if (e->arg(0)->type.is_float()) return kUnknownRange;
      const Range r = RangeOf(e->arg(0));
      const int64_t limit =
          e->type.bits >= 62 ? kRangeLimit : (int64_t{1} << (e->type.bits - 1)) - 1;
      return r.min >= -limit && r.max <= limit ? r : kUnknownRange;
    }
    default:
      return kUnknownRange;
  }
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
      if (value != (condition->op == Op::kAnd)) return;  // "one of them": says nothing about each
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
  static constexpr std::array<Op, 6> kOpposite = {Op::kNe, Op::kEq, Op::kGe,
                                                  Op::kGt, Op::kLe, Op::kLt};
  const Op op = value ? condition->op
                      : kOpposite[static_cast<int>(condition->op) - static_cast<int>(Op::kEq)];
  AssumeComparison(op, condition->arg(0), condition->arg(1));
}

void Checker::AssumeComparison(Op op, Expr a, Expr b) {
  Linear form;
  Linearize(a, 1, form);
  Linearize(b, -1, form);
  if (form.overflow) return;
  switch (op) {
    case Op::kEq:
      return AssumeRange(std::move(form), {0, 0});
    case Op::kLt:
      return AssumeRange(std::move(form), {-kRangeLimit, -1});
    case Op::kLe:
      return AssumeRange(std::move(form), {-kRangeLimit, 0});
    case Op::kGt:
      return AssumeRange(std::move(form), {1, kRangeLimit});
    case Op::kGe:
      return AssumeRange(std::move(form), {0, kRangeLimit});
    default:
      return;
  }
}

void Checker::AssumeRange(Linear form, Range range) {
  range = Add(range, {-form.constant, -form.constant});
  const Range known = RangeOfTerms(form.terms);
  if (std::max(known.min, range.min) > std::min(known.max, range.max)) dead_ = true;
  if (form.terms.size() == 1 && form.terms[0].atom->op == Op::kVar) {
    const int64_t c = form.terms[0].coefficient;
    const auto id = static_cast<size_t>(form.terms[0].atom->id);
    if (id >= vars_.size()) return;
    const Range r = c < 0 ? Negate(range) : range;
    const int64_t m = c < 0 ? -c : c;
    Range& var = vars_[id];
    if (r.min > -kRangeLimit) var.min = std::max(var.min, -ir::FloorDiv(-r.min, m));
    if (r.max < kRangeLimit) var.max = std::min(var.max, ir::FloorDiv(r.max, m));
    if (var.min > var.max) dead_ = true;
    return;
  }
  constraints_.push_back({std::move(form.terms), range});
}

}  // namespace

Range RangeOf(Expr e, std::span<const int64_t> extents) {
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
