#include "search/templates/point_origin.h"

#include <fmt/format.h>

#include <charconv>

namespace kiln::search {
namespace {

constexpr std::string_view kBeforeIndex = ", config ", kBeforeValues = ": ";

// Reads the index and the values: "12" or "12: tile=4".
bool ReadPoint(std::string_view text, PointOrigin& origin) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, origin.index);
  if (error != std::errc() || origin.index < 0) return false;
  const std::string_view rest(stopped, static_cast<size_t>(end - stopped));
  if (!rest.empty() && (!rest.starts_with(kBeforeValues) || rest.size() == kBeforeValues.size()))
    return false;
  origin.values = rest.empty() ? rest : rest.substr(kBeforeValues.size());
  return true;
}

}  // namespace

std::string PrintPointOrigin(const PointOrigin& origin) {
  return fmt::format("{} {}{}{}{}{}", origin.kind, origin.name, kBeforeIndex, origin.index,
                     origin.values.empty() ? "" : kBeforeValues, origin.values);
}

std::optional<PointOrigin> ParsePointOrigin(std::string_view text) {
  const size_t kind_end = text.find(' ');
  if (kind_end == text.npos) return std::nullopt;
  PointOrigin origin;
  origin.kind = text.substr(0, kind_end);
  if (origin.kind != "template" && origin.kind != "kernel") return std::nullopt;
  // A name or a value may contain these words, too. The last occurrence before an index counts.
  for (size_t at = text.rfind(kBeforeIndex); at != text.npos && at > kind_end + 1;
       at = text.rfind(kBeforeIndex, at - 1)) {
    if (!ReadPoint(text.substr(at + kBeforeIndex.size()), origin)) continue;
    origin.name = text.substr(kind_end + 1, at - kind_end - 1);
    return origin;
  }
  return std::nullopt;
}

}  // namespace kiln::search
