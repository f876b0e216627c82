// Names for the tables of a program.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
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
    int& number = next_[name];  // below are all taken
    std::string candidate = number == 0 ? name : fmt::format("{}_{}", name, number);
    while (!used_.insert(candidate).second) candidate = fmt::format("{}_{}", name, ++number);
    ++number;
    return candidate;
  }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace kiln::lower
