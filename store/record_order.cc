#include "store/record_order.h"

#include <algorithm>
#include <cmath>

namespace kiln::store {

Rival RivalOf(const Record& record) {
  return {.rank = RankOf(record),
          .confidence_s = record.confidence_s.value_or(0),
          .device = record.device};
}

bool AreEqual(const Rival& a, const Rival& b) {
  const bool both_finalists = a.confidence_s > 0 && b.confidence_s > 0;
  const bool both_right =
      !a.rank.failed && !b.rank.failed && !a.rank.stopped_early && !b.rank.stopped_early;
  return both_finalists && both_right && a.rank.measured_as == b.rank.measured_as &&
         a.device == b.device &&
         std::abs(a.rank.cost_s - b.rank.cost_s) <= std::hypot(a.confidence_s, b.confidence_s);
}

ChosenRecord ChooseRecord(std::span<const Rival> rivals) {
  KILN_CHECK(!rivals.empty(), "no record to choose");
  const Rival& fastest = *std::min_element(
      rivals.begin(), rivals.end(), [](const Rival& a, const Rival& b) { return a.rank < b.rank; });
  std::vector<int64_t> ids = {fastest.rank.id};
  for (const Rival& rival : rivals) {
    if (rival.rank.id != fastest.rank.id && AreEqual(fastest, rival)) ids.push_back(rival.rank.id);
  }
  std::ranges::sort(ids);
  return {.id = ids.front(), .equal_ids = {ids.begin() + 1, ids.end()}};
}

}  // namespace kiln::store
