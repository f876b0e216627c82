#include "compiler/schedule/source/syntax.h"

#include <algorithm>
#include <charconv>

namespace kiln::schedule {
namespace {

constexpr size_t kMaxWordBytes = 4096;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool StartsName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordChar(char c) { return StartsName(c) || IsDigit(c); }

std::string CharText(char c) {
  if (c >= ' ' && c < 0x7f) return fmt::format("'{}'", c);
  return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

std::string TokenText(const SourceToken& token) {
  constexpr size_t kMax = 60;
  const std::string_view text = token.text.substr(0, kMax);
  switch (token.kind) {
    case SourceToken::kEnd:
      return "the end";
    case SourceToken::kLineEnd:
      return "the end of the line";
    case SourceToken::kText:
      return fmt::format("\"{}\"", text);
    default:
      return fmt::format("'{}'", text);
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  StatusOr<std::vector<SourceToken>> Run() {
    while (at_ < text_.size()) KILN_RETURN_IF_ERROR(Read());
    Add(SourceToken::kLineEnd, 0);
    Add(SourceToken::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  Status Read() {
    const char c = text_[at_];
    if (c == '\n') {
      if (depth_ == 0) Add(SourceToken::kLineEnd, 0);
      ++at_;
      ++line_;
      line_start_ = at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (IsWordChar(c)) {
      return ReadWord();
    } else if (c == '"' || c == '\'') {
      return ReadText(c);
    } else {
      return ReadSymbol(c);
    }
    return OkStatus();
  }

  Status ReadWord() {
    size_t length = 1;
    const bool is_name = StartsName(text_[at_]);
    while (at_ + length < text_.size() && IsWordChar(text_[at_ + length])) {
      if (!is_name && !IsDigit(text_[at_ + length])) {
        return SourceErrorAt(Here(), "a number ends in a letter: expected digits alone");
      }
      ++length;
    }
    if (length > kMaxWordBytes) {
      return SourceErrorAt(
          Here(), fmt::format("a word of {} bytes, expected at most {}", length, kMaxWordBytes));
    }
    Add(is_name ? SourceToken::kName : SourceToken::kInt, length);
    return OkStatus();
  }

  Status ReadText(char quote) {
    const size_t end = text_.find_first_of(quote == '"' ? "\"\n" : "'\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n')
      return SourceErrorAt(Here(), "this text does not end on its line: expected a closing quote");
    if (end - at_ > kMaxWordBytes) {
      return SourceErrorAt(Here(), fmt::format("a text of {} bytes, expected at most {}",
                                               end - at_ - 1, kMaxWordBytes));
    }
    SourceToken token = Here();
    token.kind = SourceToken::kText;
    token.text = text_.substr(at_ + 1, end - at_ - 1);
    tokens_.push_back(token);
    at_ = end + 1;
    return OkStatus();
  }

  Status ReadSymbol(char c) {
    if (std::string_view("=,.()[]-").find(c) == std::string_view::npos) {
      return SourceErrorAt(Here(), fmt::format("unexpected {}: expected a statement such as "
                                               "a, b = s[C].split(i, factor=4)",
                                               CharText(c)));
    }
    if (c == '(' || c == '[') ++depth_;
    if ((c == ')' || c == ']') && depth_ > 0) --depth_;
    Add(SourceToken::kSymbol, 1);
    return OkStatus();
  }

  SourceToken Here() const {
    SourceToken token;
    token.line = line_;
    token.column = static_cast<int>(at_ - line_start_) + 1;
    return token;
  }

  void Add(SourceToken::Kind kind, size_t length) {
    SourceToken token = Here();
    token.kind = kind;
    token.text = text_.substr(at_, length);
    tokens_.push_back(token);
    at_ += length;
  }

  const std::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  // Depth of brackets.
  int depth_ = 0;
  std::vector<SourceToken> tokens_;
};

}  // namespace

Status SourceErrorAt(const SourceToken& token, std::string_view message) {
  return InvalidArgument("line {}, column {}: {}", token.line, token.column, message);
}

Status SourceExpected(const SourceToken& token, std::string_view what) {
  return SourceErrorAt(token, fmt::format("expected {}, found {}", what, TokenText(token)));
}

StatusOr<std::vector<SourceToken>> SourceTokens(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return Lexer(text).Run();
}

const SourceToken& SourceSyntax::Peek(size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

SourceToken SourceSyntax::Take() {
  const SourceToken token = Peek();
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool SourceSyntax::TakeSymbol(std::string_view symbol) {
  if (!Peek().Is(symbol)) return false;
  Take();
  return true;
}

Status SourceSyntax::Expect(std::string_view symbol, std::string_view where) {
  if (TakeSymbol(symbol)) return OkStatus();
  return SourceExpected(Peek(), fmt::format("'{}' {}", symbol, where));
}

StatusOr<SourceToken> SourceSyntax::Name(std::string_view what) {
  if (Peek().kind != SourceToken::kName) return SourceExpected(Peek(), what);
  return Take();
}

Status SourceSyntax::ReadResults(SourceStatement& statement) {
  if (!Peek(1).Is(",") && !Peek(1).Is("=")) return OkStatus();
  do {
    // The list may end with a comma, as in "i, = ...".
    if (Peek().Is("=") && !statement.results.empty()) break;
    KILN_ASSIGN_OR_RETURN(const SourceToken name, Name("a name for a result"));
    statement.results.push_back(name);
  } while (TakeSymbol(","));
  return Expect("=", "after the names of the results");
}

StatusOr<std::optional<SourceStatement>> SourceSyntax::Next() {
  while (Peek().kind == SourceToken::kLineEnd) Take();
  if (Peek().kind == SourceToken::kEnd) return std::nullopt;
  SourceStatement statement;
  KILN_RETURN_IF_ERROR(ReadResults(statement));
  if (Peek().kind != SourceToken::kName || Peek().text != "s")
    return SourceExpected(Peek(), "s[STAGE].PRIMITIVE(...) or s.PRIMITIVE(...)");
  Take();
  if (TakeSymbol("[")) {
    KILN_ASSIGN_OR_RETURN(statement.stage, Name("the name of a stage"));
    KILN_RETURN_IF_ERROR(Expect("]", "after the stage"));
  }
  KILN_RETURN_IF_ERROR(Expect(".", "before the primitive"));
  KILN_ASSIGN_OR_RETURN(statement.word, Name("a primitive"));
  if (TakeSymbol("(")) KILN_RETURN_IF_ERROR(ReadArguments(statement));
  if (Peek().kind != SourceToken::kLineEnd)
    return SourceExpected(Peek(), "the end of the statement");
  return statement;
}

Status SourceSyntax::ReadArguments(SourceStatement& statement) {
  statement.has_arguments = true;
  while (!TakeSymbol(")")) {
    SourceArgument argument;
    if (Peek().kind == SourceToken::kName && Peek(1).Is("=")) {
      argument.keyword = Take();
      Take();
    } else if (!statement.arguments.empty() && statement.arguments.back().keyword) {
      return SourceExpected(Peek(), "WORD=VALUE, as the argument before has it");
    }
    KILN_ASSIGN_OR_RETURN(argument.value, ReadValue(/*in_list=*/false));
    statement.arguments.push_back(std::move(argument));
    if (!TakeSymbol(",") && !Peek().Is(")"))
      return SourceExpected(Peek(), "',' or ')' after the argument");
  }
  return OkStatus();
}

StatusOr<SourceValue> SourceSyntax::ReadValue(bool in_list) {
  SourceValue value;
  const bool negative = TakeSymbol("-");
  value.at = Peek();
  if (value.at.kind == SourceToken::kInt) {
    value.kind = SourceValue::kInt;
    const char* const end = value.at.text.data() + value.at.text.size();
    const auto [stop, error] = std::from_chars(value.at.text.data(), end, value.number);
    if (error != std::errc() || stop != end) return SourceExpected(value.at, "a 64-bit number");
    if (negative) value.number = -value.number;
    Take();
    return value;
  }
  if (negative) return SourceExpected(value.at, "a number after '-'");
  if (!in_list && TakeSymbol("[")) {
    value.kind = SourceValue::kList;
    while (!TakeSymbol("]")) {
      KILN_ASSIGN_OR_RETURN(SourceValue item, ReadValue(/*in_list=*/true));
      value.items.push_back(std::move(item));
      if (!TakeSymbol(",") && !Peek().Is("]"))
        return SourceExpected(Peek(), "',' or ']' after the item");
    }
    return value;
  }
  if (value.at.kind == SourceToken::kText) {
    value.kind = SourceValue::kText;
  } else if (value.at.kind == SourceToken::kName && value.at.text == "s" && Peek(1).Is("[")) {
    Take();
    Take();
    KILN_ASSIGN_OR_RETURN(value.at, Name("the name of a stage"));
    KILN_RETURN_IF_ERROR(Expect("]", "after the stage"));
    return value;
  } else if (value.at.kind == SourceToken::kName) {
    const bool is_true = value.at.text == "True";
    if (is_true || value.at.text == "False") {
      value.kind = SourceValue::kBool;
      value.number = is_true;
    }
  } else {
    return SourceExpected(
        value.at, in_list ? "a name, a number or a text" : "a name, a number, a text or a list");
  }
  Take();
  return value;
}

}  // namespace kiln::schedule
