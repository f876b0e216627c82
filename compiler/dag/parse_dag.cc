#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/dag/body_properties.h"
#include "compiler/dag/check_body.h"
#include "compiler/dag/check_limits.h"
#include "compiler/dag/count_points.h"
#include "compiler/dag/index_limit.h"
#include "compiler/dag/parse_attributes.h"
#include "compiler/dag/parse_combiner.h"
#include "compiler/dag/parse_params.h"
#include "compiler/dag/text.h"
#include "compiler/dag/text_syntax.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/text.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Token;
using ir::TokenStream;

// An extent may be this large by itself. Products are checked where operators are made.
constexpr int64_t kMaxParsedExtent = kMaxElements;
// Limit of the reductions inside of the expressions of one operator.
constexpr size_t kMaxInner = 64;

class Parser {
 public:
  Parser(TokenStream tokens, std::span<const ParamValue> params)
      : tokens_(std::move(tokens)), params_(params), pool_(std::make_shared<ir::ExprPool>()) {}

  StatusOr<DagText> Parse() {
    KILN_RETURN_IF_ERROR(CheckParams(tokens_, params_));
    const bool keep_order = tokens_.Peek().is_symbol("@") && tokens_.Peek(1).is_word("keep_order");
    if (keep_order) {
      tokens_.Next();
      tokens_.Next();
    }
    while (!tokens_.AtEnd()) {
      KILN_RETURN_IF_ERROR(Statement());
      KILN_RETURN_IF_ERROR(CheckOperatorCount(nodes_.size()));
    }
    KILN_RETURN_IF_ERROR(CheckUses());
    DagText parsed;
    KILN_ASSIGN_OR_RETURN(parsed.dag, keep_order ? Dag::Make(std::move(nodes_))
                                                 : Dag::MakeOrdered(std::move(nodes_)));
    KILN_ASSIGN_OR_RETURN(parsed.ranges, Ranges(*parsed.dag));
    return parsed;
  }

 private:
  struct Named {
    Tensor tensor;
    ir::Type type;
    // Position of the definition.
    Token token;
  };
  // An input with a range.
  struct Ranged {
    // Token of the attribute.
    Token token;
    InputRange range = {};
    OperatorPtr op = nullptr;
  };
  // The operator being parsed, or a reduction inside of one. The axes of such a reduction are all
  // axes around it.
  struct Scope {
    // Name of the operator.
    std::string name;
    std::vector<Axis> axes = {}, reduce_axes = {};
    std::unordered_map<std::string, int32_t> vars = {};
    std::vector<std::string> slot_names = {};
    std::vector<Tensor> inputs = {};
    std::vector<ir::Type> input_types = {};
    std::vector<std::vector<int64_t>> input_shapes = {};
    // If extents depend on other axes: conditions that hold at the points that are reduced.
    std::vector<Expr> conditions = {};
  };
  // An operator that was written as a part of another one.
  struct Inner {
    std::string name;
    int32_t op;
    std::vector<Tensor> inputs;
  };

  Status Statement() {
    const Token& first = tokens_.Peek();
    if (first.is_word("input") && tokens_.Peek(1).kind == ir::TokenKind::kName) return Input();
    if (first.is_symbol("@") && tokens_.Peek(1).is_word("range")) return RangedInput();
    if (first.is_word("let") && tokens_.Peek(1).kind == ir::TokenKind::kName) return Let();
    if (first.is_word("param") && tokens_.Peek(1).kind == ir::TokenKind::kName) return Param();
    if (first.is_word("combine") && tokens_.Peek(1).kind == ir::TokenKind::kName)
      return DefineCombiner();
    if (first.kind != ir::TokenKind::kName && !first.is_symbol("@")) {
      return tokens_.Expected("'input', 'let', 'param', 'combine' or the name of an operator");
    }
    return Compute();
  }

