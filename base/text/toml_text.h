// Parses TOML with toml++, whose behaviour is undefined for some texts: ParseToml refuses these.
#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

struct TomlMistake {
  toml::source_region where;
  std::string description;
};

// Parses `text` into `table`. Returns what is wrong with it, and where, if it is no TOML; then
// `table` stays as it is.
std::optional<TomlMistake> ParseToml(std::string_view text, toml::table& table);

// Returns the entries of a table in the order of the text.
std::vector<std::pair<const toml::key*, const toml::node*>> InOrder(const toml::table& table);

}  // namespace kiln
