// A word of a command that a user can paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// In quotes where a shell would need them.
std::string ShellWord(std::string_view word);

// Of a text of several lines, without the line's end.
std::string FirstLine(std::string_view text);

}  // namespace kiln
