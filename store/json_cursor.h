// A strict JSON reader that walks a text from left to right, for formats of one known shape: the
// caller asks for what must come next, and a refusal names the column and what was found there.
//
// Does not own the text. Cost: linear, no tree is built; nesting is bounded, so no input exhausts
// the stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::store {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // Consumes `c` after white space if it is next.
  bool Take(char c);
  // The same, refusing anything else. `what` says what was expected: "the result array".
  Status Expect(char c, std::string_view what);
  // After an item of an array or object that ends with `close`: true when another item follows.
  StatusOr<bool> Next(char close);
  Status ExpectEnd();

  StatusOr<std::string> String(std::string_view what);  // decoded, UTF-8
  StatusOr<int64_t> Int(std::string_view what);
  StatusOr<double> Double(std::string_view what);  // finite
  // Any value, as text on one line: `, ` between items, `: ` after keys, strings and numbers as
  // they stand.
  StatusOr<std::string> Value(std::string_view what);
  // The same, behind what `out` has.
  Status AppendValue(std::string_view what, std::string& out);

  // InvalidArgument "column 12: expected <what>, found '...'".
  Status Error(std::string_view what);

 private:
  void SkipSpace();
  Status ErrorAt(size_t position, std::string_view what) const;
  StatusOr<std::string_view> StringToken(std::string_view what);
  StatusOr<std::string_view> NumberToken(std::string_view what);
  Status AppendNested(std::string_view what, int depth, std::string& out);
  Status AppendItems(char close, int depth, std::string& out);
  size_t PlainIntegersLength() const;

  std::string_view text_;
  size_t position_ = 0;
};

// `text` in quotes, with what JSON demands escaped; everything else as it is.
std::string JsonQuote(std::string_view text);

}  // namespace kiln::store
