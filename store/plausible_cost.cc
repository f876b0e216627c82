#include "store/plausible_cost.h"

#include <algorithm>

#include "base/json/json_cursor.h"

namespace kiln::store {
namespace {

// Returns the product of the last list of numbers in ["hash", [shape], ...]; 0: the key has none.
double OutputElements(std::string_view workload_key) {
  const size_t open = workload_key.rfind('[');
  if (open == std::string_view::npos || open == 0) return 0;
  JsonCursor json(workload_key.substr(open));
  double elements = 1;
  if (!json.Take('[') || json.Take(']')) return 0;
  for (bool more = true; more;) {
    const StatusOr<int64_t> extent = json.Int("an extent");
    if (!extent.ok() || *extent <= 0) return 0;
    elements *= static_cast<double>(*extent);
    const StatusOr<bool> next = json.Next(']');
    if (!next.ok()) return 0;
    more = *next;
  }
  return elements;
}

}  // namespace

Status CheckNotTooShort(const Record& record) {
  if (record.error != kNoError || record.costs_s.empty()) return OkStatus();
  const double cost_s = *std::min_element(record.costs_s.begin(), record.costs_s.end());
  if (cost_s >= kShortestCost_s) return OkStatus();
  return InvalidArgument("cost {:g} s is not plausible: expected at least {:g} s", cost_s,
                         kShortestCost_s);
}

Status CheckPlausible(const Record& record, double flop_count) {
  if (record.error != kNoError || record.costs_s.empty()) return OkStatus();
  const double cost_s = *std::min_element(record.costs_s.begin(), record.costs_s.end());
  const auto implausible = [&](std::string_view why) {
    return InvalidArgument("cost {:g} s is not plausible: {}", cost_s, why);
  };
  KILN_RETURN_IF_ERROR(CheckNotTooShort(record));
  if (flop_count / cost_s > kMaxFlops) {
    return implausible(
        fmt::format("{:g} operations would be {:.1e} a second, expected at most {:.0e}", flop_count,
                    flop_count / cost_s, kMaxFlops));
  }
  const double bytes = OutputElements(record.workload_key);
  if (bytes / cost_s > kMaxOutputBytes) {
    return implausible(fmt::format(
        "{:g} elements of its output would be {:.1e} bytes a second, expected at most {:.0e}",
        bytes, bytes / cost_s, kMaxOutputBytes));
  }
  return OkStatus();
}

}  // namespace kiln::store
