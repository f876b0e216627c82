// Names for the tables of a program.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace kiln::lower {

// Returns an identifier that is similar to the name.
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
    std::string name = Identifier(like);
    const auto [entry, is_new] = next_.try_emplace(name, 1);
    if (is_new) return name;
    for (int number = entry->second;; ++number) {
      std::string numbered = fmt::format("{}_{}", name, number);
      if (!next_.try_emplace(numbered, 1).second) continue;
      next_[name] = number + 1;
      return numbered;
    }
  }

 private:
  // For each name that is taken, the lowest number that may be free behind it.
  absl::flat_hash_map<std::string, int> next_;
};

}  // namespace kiln::lower
