// Cleans text of unknown origin for messages, for instance a program's output or a loader's words.
// Messages carry valid UTF-8 only: a receiver refuses the whole message for one bad byte.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

bool IsUtf8(std::string_view text);

// Replaces bytes that are no UTF-8 by '?'.
std::string ValidUtf8(std::string_view text);

// Returns text that may go to a terminal: valid UTF-8 in which all control characters but the line
// feed are spaces, also those of two bytes (U+0080 to U+009F). Characters that cannot be seen, or
// that change the direction of the text, are written as their numbers: "\u{202E}".
std::string Printable(std::string_view text);

// Escapes the same characters as JSON does: "\u202e". The meaning of the JSON stays.
std::string PrintableJson(std::string_view json);

// Returns valid UTF-8 on one line. Control characters become spaces, and there are no spaces at the
// ends.
std::string OneLine(std::string_view text);

}  // namespace kiln
