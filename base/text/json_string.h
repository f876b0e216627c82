// Writes text as JSON has it.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// Appends the text in quotes. Bytes that are no UTF-8 become '?', and control characters, invisible
// characters and those that change the direction of the text become escapes, so that the line may
// go to a terminal.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace kiln
