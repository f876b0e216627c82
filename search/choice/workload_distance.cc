#include "search/choice/workload_distance.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/arrays/packed_key.h"

namespace kiln::search {
namespace {

using Json = nlohmann::json;

// Lists all values in order, ignoring how lists nest. Empty if the text is no key.
std::vector<Json> ValuesOf(std::string_view key) {
  constexpr int kMaxDepth = 16;
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  const Json json = Json::parse(key.begin(), key.end(), keep, /*allow_exceptions=*/false);
  std::vector<Json> values;
  if (!json.is_array()) return values;
  std::vector<const Json*> open = {&json};
  while (!open.empty()) {
    const Json& next = *open.back();
    open.pop_back();
    if (!next.is_array()) {
      values.push_back(next);
      continue;
    }
    for (size_t i = next.size(); i-- > 0;) open.push_back(&next[i]);
  }
  return values;
}

}  // namespace

std::optional<double> WorkloadDistance(std::string_view wanted, std::string_view found) {
  const std::vector<Json> a = ValuesOf(PlainKey(wanted)), b = ValuesOf(PlainKey(found));
  if (a.empty() || a.size() != b.size()) return std::nullopt;
  double distance = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (!a[i].is_number_integer() || !b[i].is_number_integer()) return std::nullopt;
    const auto extent = a[i].get<int64_t>(), other = b[i].get<int64_t>();
    if (extent <= 0 || other <= 0 || extent % other != 0) return std::nullopt;
    distance *= static_cast<double>(extent / other);
  }
  return distance;
}

std::string_view WorkloadHash(std::string_view key) {
  const size_t start = key.find('"');
  if (start == std::string_view::npos) return {};
  const size_t end = key.find('"', start + 1);
  return end == std::string_view::npos ? std::string_view()
                                       : key.substr(start + 1, end - start - 1);
}

}  // namespace kiln::search