  // Parses `let NAME = constant`.
  Status Let() {
    tokens_.Next();
    const Token token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("the name of a constant"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "after the name"));
    KILN_ASSIGN_OR_RETURN(const int64_t value,
                          Constant("a constant whole number", INT64_MIN / 4, INT64_MAX / 4));
    return DefineConstant(token, name, value);
  }

  Status DefineConstant(const Token& token, const std::string& name, int64_t value) {
    if (!constants_.emplace(name, value).second) {
      return TokenStream::ErrorAt(token, fmt::format("{} is given a value twice", name));
    }
    return OkStatus();
  }

  // Parses `param NAME`, or `param NAME = constant`. The constant holds if no value is given.
  Status Param() {
    tokens_.Next();
    const Token token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("the name of a param"));
    std::optional<int64_t> value;
    if (tokens_.TakeSymbol("=")) {
      KILN_ASSIGN_OR_RETURN(value,
                            Constant("a constant whole number", INT64_MIN / 4, INT64_MAX / 4));
    }
    const auto given = std::ranges::find(params_, name, &ParamValue::name);
    if (given != params_.end()) value = given->value;
    KILN_CHECK(value.has_value(), "CheckParams saw all of them");
    return DefineConstant(token, name, *value);
  }

  Status DefineCombiner() {
    KILN_ASSIGN_OR_RETURN(WrittenCombiner written,
                          ParseWrittenCombiner(tokens_, pool_, [&](std::string_view name) {
                            return ConstantNamed(name);
                          }));
    if (combiners_.emplace(written.name, std::move(written.combiner)).second) return OkStatus();
    return TokenStream::ErrorAt(written.token,
                                fmt::format("two combiners are called {}", written.name));
  }

  // Parses `@range(LOW, HIGH) input NAME: TYPE[extents]`; a third number is the run.
  Status RangedInput() {
    tokens_.Next();
    Ranged ranged{.token = tokens_.Next()};
    KILN_RETURN_IF_ERROR(
        ParseRange(tokens_, ranged.range.low, ranged.range.high, &ranged.range.run));
    if (!tokens_.Peek().is_word("input") || tokens_.Peek(1).kind != ir::TokenKind::kName) {
      return tokens_.Expected("'input' after @range(...), which is of an input");
    }
    KILN_RETURN_IF_ERROR(Input());
    ranged.op = nodes_.back().op;
    ranges_.push_back(std::move(ranged));
    return OkStatus();
  }

  // Returns the ranges under the names that the inputs have in the finished DAG.
  StatusOr<std::vector<InputRange>> Ranges(const Dag& dag) {
    std::vector<InputRange> ranges;
    if (ranges_.empty()) return ranges;
    const std::vector<std::string> names = DisplayNames(dag);
    const std::vector<int64_t> limits = IndexLimits(dag);
    std::unordered_map<const Operator*, size_t> places;
    for (size_t i = 0; i < names.size(); ++i) places[dag.nodes()[i].op.get()] = i;
    for (Ranged& ranged : ranges_) {
      const size_t place = places.at(ranged.op.get());
      ranged.range.input = names[place];
      const Status status = CheckInputRange(ranged.range, ranged.op->type(), limits[place]);
      if (!status.ok()) return TokenStream::ErrorAt(ranged.token, Message(status));
      ranges.push_back(ranged.range);
    }
    return ranges;
  }

  // Parses `input NAME: TYPE[extents]`.
  Status Input() {
    tokens_.Next();
    const Token token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("the name of an input"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(":", fmt::format("after the name {}", name)));
    const Token type_token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string type_name, tokens_.ExpectName("a type like float32"));
    StatusOr<ir::Type> type = ir::ParseType(type_name);
    if (!type.ok()) return TokenStream::ErrorAt(type_token, Message(type.status()));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", "and the extents, or [] for a scalar"));
    std::vector<int64_t> shape;
    while (!tokens_.Peek().is_symbol("]")) {
      if (!shape.empty()) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ']' after an extent"));
      KILN_ASSIGN_OR_RETURN(const int64_t extent, Extent());
      shape.push_back(extent);
    }
    tokens_.Next();
    StatusOr<OperatorPtr> op = Operator::Placeholder(std::string(BaseName(name)), *type, shape);
    if (!op.ok()) return TokenStream::ErrorAt(token, Message(op.status()));
    const Status limits = CheckOperatorLimits((*op)->name(), (*op)->axes(), {}, {});
    if (!limits.ok()) return TokenStream::ErrorAt(token, Message(limits));
    KILN_RETURN_IF_ERROR(Define(token, name, *op));
    nodes_.push_back({*std::move(op), {}});
    return OkStatus();
  }

  // Parses `NAME[axes] = body`, with its attributes before it.
  Status Compute() {
    Attrs attrs;
    while (tokens_.Peek().is_symbol("@")) KILN_RETURN_IF_ERROR(ParseAttribute(tokens_, attrs));
    const Token token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("the name of an operator"));
    Scope scope{.name = name};
    inner_.clear();
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", fmt::format("and the axes of {}", name)));
    KILN_RETURN_IF_ERROR(Axes("]", scope, scope.axes));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", fmt::format("and the value of {}", name)));
    KILN_ASSIGN_OR_RETURN(const Reduction reduction, ReductionAt(scope));
    KILN_ASSIGN_OR_RETURN(std::vector<Expr> bodies, Bodies(scope, reduction));
    return MakeOperator(token, scope, reduction, std::move(bodies), std::move(attrs));
  }

  // Makes the operator that was read the next node.
  Status MakeOperator(const Token& token, Scope& scope, const Reduction& reduction,
                      std::vector<Expr> bodies, Attrs attrs) {
    if (!scope.conditions.empty()) Guard(scope, reduction, bodies, attrs);
    const Status limits =
        CheckOperatorLimits(BaseName(scope.name), scope.axes, scope.reduce_axes, bodies);
    if (!limits.ok()) return TokenStream::ErrorAt(token, Message(limits));
    KILN_RETURN_IF_ERROR(CheckBodies(scope, token, bodies));
    KILN_RETURN_IF_ERROR(CheckAttributes(scope, attrs, token));

    StatusOr<OperatorPtr> op = Operator::Compute(
        std::string(BaseName(scope.name)), scope.axes, scope.reduce_axes, reduction, bodies, pool_,
        scope.input_types, scope.input_shapes, std::move(attrs));
    if (!op.ok()) return TokenStream::ErrorAt(token, Message(op.status()));
    KILN_RETURN_IF_ERROR(Define(token, scope.name, *op));
    nodes_.push_back({*std::move(op), std::move(scope.inputs)});
    return OkStatus();
  }

  // If extents depend on other axes, points outside of them add nothing and do not count as flops.
  void Guard(const Scope& scope, const Reduction& reduction, std::vector<Expr>& bodies,
             Attrs& attrs) {
    if (attrs.flop < 0) {
      const double each = ComputeProperties(bodies, reduction, 1).flops_per_element;
      attrs.flop =
          each * static_cast<double>(CountPoints(scope.axes, scope.reduce_axes, scope.conditions));
    }
    Expr inside = scope.conditions[0];
    for (size_t i = 1; i < scope.conditions.size(); ++i)
      inside = pool_->And(inside, scope.conditions[i]);
    for (size_t k = 0; k < bodies.size(); ++k) {
      const Expr identity = ReduceIdentity(reduction, static_cast<int>(k), bodies[k]->type, *pool_);
      bodies[k] = pool_->If(inside, bodies[k], identity);
    }
  }

  // Checks that the operator has the axes and inputs that attributes name. always_unroll_inner is
  // not checked: its lists serve all operators of a kind, some of which lack some of the axes.
  static Status CheckAttributes(const Scope& scope, const Attrs& attrs, const Token& token) {
    for (const NameListAttribute& a : kNameListAttributes) {
      if (a.field == &Attrs::always_unroll_inner) continue;
      const bool inputs =
          a.field == &Attrs::layout_free_placeholders || a.field == &Attrs::packed_placeholders;
      for (const std::string& name : attrs.*a.field) {
        const auto is_it = [&](const std::string& slot) {
          return slot == name || BaseName(slot) == name;
        };
        const bool known =
            inputs ? std::any_of(scope.slot_names.begin(), scope.slot_names.end(), is_it)
                   : scope.vars.contains(name);
        if (known) continue;
        return TokenStream::ErrorAt(
            token, fmt::format("attribute {} names {}, which is no {} of the operator", a.name,
                               ir::NameText(name), inputs ? "input" : "axis"));
      }
    }
    return OkStatus();
  }

  // Parses `NAME: extent, ...` and the closing symbol.
  Status Axes(std::string_view close, Scope& scope, std::vector<Axis>& axes) {
    while (!tokens_.Peek().is_symbol(close)) {
      if (!axes.empty())
        KILN_RETURN_IF_ERROR(
            tokens_.ExpectSymbol(",", fmt::format("or '{}' after an axis", close)));
      const Token token = tokens_.Peek();
      KILN_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("the name of an axis"));
      const auto id = static_cast<int32_t>(scope.vars.size());
      if (!scope.vars.emplace(name, id).second) {
        return TokenStream::ErrorAt(token, fmt::format("two axes are called {}", name));
      }
      KILN_RETURN_IF_ERROR(
          tokens_.ExpectSymbol(":", fmt::format("and the extent of axis {}", name)));
      KILN_ASSIGN_OR_RETURN(const int64_t extent, ExtentOf(scope, &axes == &scope.reduce_axes, id));
      axes.push_back({std::move(name), extent});
    }
    tokens_.Next();
    return OkStatus();
  }

  // Parses the extent of axis `id`. The extent of a reduce axis may depend on the axes before it:
  // its largest value becomes the extent, and the dependency becomes a condition.
  StatusOr<int64_t> ExtentOf(Scope& scope, bool is_reduced, int32_t id) {
    const Token token = tokens_.Peek();
    ir::ExprScope names{.var = [&](std::string_view name) -> Expr {
                          const Expr var = Variable(scope, name);
                          return var != nullptr && ir::UsesVar(var, id) ? nullptr : var;
                        },
                        .slot = [](std::string_view) { return std::nullopt; }};
    if (!is_reduced) return Extent();
    KILN_ASSIGN_OR_RETURN(const Expr e, ir::ParseIndexExpr(tokens_, names, *pool_));
    if (e->is_const_int()) return InRange(token, "an extent", 1, kMaxParsedExtent, e->int_value);
    const arith::Linear form = arith::Linearize(e);
    const bool is_affine = e->type == ir::kIndex && !form.overflow &&
                           std::ranges::all_of(form.terms, [](const arith::Term& t) {
                             return t.atom->op == ir::Op::kVar;
                           });
    if (!is_affine) {
      return TokenStream::ErrorAt(
          token, "expected an extent that is a sum of axes times constants, as i + 1 or 64 - 2*i");
    }
    std::vector<int64_t> extents;
    for (const Axis& axis : scope.axes) extents.push_back(axis.extent);
    for (const Axis& axis : scope.reduce_axes) extents.push_back(axis.extent);
    KILN_ASSIGN_OR_RETURN(const int64_t largest,
                          InRange(token, "an extent whose largest value is", 1, kMaxParsedExtent,
                                  RangeOf(e, extents).hi));
    scope.conditions.push_back(pool_->Lt(pool_->Var(id), e));
    return largest;
  }

  // Parses `sum(k: 256, ...)`, or nothing.
  StatusOr<Reduction> ReductionAt(Scope& scope) {
    const Token token = tokens_.Peek();
    if (token.kind != ir::TokenKind::kName || token.is_quoted || !tokens_.Peek(1).is_symbol("("))
      return Reduction(Combiner::kNone);
    KILN_ASSIGN_OR_RETURN(const std::optional<Reduction> reduction, ReductionNamed(token, 1));
    if (!reduction) return Reduction(Combiner::kNone);
    tokens_.Next();
    tokens_.Next();
    KILN_RETURN_IF_ERROR(Axes(")", scope, scope.reduce_axes));
    return *reduction;
  }

  // Returns the reduction that the name means if a bracket follows `bracket` tokens ahead. Returns
  // nothing if the name is a function, as in max(a, b).
  StatusOr<std::optional<Reduction>> ReductionNamed(const Token& name, size_t bracket) {
    const bool axes_follow = tokens_.Peek(bracket + 1).kind == ir::TokenKind::kName &&
                             tokens_.Peek(bracket + 2).is_symbol(":");
    Combiner combiner = Combiner::kNone;
    if (ParseCombiner(name.text, &combiner)) {
      const bool is_function = combiner == Combiner::kMax || combiner == Combiner::kMin;
      if (axes_follow) return std::optional(Reduction(combiner));
      if (is_function) return std::optional<Reduction>();
    } else if (const auto it = combiners_.find(name.text); it != combiners_.end()) {
      if (axes_follow) return std::optional(Reduction(it->second));
    } else if (axes_follow) {
      return TokenStream::ErrorAt(
          name, fmt::format("unknown combiner '{}': know sum, prod, max, min, argmax, argmin, any, "
                            "all, and those that 'combine' defines before",
                            name.text));
    } else {
      return std::optional<Reduction>();
    }
    return TokenStream::ErrorAt(tokens_.Peek(bracket + 1),
                                fmt::format("expected an axis like k: 256 to {} over, found '{}'",
                                            name.text, tokens_.Peek(bracket + 1).text));
  }

  // Parses a reduction inside of an expression. It becomes an operator of its own over those axes
  // around it that it reads, and the expression loads an element of that operator.
  StatusOr<Expr> InnerReduction(Scope& outer, const Token& name) {
    KILN_ASSIGN_OR_RETURN(const std::optional<Reduction> reduction, ReductionNamed(name, 0));
    if (!reduction) return Expr{nullptr};
    if (inner_.size() >= kMaxInner) {
      return TokenStream::ErrorAt(
          name, fmt::format("more than {} reductions inside of one operator: give some of them "
                            "operators of their own",
                            kMaxInner));
    }
    tokens_.Next();
    Scope inner{.name = outer.name, .axes = outer.axes, .vars = outer.vars};
    inner.axes.insert(inner.axes.end(), outer.reduce_axes.begin(), outer.reduce_axes.end());
    KILN_RETURN_IF_ERROR(Axes(")", inner, inner.reduce_axes));
    KILN_ASSIGN_OR_RETURN(std::vector<Expr> bodies, Bodies(inner, *reduction));
    if (bodies.size() > 1) {
      return TokenStream::ErrorAt(name, fmt::format("{} makes several tensors: give it an operator "
                                                    "of its own",
                                                    name.text));
    }
    const std::vector<int32_t> used = KeepUsedAxes(inner, bodies);
    KILN_RETURN_IF_ERROR(CheckOperatorCount(nodes_.size() + 1));
    KILN_ASSIGN_OR_RETURN(const std::string tensor,
                          InnerName(name, std::move(inner), *reduction, std::move(bodies)));
    std::vector<Expr> indices;
    for (int32_t var : used) indices.push_back(pool_->Var(var));
    const std::optional<ir::ExprScope::Slot> slot = Slot(outer, tensor);
    KILN_CHECK(slot.has_value(), "{} was just defined", tensor);
    return pool_->Load(slot->slot, indices, slot->type);
  }

  // Removes the axes that a reduction does not read. Returns the former numbers of the axes that
  // are kept.
  std::vector<int32_t> KeepUsedAxes(Scope& inner, std::vector<Expr>& bodies) const {
    const auto reads = [&](int32_t var) {
      const auto uses = [var](Expr e) { return ir::UsesVar(e, var); };
      return std::ranges::any_of(bodies, uses) || std::ranges::any_of(inner.conditions, uses);
    };
    const std::vector<Axis> around = std::move(inner.axes);
    inner.axes.clear();
    std::vector<int32_t> used;
    ir::Substitution numbers;
    const auto renumber = [&](size_t from) {
      numbers.SetVar(static_cast<int32_t>(from),
                     pool_->Var(static_cast<int32_t>(inner.axes.size() - 1)));
    };
    for (size_t i = 0; i < around.size(); ++i) {
      if (!reads(static_cast<int32_t>(i))) continue;
      inner.axes.push_back(around[i]);
      used.push_back(static_cast<int32_t>(i));
      renumber(i);
    }
    for (size_t r = 0; r < inner.reduce_axes.size(); ++r) {
      numbers.SetVar(static_cast<int32_t>(around.size() + r),
                     pool_->Var(static_cast<int32_t>(inner.axes.size() + r)));
    }
    for (auto it = inner.vars.begin(); it != inner.vars.end();) {
      const Expr var = numbers.VarOrNull(it->second);
      if (var != nullptr) it->second = var->id;
      it = var != nullptr ? std::next(it) : inner.vars.erase(it);
    }
    for (Expr& body : bodies) body = pool_->Substitute(body, numbers);
    for (Expr& condition : inner.conditions) condition = pool_->Substitute(condition, numbers);
    return used;
  }

  // Returns the name of the tensor of a reduction: the name of an equal reduction in this operator,
  // or a new name like NAME.sum, NAME.sum2.
  StatusOr<std::string> InnerName(const Token& token, Scope inner, const Reduction& reduction,
                                  std::vector<Expr> bodies) {
    const std::string owner(BaseName(inner.name));
    int number = 1;
    do {
      inner.name =
          fmt::format("{}.{}{}", owner, token.text, number == 1 ? "" : fmt::format("{}", number));
      ++number;
    } while (tensors_.contains(inner.name));
    std::string name = inner.name;
    const std::vector<Tensor> inputs = inner.inputs;
    KILN_RETURN_IF_ERROR(MakeOperator(token, inner, reduction, std::move(bodies), {}));
    const auto made = static_cast<int32_t>(nodes_.size() - 1);
    for (const Inner& other : inner_) {
      if (!IsSame(other, inputs, made)) continue;
      nodes_.pop_back();
      definitions_.pop_back();
      used_.pop_back();
      tensors_.erase(name);
      return other.name;
    }
    inner_.push_back({name, made, inputs});
    return name;
  }

  bool IsSame(const Inner& other, const std::vector<Tensor>& inputs, int32_t made) const {
    const Operator& a = *nodes_[static_cast<size_t>(other.op)].op;
    const Operator& b = *nodes_[static_cast<size_t>(made)].op;
    const auto extents = [](const Axis& x, const Axis& y) { return x.extent == y.extent; };
    return other.inputs == inputs && a.reduction() == b.reduction() && a.bodies() == b.bodies() &&
           std::ranges::equal(a.axes(), b.axes(), extents) &&
           std::ranges::equal(a.reduce_axes(), b.reduce_axes(), extents);
  }

  StatusOr<std::vector<Expr>> Bodies(Scope& scope, const Reduction& reduction) {
    const Combiner combiner = reduction.kind;
    std::vector<Expr> bodies;
    const bool several = IsArg(combiner) || ListFollows();
    if (several) {
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("(", "and (index, value)"));
    }
    do {
      if (!bodies.empty()) tokens_.Next();
      KILN_ASSIGN_OR_RETURN(Expr body, Expression(scope));
      bodies.push_back(body);
    } while (several && tokens_.Peek().is_symbol(","));
    if (IsArg(combiner) && bodies.size() == 1)
      return tokens_.Expected("',' between index and value");
    if (several) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")", "after the last output"));
    return bodies;
  }

  // Returns true if a list "(a, b" follows, and false for an expression in brackets. In a list the
  // first comma stands at the depth of the opening bracket.
  bool ListFollows() const {
    if (!tokens_.Peek().is_symbol("(")) return false;
    int depth = 0;
    for (size_t i = 0; tokens_.Peek(i).kind != ir::TokenKind::kEnd; ++i) {
      const Token& token = tokens_.Peek(i);
      if (token.is_symbol("(") || token.is_symbol("[")) ++depth;
      if (token.is_symbol(")") || token.is_symbol("]")) --depth;
      if (depth == 0) return false;
      if (depth == 1 && token.is_symbol(",")) return true;
    }
    return false;
  }

  ir::ExprScope NamesIn(Scope& scope) {
    return {.var = [this, &scope](std::string_view name) { return Variable(scope, name); },
            .slot = [this, &scope](std::string_view name) { return Slot(scope, name); }};
  }

  StatusOr<Expr> Expression(Scope& scope) {
    later_ = std::nullopt;
    const Token first = tokens_.Peek();
    ir::ExprScope names = NamesIn(scope);
    names.reduction = [this, &scope](const Token& name, TokenStream&) {
      return InnerReduction(scope, name);
    };
    StatusOr<Expr> e = ir::ParseExpr(tokens_, names, *pool_);
    if (e.ok() || !later_) return e;
    // The name is defined further down, so the message says where.
    TokenStream cursor = start_;
    while (!cursor.AtEnd() && Before(cursor.Peek(), first)) cursor.Next();
    while (!cursor.AtEnd() && cursor.Peek().text != later_->text) cursor.Next();
    return TokenStream::ErrorAt(
        cursor.Peek(),
        fmt::format("{} is read here but defined only in line {}: an operator comes after "
                    "what it reads",
                    later_->text, later_->line));
  }

  static bool Before(const Token& a, const Token& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  }

  Expr Variable(const Scope& scope, std::string_view name) {
    if (auto it = scope.vars.find(std::string(name)); it != scope.vars.end())
      return pool_->Var(it->second);
    return ConstantNamed(name);
  }

  Expr ConstantNamed(std::string_view name) const {
    const auto it = constants_.find(name);
    return it == constants_.end() ? nullptr : pool_->Int(it->second);
  }

  std::optional<ir::ExprScope::Slot> Slot(Scope& scope, std::string_view name) {
    auto it = tensors_.find(name);
    if (it == tensors_.end()) {
      later_ = DefinitionOf(name);
      return std::nullopt;
    }
    const Operator& op = *nodes_[static_cast<size_t>(it->second.tensor.op)].op;
    auto known = std::find(scope.inputs.begin(), scope.inputs.end(), it->second.tensor);
    const auto slot = static_cast<int32_t>(known - scope.inputs.begin());
    if (known == scope.inputs.end()) {
      scope.slot_names.emplace_back(name);
      scope.inputs.push_back(it->second.tensor);
      scope.input_types.push_back(it->second.type);
      scope.input_shapes.push_back(op.shape());
      used_[static_cast<size_t>(it->second.tensor.op)] = true;
    }
    return ir::ExprScope::Slot{slot, it->second.type, static_cast<int>(op.shape().size())};
  }

  // Returns the place after the current one where `name` is defined: NAME[axis: or NAME[] =
  std::optional<Token> DefinitionOf(std::string_view name) const {
    for (size_t i = 0; tokens_.Peek(i).kind != ir::TokenKind::kEnd; ++i) {
      const Token& token = tokens_.Peek(i);
      if (token.kind != ir::TokenKind::kName || token.text != name) continue;
      if (i > 0 && tokens_.Peek(i - 1).is_word("input")) return token;
      if (!tokens_.Peek(i + 1).is_symbol("[")) continue;
      if (tokens_.Peek(i + 3).is_symbol(":")) return token;
      if (tokens_.Peek(i + 2).is_symbol("]") && tokens_.Peek(i + 3).is_symbol("=")) return token;
    }
    return std::nullopt;
  }

  // Checks the bounds of all accesses. The message has names and places.
  Status CheckBodies(Scope& scope, const Token& definition, std::span<const Expr> bodies) {
    std::vector<int64_t> extents;
    for (const Axis& axis : scope.axes) extents.push_back(axis.extent);
    for (const Axis& axis : scope.reduce_axes) extents.push_back(axis.extent);
    const ir::ExprNames names{
        .var =
            [&](int32_t id) {
              const auto v = static_cast<size_t>(id);
              return v < scope.axes.size() ? scope.axes[v].name
                                           : scope.reduce_axes[v - scope.axes.size()].name;
            },
        .slot = [&](int32_t slot) { return scope.slot_names[static_cast<size_t>(slot)]; }};
    const BodyNames body_names{
        .input = [&](int slot) { return scope.slot_names[static_cast<size_t>(slot)]; },
        .expr = [&](Expr e) { return ir::ExprText(e, names, ir::kIndex); }};
    for (Expr body : bodies) {
      auto error = CheckBody(body, extents, scope.input_types, scope.input_shapes, body_names);
      if (error)
        return TokenStream::ErrorAt(PlaceOf(scope, definition, error->where), error->message);
    }
    return OkStatus();
  }

  // Returns the first token of the first index, from `definition` on, that is this expression; else
  // `definition`.
  Token PlaceOf(Scope& scope, const Token& definition, Expr where) {
    TokenStream cursor = start_;
    const Token end = tokens_.Peek();
    while (!cursor.AtEnd() && Before(cursor.Peek(), definition)) cursor.Next();
    int tries = 0;
    // A reduction inside of an expression has no "=": all its tokens belong to the body.
    for (bool in_body = cursor.Peek(1).is_symbol("(");
         !cursor.AtEnd() && (tokens_.AtEnd() || Before(cursor.Peek(), end)); cursor.Next()) {
      in_body = in_body || cursor.Peek().is_symbol("=");
      if (!in_body || !(cursor.Peek().is_symbol("[") || cursor.Peek().is_symbol(","))) continue;
      if (++tries > 200) break;
      const size_t position = cursor.position();
      cursor.Next();
      const Token place = cursor.Peek();
      StatusOr<Expr> index = ir::ParseIndexExpr(cursor, NamesIn(scope), *pool_);
      if (index.ok() && *index == where) return place;
      cursor.Seek(position);
    }
    return definition;
  }

  StatusOr<int64_t> Extent() { return Constant("an extent", 1, kMaxParsedExtent); }

  // Parses an expression of literals and constants.
  StatusOr<int64_t> Constant(std::string_view what, int64_t lowest, int64_t highest) {
    const Token token = tokens_.Peek();
    const ir::ExprScope scope{.var = [this](std::string_view name) { return ConstantNamed(name); },
                              .slot = [](std::string_view) { return std::nullopt; }};
    KILN_ASSIGN_OR_RETURN(Expr e, ir::ParseIndexExpr(tokens_, scope, *pool_));
    if (!e->is_const_int())
      return TokenStream::ErrorAt(token, fmt::format("expected {}, found an expression", what));
    return InRange(token, what, lowest, highest, e->int_value);
  }

  static StatusOr<int64_t> InRange(const Token& token, std::string_view what, int64_t lowest,
                                   int64_t highest, int64_t value) {
    if (value >= lowest && value <= highest) return value;
    return TokenStream::ErrorAt(
        token, fmt::format("expected {} from {} to {}, found {}", what, lowest, highest, value));
  }

  // Adds the tensors of an operator that becomes the next node.
  Status Define(const Token& token, const std::string& name, const OperatorPtr& op) {
    const auto index = static_cast<int32_t>(nodes_.size());
    std::vector<std::string> names = {name};
    if (op->num_outputs() > 1) {
      names.clear();
      for (int k = 0; k < op->num_outputs(); ++k) names.push_back(name + PartName(*op, k));
      // The operator's own name is taken too, although it cannot be read.
      if (auto it = tensors_.find(name); it != tensors_.end())
        return Taken(token, name, it->second.token);
    }
    for (size_t k = 0; k < names.size(); ++k) {
      const Named named{{index, static_cast<int32_t>(k)}, op->type(static_cast<int>(k)), token};
      auto [it, inserted] = tensors_.emplace(names[k], named);
      if (!inserted) return Taken(token, names[k], it->second.token);
    }
    definitions_.push_back(token);
    used_.push_back(false);
    return OkStatus();
  }

  static Status Taken(const Token& token, std::string_view name, const Token& first) {
    return TokenStream::ErrorAt(
        token, fmt::format("the name {} is taken: it is defined in line {}", name, first.line));
  }

  Status CheckUses() {
    const bool computes = std::any_of(nodes_.begin(), nodes_.end(), [](const OpNode& node) {
      return !node.op->is_placeholder();
    });
    if (!computes) {
      return TokenStream::ErrorAt(
          tokens_.Peek(), "there is no output: expected an operator like C[i: 8] = A[i] + 1.0");
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (used_[i] || !nodes_[i].op->is_placeholder()) continue;
      return TokenStream::ErrorAt(definitions_[i],
                                  fmt::format("input {} is not used", definitions_[i].text));
    }
    return OkStatus();
  }

  TokenStream tokens_;
  const TokenStream start_ = tokens_;
  const std::span<const ParamValue> params_;
  std::shared_ptr<ir::ExprPool> pool_;
  std::map<std::string, int64_t, std::less<>> constants_;
  std::map<std::string, Named, std::less<>> tensors_;
  std::map<std::string, CustomCombinerPtr, std::less<>> combiners_;
  std::vector<OpNode> nodes_;
  // Reductions inside of the operator that is being parsed.
  std::vector<Inner> inner_;
  // Indexed by node.
  std::vector<Token> definitions_;
  // Indexed by node: true if the node is read.
  std::vector<bool> used_;
  std::vector<Ranged> ranges_;
  // Definition of a name that was read too early.
  std::optional<Token> later_;
};

}  // namespace

StatusOr<DagText> ParseDagText(std::string_view text, std::span<const ParamValue> params) {
  KILN_RETURN_IF_ERROR(CheckTextBytes("the text of the computation", text));
  KILN_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Tokenize(text));
  return Parser(std::move(tokens), params).Parse();
}

StatusOr<DagPtr> ParseDag(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(DagText parsed, ParseDagText(text));
  return std::move(parsed.dag);
}

}  // namespace kiln::dag
