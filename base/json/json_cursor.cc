#include "base/json/json_cursor.h"

#include <charconv>
#include <optional>

#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr int kMaxDepth = 32;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// Returns the four hex digits of \uXXXX at `at`; -1 if they are not four hex digits.
int32_t HexUnit(std::string_view token, size_t at) {
  if (at + 4 > token.size()) return -1;
  uint32_t unit = 0;
  const char* const first = token.data() + at;
  const auto [end, error] = std::from_chars(first, first + 4, unit, 16);
  return error == std::errc() && end == first + 4 ? static_cast<int32_t>(unit) : -1;
}

// Appends the escape whose letter stands at `at`, and moves `at` behind it. False: JSON has no such
// escape.
bool AppendEscape(std::string_view token, size_t& at, std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = token[at++];
  if (const size_t index = kLetters.find(letter); index != std::string_view::npos) {
    out += kMeanings[index];
    return true;
  }
  if (letter != 'u') return false;
  const int32_t unit = HexUnit(token, at);
  if (unit < 0) return false;
  at += 4;
  if (unit < 0xd800 || unit > 0xdfff) {
    AppendUtf8(unit, out);
    return true;
  }
  // A surrogate is valid only as the first of a pair.
  if (unit > 0xdbff || token.substr(at, 2) != "\\u") return false;
  const int32_t low = HexUnit(token, at + 2);
  if (low < 0xdc00 || low > 0xdfff) return false;
  at += 6;
  AppendUtf8(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), out);
  return true;
}

struct Integer {
  int64_t value;
  // Bytes of its text.
  size_t length;
};

// Returns the integer of 64 bits that the text begins with, in one pass, because lists of steps are
// mostly integers.
std::optional<Integer> IntegerOf(std::string_view text) {
  const char* const end = text.data() + text.size();
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  const char* const digits = text[0] == '-' ? text.data() + 1 : text.data();
  if (*digits == '0' && stop - digits > 1) return std::nullopt;
  if (stop != end && (*stop == '.' || *stop == 'e' || *stop == 'E')) return std::nullopt;
  return Integer{value, static_cast<size_t>(stop - text.data())};
}

// Returns the start of the text, fit for a message: a few whole characters, on one line.
std::string Shown(std::string_view text) {
  constexpr size_t kShownBytes = 24;
  if (text.size() <= kShownBytes) return OneLine(text);
  size_t length = kShownBytes;
  const auto continues = [&] { return (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80; };
  while (length > kShownBytes - 3 && continues()) --length;
  return OneLine(text.substr(0, length)) + "...";
}

}  // namespace

bool JsonCursor::TakeWord(std::string_view word) {
  SkipSpace();
  if (!text_.substr(position_).starts_with(word)) return false;
  position_ += word.size();
  return true;
}

Status JsonCursor::ErrorAt(size_t position, std::string_view what) const {
  if (position >= text_.size()) {
    return InvalidArgument("column {}: expected {}, found the end of the line", text_.size() + 1,
                           what);
  }
  return InvalidArgument("column {}: expected {}, found '{}'", position + 1, what,
                         Shown(text_.substr(position)));
}

Status JsonCursor::Error(std::string_view what) {
  SkipSpace();
  return ErrorAt(position_, what);
}

Status JsonCursor::Expect(char c, std::string_view what) {
  if (Take(c)) return OkStatus();
  return Error(fmt::format("'{}' ({})", c, what));
}

StatusOr<bool> JsonCursor::Next(char close) {
  if (Take(',')) return true;
  if (Take(close)) return false;
  return Error(fmt::format("',' or '{}'", close));
}

Status JsonCursor::ExpectEnd() {
  SkipSpace();
  return position_ == text_.size() ? OkStatus() : Error("the end of the line");
}

StatusOr<std::string_view> JsonCursor::StringToken(std::string_view what) {
  SkipSpace();
  const size_t begin = position_;
  if (!Take('"')) return Error(what);
  while (position_ < text_.size() && text_[position_] != '"') {
    if (static_cast<unsigned char>(text_[position_]) < 0x20) {
      return ErrorAt(position_, "no control character inside a string");
    }
    position_ += text_[position_] == '\\' ? 2 : 1;
  }
  if (position_ >= text_.size()) return ErrorAt(text_.size(), "the closing '\"' of a string");
  ++position_;
  return text_.substr(begin, position_ - begin);
}

StatusOr<std::string_view> JsonCursor::PlainString(std::string_view what) {
  SkipSpace();
  const size_t begin = position_;
  KILN_ASSIGN_OR_RETURN(const std::string_view token, StringToken(what));
  if (const size_t escape = token.find('\\'); escape != std::string_view::npos) {
    return ErrorAt(begin + escape, fmt::format("{} without escapes", what));
  }
  return token.substr(1, token.size() - 2);
}

StatusOr<std::string> JsonCursor::String(std::string_view what) {
  SkipSpace();
  const size_t begin = position_;
  KILN_ASSIGN_OR_RETURN(std::string_view token, StringToken(what));
  token = token.substr(1, token.size() - 2);
  if (token.find('\\') == std::string_view::npos) return std::string(token);
  std::string decoded;
  for (size_t at = 0; at < token.size();) {
    if (token[at] != '\\') {
      decoded += token[at++];
      continue;
    }
    const size_t escape = at++;
    if (!AppendEscape(token, at, decoded)) return ErrorAt(begin + 1 + escape, "an escape of JSON");
  }
  return decoded;
}

