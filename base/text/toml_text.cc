#include "base/text/toml_text.h"

#include <algorithm>

namespace kiln {
namespace {

// Replaces every character that is not ASCII by a question mark.
std::string InAscii(std::string_view text) {
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) ascii += c;
    // Other bytes continue a character.
    if (byte >= 0xc0) ascii += '?';
  }
  return ascii;
}

TomlMistake MistakeOf(const toml::parse_error& error, std::string_view hint) {
  return {error.source(), std::string(error.description()) + std::string(hint)};
}

}  // namespace

std::optional<TomlMistake> ParseToml(std::string_view text, toml::table& table) {
  // The library's tables of blanks are wrong between U+00A1 and U+0499. Its behaviour is undefined
  // for such a letter outside of strings and comments, where TOML allows none. A question mark is
  // refused there as well, and is allowed wherever the letter is.
  if (const std::string ascii = InAscii(text); ascii.size() != text.size()) {
    const toml::parse_result parsed = toml::parse(ascii);
    if (parsed.failed()) {
      return MistakeOf(parsed.error(),
                       " (a character that is not ASCII, here '?', may stand in strings and "
                       "comments alone)");
    }
  }
  toml::parse_result parsed = toml::parse(text);
  if (parsed.failed()) return MistakeOf(parsed.error(), "");
  table = std::move(parsed).table();
  return std::nullopt;
}

std::vector<std::pair<const toml::key*, const toml::node*>> InOrder(const toml::table& table) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
  std::ranges::sort(entries, [](const auto& a, const auto& b) {
    const toml::source_position x = a.first->source().begin, y = b.first->source().begin;
    return std::pair(x.line, x.column) < std::pair(y.line, y.column);
  });
  return entries;
}

}  // namespace kiln
