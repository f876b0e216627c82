// Tokens of every text form of the compiler (expressions, DAGs, programs), and the cursor its
// parsers are written with.
//
// Tokens: names, numbers, symbols. Space and line ends separate, '#' starts a comment that ends
// with the line.
//   name    letter or '_', then letters, digits, '_', ''', '@', and '.' before a letter, digit or
//           '_': i.0@j.0@ is one name. Any other name, and a reserved one, stands in backquotes:
//           `a b`; in those \\, \` and \xHH escape.
//   number  12, 0.5, 1e-05; 0..64 is three tokens
//   symbol  && || // == != <= >= << >> -> .. += and single characters
// Errors name the place: "line 3, column 14: expected ']' after the indices, found ','". Columns
// count bytes from 1.
//
// A TokenStream refers to the text, which must outlive it. Any bytes are fine as input; a byte
// order mark at the start is skipped, a token longer than kMaxTokenBytes is refused. Cost: linear.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::ir {

inline constexpr size_t kMaxTokenBytes = 4096;

enum class TokenKind : uint8_t { kEnd, kName, kInt, kFloat, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  // True for a name in backquotes, which is never a keyword.
  bool is_quoted = false;
  // The text without backquotes and escapes for a quoted name.
  std::string_view text;
  int line = 1;
  int column = 1;

  bool is_symbol(std::string_view s) const { return kind == TokenKind::kSymbol && text == s; }
  bool is_word(std::string_view s) const {
    return kind == TokenKind::kName && !is_quoted && text == s;
  }
};

class TokenStream {
 public:
  static StatusOr<TokenStream> Tokenize(std::string_view text);

  // Returns the token `ahead` places on, or the end token past the end.
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[next_ + ahead < tokens_.size() ? next_ + ahead : tokens_.size() - 1];
  }
  const Token& Next() {
    const Token& token = Peek();
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  // Position of the next token. Seek goes back to a position of this stream.
  size_t position() const { return next_; }
  void Seek(size_t position) { next_ = position; }

  // Takes the next token if it is this symbol or word.
  bool TakeSymbol(std::string_view symbol);
  bool TakeWord(std::string_view word);

  // `where` continues the message: "expected ']' after the indices, found ','". It may be empty.
  Status ExpectSymbol(std::string_view symbol, std::string_view where = {});
  Status ExpectWord(std::string_view word, std::string_view where = {});
  Status ExpectEnd() const;
  // `what` describes the name: "expected the name of a buffer, found '('".
  StatusOr<std::string> ExpectName(std::string_view what);
  // Takes an int with an optional '-', in [lowest, highest].
  StatusOr<int64_t> ExpectInt(std::string_view what, int64_t lowest, int64_t highest);

  // Returns "line 3, column 14: expected <what>, found ','" for the next token.
  Status Expected(std::string_view what) const;
  // Returns "line 3, column 14: <message>".
  static Status ErrorAt(const Token& token, std::string_view message);

 private:
  friend class Lexer;
  // The last token is kEnd.
  std::vector<Token> tokens_;
  // Texts of quoted names.
  std::deque<std::string> unquoted_;
  size_t next_ = 0;
};

// Returns the name itself if it is a name by the rule above and not reserved, else the name in
// backquotes.
std::string NameText(std::string_view name);
// True for the words of expressions: functions, types, constants.
bool IsReservedWord(std::string_view name);

// Returns the value of a kInt token that fits in 64 bits, or of a kFloat or kInt token. Other
// tokens are an error.
StatusOr<uint64_t> IntTokenValue(const Token& token);
StatusOr<double> FloatTokenValue(const Token& token);

}  // namespace kiln::ir
