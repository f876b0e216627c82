// Texts with blanks. A blank is a '$' and a name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::instructions {

using Replacements = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Returns the text with a value in place of each blank, as in {{"$N", "a"}, {"$P", "b"}}.
std::string Filled(std::string_view definition, Replacements values);

}  // namespace kiln::instructions
