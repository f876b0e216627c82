// The syntax of a schedule that is source: lines of Python that assign the results of calls. The
// meanings of names and calls are not known here (source/scope.h, source/source_call.h).
//
//   statement  [names "="] "s[" name "]." word ["(" arguments ")"]
//              [names "="] "s." word "(" arguments ")"
//   arguments  value or word=value, separated by ","
//   value      name, "s[" name "]", integer, "text", True, False, or "[" values "]" of such
// A statement ends with its line, except inside of brackets; "#" begins a comment. Errors name line
// and column, in bytes from 1. Cost: linear. Values refer to the text, which must outlive them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::schedule {

struct SourceToken {
  enum Kind : uint8_t { kEnd, kLineEnd, kName, kInt, kText, kSymbol };
  Kind kind = kEnd;
  // kText: without the quotes.
  std::string_view text = {};
  int line = 1, column = 1;

  bool Is(std::string_view symbol) const { return kind == kSymbol && text == symbol; }
};

// Returns "line 3, column 14: <message>".
Status SourceErrorAt(const SourceToken& token, std::string_view message);
// Returns "line 3, column 14: expected <what>, found 'x'".
Status SourceExpected(const SourceToken& token, std::string_view what);

struct SourceValue {
  enum Kind : uint8_t { kName, kInt, kText, kBool, kList };
  Kind kind = kName;
  // The token, or the "[" of a list.
  SourceToken at = {};
  // kInt: the number. kBool: 0 or 1.
  int64_t number = 0;
  // kList: the items, none of which is a list.
  std::vector<SourceValue> items;
};

struct SourceArgument {
  std::optional<SourceToken> keyword;
  SourceValue value;
};

struct SourceStatement {
  // The names on the left.
  std::vector<SourceToken> results;
  // The stage of s[stage].
  std::optional<SourceToken> stage;
  // A word like "split" or "axes".
  SourceToken word;
  // Brackets follow the word.
  bool has_arguments = false;
  std::vector<SourceArgument> arguments;
};

StatusOr<std::vector<SourceToken>> SourceTokens(std::string_view text);

// Reads the statements of a text one after the other.
class SourceSyntax {
 public:
  // `tokens` are the result of SourceTokens.
  explicit SourceSyntax(std::vector<SourceToken> tokens) : tokens_(std::move(tokens)) {}
  // Returns nullopt if there are no more statements.
  StatusOr<std::optional<SourceStatement>> Next();

 private:
  const SourceToken& Peek(size_t ahead = 0) const;
  SourceToken Take();
  bool TakeSymbol(std::string_view symbol);
  Status Expect(std::string_view symbol, std::string_view where);
  StatusOr<SourceToken> Name(std::string_view what);
  Status ReadResults(SourceStatement& statement);
  Status ReadArguments(SourceStatement& statement);
  StatusOr<SourceValue> ReadValue(bool in_list);

  // The last token is kEnd.
  const std::vector<SourceToken> tokens_;
  size_t next_ = 0;
};

}  // namespace kiln::schedule
