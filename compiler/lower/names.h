// Names for the tables of a program.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace kiln::lower {

// An identifier that is like the name.
inline std::string Identifier(std::string_view like) {
  std::string name(like);
  for (char& c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(name.begin(), 'v');
  return name;
}

// Identifiers that are unique in their table.
class Names {
 public:
  std::string Unique(std::string_view like) {
    const std::string name = Identifier(like);
    std::string candidate = name;
    for (int i = 1; !used_.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", name, i);
    return candidate;
  }

 private:
  std::unordered_set<std::string> used_;
};

}  // namespace kiln::lower
