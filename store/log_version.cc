#include "store/log_version.h"

#include <algorithm>
#include <array>

#include "base/text/utf8.h"

namespace kiln::store {
namespace {

// Returns the value of the last `key` of the line, such as "\"v0.6\"" or "0.2"; "" if there is
// none.
std::string_view ValueOf(std::string_view line, std::string_view key) {
  const size_t at = line.rfind(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  const auto skip_blanks = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_blanks();
  if (!line.starts_with(':')) return {};
  line.remove_prefix(1);
  skip_blanks();
  return line.substr(0, line.find_first_of(",} \t\r"));
}

bool IsKnown(std::string_view value) {
  constexpr std::array<std::string_view, 8> kKnown = {
      "\"v0.1\"", "\"v0.2\"", "\"v0.3\"", "\"v0.4\"", "\"v0.5\"", "\"v0.6\"", "0.1", "0.2"};
  return std::ranges::find(kKnown, value) != kKnown.end();
}

}  // namespace

std::string UnknownLogVersion(std::string_view line) {
  constexpr size_t kMaxBytes = 32;
  for (const std::string_view key : {"\"v\"", "\"version\""}) {
    std::string_view value = ValueOf(line, key);
    if (value.empty() || IsKnown(value)) continue;
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    return ValidUtf8(value.substr(0, kMaxBytes));
  }
  return {};
}

}  // namespace kiln::store
