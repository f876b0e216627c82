#include "compiler/dag/parse_attributes.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "compiler/dag/input_range.h"
#include "compiler/dag/text_syntax.h"

namespace kiln::dag {

using ir::Token;
using ir::TokenStream;

namespace {

// Parses a literal with an optional minus.
StatusOr<double> Number(TokenStream& tokens) {
  const double sign = tokens.TakeSymbol("-") ? -1 : 1;
  const Token number = tokens.Next();
  if (number.kind != ir::TokenKind::kInt && number.kind != ir::TokenKind::kFloat) {
    return TokenStream::ErrorAt(number, "expected a number");
  }
  KILN_ASSIGN_OR_RETURN(const double value, ir::FloatTokenValue(number));
  return sign * value;
}

}  // namespace

Status ParseAttribute(TokenStream& tokens, Attrs& attrs) {
  tokens.Next();
  const Token token = tokens.Peek();
  KILN_ASSIGN_OR_RETURN(const std::string name, tokens.ExpectName("the name of an attribute"));
  if (name == "const_matrix") {
    attrs.const_matrix = true;
    return OkStatus();
  }
  for (const NameListAttribute& a : kNameListAttributes) {
    if (a.name != name) continue;
    KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("(", "after the attribute"));
    do {
      KILN_ASSIGN_OR_RETURN(std::string item, tokens.ExpectName("a name"));
      (attrs.*a.field).push_back(std::move(item));
    } while (tokens.TakeSymbol(","));
    return tokens.ExpectSymbol(")", "after the names");
  }
  for (const TextAttribute& a : kTextAttributes) {
    if (a.name != name) continue;
    KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("(", "after the attribute"));
    KILN_ASSIGN_OR_RETURN(attrs.*a.field, tokens.ExpectName("a name, or text in backquotes"));
    return tokens.ExpectSymbol(")", "after the text");
  }
  if (name == "flop") {
    KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("(", "after the attribute"));
    const Token number = tokens.Next();
    if (number.kind != ir::TokenKind::kInt && number.kind != ir::TokenKind::kFloat) {
      return TokenStream::ErrorAt(number, "expected a number of operations");
    }
    KILN_ASSIGN_OR_RETURN(attrs.flop, ir::FloatTokenValue(number));
    return tokens.ExpectSymbol(")", "after the number");
  }
  return TokenStream::ErrorAt(
      token, fmt::format("unknown attribute '{}', expected one of "
                         "simplify_const_tensor_indices, always_unroll_inner, "
                         "no_split_at_inner, layout_free_placeholders, "
                         "packed_placeholders, task_scheduler_tag, hash_body, flop, const_matrix"
                         " (keep_order stands at the start of the file, range "
                         "before an input)",
                         name));
}

Status ParseRange(TokenStream& tokens, double& low, double& high, int64_t* run) {
  KILN_RETURN_IF_ERROR(tokens.ExpectSymbol("(", "after the attribute"));
  KILN_ASSIGN_OR_RETURN(low, Number(tokens));
  KILN_RETURN_IF_ERROR(tokens.ExpectSymbol(",", "and the end of the range"));
  KILN_ASSIGN_OR_RETURN(high, Number(tokens));
  if (run != nullptr && tokens.TakeSymbol(",")) {
    const Token token = tokens.Peek();
    KILN_ASSIGN_OR_RETURN(const double number, Number(tokens));
    const StatusOr<int64_t> whole = RunOf(number);
    if (!whole.ok()) return TokenStream::ErrorAt(token, Message(whole.status()));
    *run = *whole;
  }
  return tokens.ExpectSymbol(")", "after the range");
}

}  // namespace kiln::dag