// Returns the number that stands here, or "" if none does.
std::string_view JsonCursor::NumberAhead() const {
  size_t at = position_;
  const auto now = [&] { return at < text_.size() ? text_[at] : '\0'; };
  const auto digits = [&] {
    const size_t first = at;
    while (IsDigit(now())) ++at;
    return at > first;
  };
  if (now() == '-') ++at;
  if (now() == '0') {
    ++at;
  } else if (!digits()) {
    return {};
  }
  if (now() == '.') {
    ++at;
    if (!digits()) return {};
  }
  if (now() == 'e' || now() == 'E') {
    ++at;
    if (now() == '+' || now() == '-') ++at;
    if (!digits()) return {};
  }
  return text_.substr(position_, at - position_);
}

StatusOr<std::string_view> JsonCursor::NumberToken(std::string_view what) {
  SkipSpace();
  const std::string_view number = NumberAhead();
  if (number.empty()) return Error(what);
  position_ += number.size();
  return number;
}

bool JsonCursor::IsIntNext() const {
  JsonCursor ahead = *this;
  ahead.SkipSpace();
  const std::string_view number = ahead.NumberAhead();
  return !number.empty() && number.find_first_of(".eE") == std::string_view::npos;
}

StatusOr<int64_t> JsonCursor::Int(std::string_view what) {
  SkipSpace();
  const std::optional<Integer> integer = IntegerOf(text_.substr(position_));
  if (integer.has_value()) {
    position_ += integer->length;
    return integer->value;
  }
  if (NumberAhead().empty()) return Error(what);
  return Error(fmt::format("{}, an integer of 64 bits", what));
}

StatusOr<int64_t> JsonCursor::Int(std::string_view what, int64_t low, int64_t high) {
  SkipSpace();
  const std::optional<Integer> integer = IntegerOf(text_.substr(position_));
  if (!integer.has_value() || integer->value < low || integer->value > high) {
    return Error(fmt::format("{} as an integer from {} to {}", what, low, high));
  }
  position_ += integer->length;
  return integer->value;
}

StatusOr<double> JsonCursor::Double(std::string_view what) {
  SkipSpace();
  const size_t begin = position_;
  KILN_ASSIGN_OR_RETURN(const std::string_view token, NumberToken(what));
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc::result_out_of_range) {
    return ErrorAt(begin, fmt::format("{}, within the range of a double", what));
  }
  return value;
}

// Returns the length of a list of integers with `, ` between them, from here to its closing bracket
// inclusive; 0 if something else stands here, or the list is spaced differently.
size_t JsonCursor::PlainIntegersLength() const {
  size_t at = position_;
  while (true) {
    const size_t sign = at < text_.size() && text_[at] == '-' ? 1 : 0;
    const size_t first = at + sign;
    at = first;
    while (at < text_.size() && IsDigit(text_[at])) ++at;
    const bool is_number = at == first + 1 || (at > first && text_[first] != '0');
    if (!is_number || at == text_.size()) return 0;
    if (text_[at] == ']') return at + 1 - position_;
    if (text_[at] != ',' || at + 1 >= text_.size() || text_[at + 1] != ' ') return 0;
    at += 2;
  }
}

Status JsonCursor::AppendItems(char close, int depth, std::string& out) {
  if (Take(close)) {
    out += close;
    return OkStatus();
  }
  // Most lists in steps are lists of integers: they are copied at once.
  if (close == ']' && depth < kMaxDepth) {
    const size_t length = PlainIntegersLength();
    out += text_.substr(position_, length);
    position_ += length;
    if (length > 0) return OkStatus();
  }
  bool more = true;
  while (more) {
    if (close == '}') {
      KILN_ASSIGN_OR_RETURN(const std::string_view key, StringToken("a key in quotes"));
      KILN_RETURN_IF_ERROR(Expect(':', "after a key"));
      out += key;
      out += ": ";
    }
    KILN_RETURN_IF_ERROR(AppendNested("a value", depth + 1, out));
    KILN_ASSIGN_OR_RETURN(more, Next(close));
    if (more) out += ", ";
  }
  out += close;
  return OkStatus();
}

Status JsonCursor::AppendNested(std::string_view what, int depth, std::string& out) {
  SkipSpace();
  if (depth > kMaxDepth) return Error(fmt::format("at most {} levels of brackets", kMaxDepth));
  const size_t begin = position_;
  const char c = begin < text_.size() ? text_[begin] : '\0';
  if (c == '[' || c == '{') {
    ++position_;
    out += c;
    return AppendItems(c == '[' ? ']' : '}', depth, out);
  }
  if (c == '"') {
    KILN_ASSIGN_OR_RETURN(const std::string_view token, StringToken(what));
    // Decodes a token that has an escape, so that a broken escape is refused here and not by a
    // later reader.
    if (token.find('\\') != std::string_view::npos) {
      position_ = begin;
      KILN_RETURN_IF_ERROR(String(what).status());
    }
    out += token;
    return OkStatus();
  }
  for (const std::string_view word : {"null", "true", "false"}) {
    if (c != word[0] || !TakeWord(word)) continue;
    out += word;
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const std::string_view number, NumberToken(what));
  out += number;
  return OkStatus();
}

StatusOr<std::string> JsonCursor::Value(std::string_view what) {
  std::string value;
  KILN_RETURN_IF_ERROR(AppendNested(what, 0, value));
  return value;
}

Status JsonCursor::AppendValue(std::string_view what, std::string& out) {
  return AppendNested(what, 0, out);
}

std::string JsonQuote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          quoted += fmt::format("\\u{:04x}", c);
        } else {
          quoted += c;
        }
    }
  }
  return quoted += '"';
}

}  // namespace kiln
