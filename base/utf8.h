// Text of unknown origin on its way into a message: what a program printed, a loader's words.
// Messages carry valid UTF-8 only; one bad byte and the receiver refuses all of it.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

bool IsUtf8(std::string_view text);

// Bytes that are no UTF-8 become '?'.
std::string ValidUtf8(std::string_view text);

// What may go to a terminal: valid UTF-8, in which control characters but the line feed, those of
// two bytes (U+0080 to U+009F) among them, are spaces. Characters that cannot be seen, those that
// change the direction of what follows among them, stand as their numbers: "\u{202E}".
std::string Printable(std::string_view text);

// JSON with the same characters escaped as JSON has them: "\u202e". Its meaning stays.
std::string PrintableJson(std::string_view json);

// Valid UTF-8 on one line: control characters become spaces, none at the ends.
std::string OneLine(std::string_view text);

}  // namespace kiln
