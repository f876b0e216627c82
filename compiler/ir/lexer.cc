#include "compiler/ir/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "compiler/ir/expr.h"

namespace kiln::ir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool StartsName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordChar(char c) { return StartsName(c) || IsDigit(c); }

constexpr std::array<std::string_view, 12> kPairs = {
    "&&", "||", "//", "==", "!=", "<=", ">=", "<<", ">>", "->", "..", "+="};
constexpr std::string_view kSingles = "+-*/%<>!()[]{},:;=.?|&^~$@'\"\\";

// Returns the length of the name at the start of `text`, or 0 if there is none.
size_t NameLength(std::string_view text) {
  if (text.empty() || !StartsName(text[0])) return 0;
  size_t n = 1;
  for (; n < text.size(); ++n) {
    const char c = text[n];
    if (IsWordChar(c) || c == '\'' || c == '@') continue;
    if (c == '.' && n + 1 < text.size() && IsWordChar(text[n + 1])) continue;
    break;
  }
  return n;
}

std::string CharText(char c) {
  if (c >= ' ' && c < 0x7f) return fmt::format("'{}'", c);
  return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

std::string TokenText(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end";
    case TokenKind::kName:
      return NameText(token.text) == token.text || IsReservedWord(token.text)
                 ? fmt::format("'{}'", token.text)
                 : NameText(token.text);
    default:
      return fmt::format("'{}'", token.text);
  }
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

class Lexer {
 public:
  Lexer(std::string_view text, TokenStream& out) : text_(text), out_(out) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Status Run() {
    while (true) {
      SkipSpace();
      Token token;
      token.line = line_;
      token.column = static_cast<int>(at_ - line_start_) + 1;
      if (at_ == text_.size()) {
        out_.tokens_.push_back(token);
        return OkStatus();
      }
      KILN_RETURN_IF_ERROR(Read(token));
      if (token.text.size() > kMaxTokenBytes) {
        return TokenStream::ErrorAt(token, fmt::format("a name or number of {} bytes, expected at "
                                                       "most {}",
                                                       token.text.size(), kMaxTokenBytes));
      }
      out_.tokens_.push_back(token);
    }
  }

 private:
  void SkipSpace() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  void Take(Token& token, TokenKind kind, size_t length) {
    token.kind = kind;
    token.text = text_.substr(at_, length);
    at_ += length;
  }

  Status Read(Token& token) {
    const std::string_view rest = text_.substr(at_);
    if (const size_t length = NameLength(rest)) {
      Take(token, TokenKind::kName, length);
      return OkStatus();
    }
    if (rest[0] == '`') return ReadQuoted(token);
    if (IsDigit(rest[0])) return ReadNumber(token);
    for (std::string_view pair : kPairs) {
      if (rest.starts_with(pair)) {
        Take(token, TokenKind::kSymbol, 2);
        return OkStatus();
      }
    }
    if (kSingles.find(rest[0]) == std::string_view::npos) {
      return TokenStream::ErrorAt(token, fmt::format("unexpected {}", CharText(rest[0])));
    }
    Take(token, TokenKind::kSymbol, 1);
    return OkStatus();
  }

  Status ReadNumber(Token& token) {
    const std::string_view rest = text_.substr(at_);
    auto digits = [&](size_t i) {
      while (i < rest.size() && IsDigit(rest[i])) ++i;
      return i;
    };
    auto at = [&](size_t i) { return i < rest.size() ? rest[i] : '\0'; };
    size_t n = digits(0);
    TokenKind kind = TokenKind::kInt;
    if (at(n) == '.' && at(n + 1) != '.') {
      kind = TokenKind::kFloat;
      n = digits(n + 1);
    }
    if (at(n) == 'e' || at(n) == 'E') {
      const size_t sign = at(n + 1) == '+' || at(n + 1) == '-' ? 1 : 0;
      if (IsDigit(at(n + 1 + sign))) {
        kind = TokenKind::kFloat;
        n = digits(n + 1 + sign);
      }
    }
    if (n < rest.size() && IsWordChar(rest[n])) {
      return TokenStream::ErrorAt(
          token, fmt::format("a number ends in {}: names start with a letter", CharText(rest[n])));
    }
    Take(token, kind, n);
    return OkStatus();
  }

  Status ReadQuoted(Token& token) {
    std::string name;
    for (size_t i = at_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      char c = text_[i];
      if (c == '`') {
        at_ = i + 1;
        token.kind = TokenKind::kName;
        token.is_quoted = true;
        token.text = out_.unquoted_.emplace_back(std::move(name));
        return OkStatus();
      }
      if (c == '\\') {
        const char escaped = i + 1 < text_.size() ? text_[i + 1] : '\0';
        const int high = i + 2 < text_.size() ? HexDigit(text_[i + 2]) : -1;
        const int low = i + 3 < text_.size() ? HexDigit(text_[i + 3]) : -1;
        if (escaped == '\\' || escaped == '`') {
          c = escaped;
          ++i;
        } else if (escaped == 'x' && high >= 0 && low >= 0) {
          c = static_cast<char>(high * 16 + low);
          i += 3;
        } else {
          return TokenStream::ErrorAt(token,
                                      "unknown escape in a quoted name: know \\\\, \\` and \\xHH");
        }
      }
      name += c;
    }
    return TokenStream::ErrorAt(token, "this quoted name does not end on its line");
  }

  std::string_view text_;
  TokenStream& out_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

StatusOr<TokenStream> TokenStream::Tokenize(std::string_view text) {
  TokenStream stream;
  KILN_RETURN_IF_ERROR(Lexer(text, stream).Run());
  return stream;
}

bool TokenStream::TakeSymbol(std::string_view symbol) {
  if (!Peek().is_symbol(symbol)) return false;
  Next();
  return true;
}

bool TokenStream::TakeWord(std::string_view word) {
  if (!Peek().is_word(word)) return false;
  Next();
  return true;
}

namespace {
std::string QuotedWhere(std::string_view what, std::string_view where) {
  return where.empty() ? fmt::format("'{}'", what) : fmt::format("'{}' {}", what, where);
}
}  // namespace

Status TokenStream::ExpectSymbol(std::string_view symbol, std::string_view where) {
  return TakeSymbol(symbol) ? OkStatus() : Expected(QuotedWhere(symbol, where));
}

Status TokenStream::ExpectWord(std::string_view word, std::string_view where) {
  return TakeWord(word) ? OkStatus() : Expected(QuotedWhere(word, where));
}

Status TokenStream::ExpectEnd() const { return AtEnd() ? OkStatus() : Expected("the end"); }

StatusOr<std::string> TokenStream::ExpectName(std::string_view what) {
  if (Peek().kind != TokenKind::kName) return Expected(what);
  return std::string(Next().text);
}

StatusOr<int64_t> TokenStream::ExpectInt(std::string_view what, int64_t lowest, int64_t highest) {
  const bool negative = TakeSymbol("-");
  const Token& token = Peek();
  if (token.kind != TokenKind::kInt) return Expected(what);
  KILN_ASSIGN_OR_RETURN(const uint64_t magnitude, IntTokenValue(token));
  const auto value = static_cast<int64_t>(negative ? -magnitude : magnitude);
  const bool overflows = magnitude > static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (overflows || value < lowest || value > highest) {
    return ErrorAt(token, fmt::format("expected {} from {} to {}, found {}{}", what, lowest,
                                      highest, negative ? "-" : "", token.text));
  }
  Next();
  return value;
}

Status TokenStream::Expected(std::string_view what) const {
  return ErrorAt(Peek(), fmt::format("expected {}, found {}", what, TokenText(Peek())));
}

Status TokenStream::ErrorAt(const Token& token, std::string_view message) {
  return InvalidArgument("line {}, column {}: {}", token.line, token.column, message);
}

bool IsReservedWord(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kWords = {"min",  "max",   "select", "if",
                                                             "true", "false", "inf",    "nan"};
  return std::find(kWords.begin(), kWords.end(), name) != kWords.end() || ParseType(name).ok() ||
         ParseIntrinsic(name).ok();
}

std::string NameText(std::string_view name) {
  if (!name.empty() && NameLength(name) == name.size() && !IsReservedWord(name)) {
    return std::string(name);
  }
  std::string quoted = "`";
  for (char c : name) {
    if (c == '\\' || c == '`') {
      quoted += '\\';
      quoted += c;
    } else if (c >= ' ' && c < 0x7f) {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return quoted + "`";
}

StatusOr<uint64_t> IntTokenValue(const Token& token) {
  uint64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto result = std::from_chars(token.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    return TokenStream::ErrorAt(token, fmt::format("{} does not fit 64 bits", token.text));
  }
  return value;
}

StatusOr<double> FloatTokenValue(const Token& token) {
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto result = std::from_chars(token.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    return TokenStream::ErrorAt(token, fmt::format("{} does not fit float64", token.text));
  }
  return value;
}

}  // namespace kiln::ir
