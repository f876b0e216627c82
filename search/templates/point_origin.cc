#include "search/templates/point_origin.h"

#include <fmt/format.h>

#include <charconv>

namespace kiln::search {
namespace {

constexpr std::string_view kBeforeIndex = ", config ";

}  // namespace

std::string PrintPointOrigin(const PointOrigin& origin) {
  return fmt::format("{} {}{}{}", origin.kind, origin.name, kBeforeIndex, origin.index);
}

std::optional<PointOrigin> ParsePointOrigin(std::string_view text) {
  const size_t kind_end = text.find(' ');
  const size_t name_end = text.rfind(kBeforeIndex);
  if (kind_end == text.npos || name_end == text.npos || kind_end + 1 >= name_end)
    return std::nullopt;
  PointOrigin origin{.kind = std::string(text.substr(0, kind_end)),
                     .name = std::string(text.substr(kind_end + 1, name_end - kind_end - 1))};
  if (origin.kind != "template" && origin.kind != "kernel") return std::nullopt;
  const std::string_view digits = text.substr(name_end + kBeforeIndex.size());
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, origin.index);
  if (error != std::errc() || stopped != end || origin.index < 0) return std::nullopt;
  return origin;
}

}  // namespace kiln::search
