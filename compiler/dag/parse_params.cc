#include "compiler/dag/parse_params.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace kiln::dag {

using ir::Token;
using ir::TokenStream;

Status CheckParams(const TokenStream& tokens, std::span<const ParamValue> params) {
  std::vector<std::string> known, missing;
  Token first = {};
  for (size_t i = 0; tokens.Peek(i).kind != ir::TokenKind::kEnd; ++i) {
    if (!tokens.Peek(i).is_word("param")) continue;
    const Token& name = tokens.Peek(i + 1);
    if (name.kind != ir::TokenKind::kName) continue;
    known.emplace_back(name.text);
    const bool is_given = std::ranges::find(params, name.text, &ParamValue::name) != params.end();
    if (is_given || tokens.Peek(i + 2).is_symbol("=")) continue;
    if (missing.empty()) first = name;
    missing.push_back(known.back());
  }
  if (!missing.empty()) {
    return TokenStream::ErrorAt(
        first, fmt::format("{} {} no value: give {} with --let {}=...", fmt::join(missing, ", "),
                           missing.size() == 1 ? "has" : "have",
                           missing.size() == 1 ? "it" : "each", fmt::join(missing, "=... --let ")));
  }
  for (const ParamValue& param : params) {
    if (std::ranges::find(known, param.name) != known.end()) continue;
    return InvalidArgument(
        "{}={}: the computation has no param {}; {}", param.name, param.value, param.name,
        known.empty() ? "it has none" : fmt::format("it has {}", fmt::join(known, ", ")));
  }
  return OkStatus();
}

StatusOr<ParamValue> ParseParamValue(std::string_view text) {
  const size_t equals = text.find('=');
  ParamValue param;
  if (equals != std::string_view::npos && equals > 0) {
    param.name = std::string(text.substr(0, equals));
    const std::string_view digits = text.substr(equals + 1);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), param.value);
    if (result.ec == std::errc() && result.ptr == digits.data() + digits.size() &&
        param.value > INT64_MIN / 4 && param.value < INT64_MAX / 4)
      return param;
  }
  return InvalidArgument("value '{}' of a param: expected NAME=NUMBER, for instance N=512", text);
}

}  // namespace kiln::dag
