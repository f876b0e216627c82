#include "base/text/closest_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kMaxNames = 3;

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substitute}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> ClosestNames(std::string_view name,
                                      const std::vector<std::string>& names) {
  std::vector<std::pair<size_t, std::string>> ranked;
  if (name.size() > kLongestName) return {};
  for (const std::string& candidate : names) {
    const bool inside = name.size() >= 3 && candidate.find(name) != std::string::npos;
    const size_t distance = inside ? 1 : EditDistance(name, candidate);
    if (distance <= std::max<size_t>(2, name.size() / 3)) ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> closest;
  for (size_t i = 0; i < std::min(kMaxNames, ranked.size()); ++i) {
    closest.push_back(ranked[i].second);
  }
  return closest;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  const std::vector<std::string> closest = ClosestNames(name, names);
  return closest.empty() ? "" : fmt::format(", did you mean {}?", fmt::join(closest, " or "));
}

}  // namespace kiln
