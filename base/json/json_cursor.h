// A strict JSON reader that walks a text from left to right, for formats of one known shape: the
// caller asks for the value that must come next, and a refusal names the column and the text that
// stands there.
//
// The text is one line and must outlive the cursor. Columns count bytes from 1. Cost: linear, no
// tree is built. Nesting is bounded, so no input exhausts the stack. A copy of a cursor looks ahead
// without moving the original.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // Returns the next character after white space; '\0' at the end of the text.
  char Peek() {
    SkipSpace();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  // Consumes `c` if it comes next after white space.
  bool Take(char c) {
    SkipSpace();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  // Consumes the word (null, true, false) if it comes next after white space.
  bool TakeWord(std::string_view word);
  // Like Take(), but refuses anything else. `what` names what was expected: "the result array".
  Status Expect(char c, std::string_view what);
  // Call it after an item of an array or object that ends with `close`. Returns true if another
  // item follows.
  StatusOr<bool> Next(char close);
  // Reads an array, and calls `item` for each of its items, which must consume the item and return
  // a Status.
  template <typename Item>
  Status Array(std::string_view what, const Item& item) {
    KILN_RETURN_IF_ERROR(Expect('[', what));
    bool more = !Take(']');
    while (more) {
      KILN_RETURN_IF_ERROR(item());
      KILN_ASSIGN_OR_RETURN(more, Next(']'));
    }
    return OkStatus();
  }
  Status ExpectEnd();

  // Returns the decoded string in UTF-8.
  StatusOr<std::string> String(std::string_view what);
  // Returns a part of the text. Refuses a string with an escape.
  StatusOr<std::string_view> PlainString(std::string_view what);
  StatusOr<int64_t> Int(std::string_view what);
  // Returns an integer from `low` to `high`. Refusals name both.
  StatusOr<int64_t> Int(std::string_view what, int64_t low, int64_t high);
  // Returns a finite number.
  StatusOr<double> Double(std::string_view what);
  // Returns true if a number comes next that has neither a fraction nor an exponent.
  bool IsIntNext() const;
  // Reads any value and returns it as text on one line: `, ` between items, `: ` after keys,
  // strings and numbers unchanged.
  StatusOr<std::string> Value(std::string_view what);
  // Does the same, and appends the text to `out`.
  Status AppendValue(std::string_view what, std::string& out);

  // Returns InvalidArgument "column 12: expected <what>, found '...'".
  Status Error(std::string_view what);

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  // Readers of steps spend most of their time here, so these few lines are inlined.
  void SkipSpace() {
    while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;
  }
  Status ErrorAt(size_t position, std::string_view what) const;
  StatusOr<std::string_view> StringToken(std::string_view what);
  std::string_view NumberAhead() const;
  StatusOr<std::string_view> NumberToken(std::string_view what);
  Status AppendNested(std::string_view what, int depth, std::string& out);
  Status AppendItems(char close, int depth, std::string& out);
  size_t PlainIntegersLength() const;

  std::string_view text_;
  size_t position_ = 0;
};

// Returns `text` in quotes. Characters that JSON demands to escape are escaped, all others
// unchanged.
std::string JsonQuote(std::string_view text);

}  // namespace kiln
