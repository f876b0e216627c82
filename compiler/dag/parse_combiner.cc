#include "compiler/dag/parse_combiner.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/dag/check_combiner.h"
#include "compiler/dag/check_limits.h"
#include "compiler/dag/parse_attributes.h"
#include "compiler/dag/text_syntax.h"
#include "compiler/ir/text.h"

namespace kiln::dag {

using ir::Expr;
using ir::Token;
using ir::TokenStream;

namespace {

using Names = std::map<std::string, Expr, std::less<>>;

// Parses `(a: TYPE, ...; b, ...)`.
Status Parameters(TokenStream& tokens, ir::ExprPool& pool, CustomCombiner& combiner, Names& vars) {
  const auto define = [&](const Token& token, const std::string& name, size_t id, ir::Type type) {
    if (vars.emplace(name, pool.Var(static_cast<int32_t>(id), type)).second) return OkStatus();
    return TokenStream::ErrorAt(token, fmt::format("two parameters are called {}", name));
  };
  KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("(", "and the parts of two values"));
  std::vector<Token> lefts;
  do {
    CustomCombiner::Part part;
    if (tokens.TakeSymbol("@")) {
      KILN_RETURN_IF_ERROR(tokens.ExpectWord("range", "or the name of a parameter"));
      KILN_RETURN_IF_ERROR(ParseRange(tokens, part.low, part.high));
    }
    lefts.push_back(tokens.Peek());
    KILN_ASSIGN_OR_RETURN(part.left, tokens.ExpectName("the name of a parameter"));
    KILN_RETURN_IF_ERROR(tokens.ExpectSymbol(":", "and its type"));
    const Token type = tokens.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string type_name, tokens.ExpectName("a type like float32"));
    StatusOr<ir::Type> parsed = ir::ParseType(type_name);
    if (!parsed.ok()) return TokenStream::ErrorAt(type, Message(parsed.status()));
    part.type = *parsed;
    combiner.parts.push_back(std::move(part));
  } while (tokens.TakeSymbol(","));
  KILN_RETURN_IF_ERROR(tokens.ExpectSymbol(";", "and the names of the parts of the other value"));
  const size_t n = combiner.parts.size();
  for (size_t k = 0; k < n; ++k) {
    CustomCombiner::Part& part = combiner.parts[k];
    if (k > 0) KILN_RETURN_IF_ERROR(tokens.ExpectSymbol(",", "and as many names as before"));
    const Token token = tokens.Peek();
    KILN_ASSIGN_OR_RETURN(part.right, tokens.ExpectName("the name of a parameter"));
    KILN_RETURN_IF_ERROR(define(lefts[k], part.left, k, part.type));
    KILN_RETURN_IF_ERROR(define(token, part.right, n + k, part.type));
  }
  return tokens.ExpectSymbol(")", "after the names of both values");
}

// Parses an expression for each part of a combiner, in brackets if there are several.
Status PartsOf(TokenStream& tokens, ir::ExprPool& pool, const CustomCombiner& combiner,
               const ir::ExprScope& scope, std::vector<Expr>& expressions) {
  const bool several = combiner.parts.size() > 1;
  if (several) KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("(", "and a value for each part"));
  for (size_t k = 0; k < combiner.parts.size(); ++k) {
    if (k > 0) KILN_RETURN_IF_ERROR(tokens.ExpectSymbol(",", "and a value for each part"));
    KILN_ASSIGN_OR_RETURN(const Expr e, ir::ParseExpr(tokens, scope, pool, combiner.parts[k].type));
    expressions.push_back(e);
  }
  return several ? tokens.ExpectSymbol(")", "after the last part") : OkStatus();
}

}  // namespace

StatusOr<WrittenCombiner> ParseWrittenCombiner(
    TokenStream& tokens, const std::shared_ptr<ir::ExprPool>& pool,
    absl::FunctionRef<Expr(std::string_view name)> constant) {
  tokens.Next();
  const Token token = tokens.Peek();
  KILN_ASSIGN_OR_RETURN(const std::string name, tokens.ExpectName("the name of a combiner"));
  Combiner known;
  if (ParseCombiner(name, &known) || ir::IsReservedWord(name)) {
    return TokenStream::ErrorAt(
        token, fmt::format("{} is a word of the language, expected another name", name));
  }
  auto combiner = std::make_shared<CustomCombiner>();
  combiner->name = BaseName(name);
  combiner->pool = pool;
  Names vars;
  KILN_RETURN_IF_ERROR(Parameters(tokens, *pool, *combiner, vars));
  const ir::ExprScope scope{.var = [&](std::string_view parameter) -> Expr {
                              const auto it = vars.find(parameter);
                              return it != vars.end() ? it->second : constant(parameter);
                            },
                            .slot = [](std::string_view) { return std::nullopt; }};
  const ir::ExprScope no_names{.var = {}, .slot = {}};
  KILN_RETURN_IF_ERROR(tokens.ExpectWord("from", "and the value that a reduction starts from"));
  KILN_RETURN_IF_ERROR(PartsOf(tokens, *pool, *combiner, no_names, combiner->identity));
  KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("=", "and what two values become"));
  KILN_RETURN_IF_ERROR(PartsOf(tokens, *pool, *combiner, scope, combiner->results));
  const Status limits = CheckOperatorLimits(combiner->name, {}, {}, combiner->results);
  if (!limits.ok()) return TokenStream::ErrorAt(token, Message(limits));
  const Status status = CheckCustomCombiner(*combiner);
  if (!status.ok()) return TokenStream::ErrorAt(token, Message(status));
  return WrittenCombiner{token, name, std::move(combiner)};
}

}  // namespace kiln::dag
