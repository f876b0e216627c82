// Words of commands that a user can paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// Returns the word, in quotes if a shell needs them.
std::string ShellWord(std::string_view word);

// Returns the first line of a text without the line's end.
std::string FirstLine(std::string_view text);

}  // namespace kiln
