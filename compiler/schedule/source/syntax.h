// The syntax of a schedule that is source: lines of Python that assign the results of calls. What
// the names and calls mean is not known here (source/scope.h, source/call.h).
//
//   statement  [names "="] "s[" name "]." word ["(" arguments ")"]
//              [names "="] "s." word "(" arguments ")"
//   arguments  value or word=value, separated by ","
//   value      name, "s[" name "]", integer, "text", True, False, or "[" values "]" of such
// A statement ends with its line, except inside of brackets; "#" begins a comment. Errors name line
// and column, in bytes from 1. Cost: linear. Values that refer to the text, which must outlive them.
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
  std::string_view text = {};  // of kText: without the quotes
  int line = 1, column = 1;

  bool Is(std::string_view symbol) const { return kind == kSymbol && text == symbol; }
};

// "line 3, column 14: <message>"
Status SourceErrorAt(const SourceToken& token, std::string_view message);
// "line 3, column 14: expected <what>, found 'x'"
Status SourceExpected(const SourceToken& token, std::string_view what);

struct SourceValue {
  enum Kind : uint8_t { kName, kInt, kText, kBool, kList };
  Kind kind = kName;
  SourceToken at = {};             // the token; of a list its "["
  int64_t number = 0;              // kInt; kBool: 0 or 1
  std::vector<SourceValue> items;  // kList: no lists among them
};

struct SourceArgument {
  std::optional<SourceToken> keyword;
  SourceValue value;
};

struct SourceStatement {
  std::vector<SourceToken> results;  // the names on the left
  std::optional<SourceToken> stage;  // of s[stage]
  SourceToken word;                  // "split", "axes"
  bool has_arguments = false;        // brackets follow the word
  std::vector<SourceArgument> arguments;
};

StatusOr<std::vector<SourceToken>> SourceTokens(std::string_view text);

// Reads the statements of a text one after the other.
class SourceSyntax {
 public:
  // Of SourceTokens.
  explicit SourceSyntax(std::vector<SourceToken> tokens) : tokens_(std::move(tokens)) {}
  // nullopt: there are no more.
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

  const std::vector<SourceToken> tokens_;  // the last one is kEnd
  size_t next_ = 0;
};

}  // namespace kiln::schedule
