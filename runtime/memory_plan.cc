#include "runtime/memory_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "base/numbers/integers.h"
#include "base/status.h"

namespace kiln::runtime {
namespace {

// All orders of so few buffers are tried: 5040 at most.
constexpr size_t kMaxBuffersForAllOrders = 7;

bool LiveTogether(const MemoryNeed& a, const MemoryNeed& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Places buffers one after another.
class Placement {
 public:
  explicit Placement(std::span<const MemoryNeed> needs) : needs_(needs) {
    plan_.offsets.resize(needs.size());
  }

  enum class Fit { kLowest, kBest };
  void Place(size_t need, Fit fit) {
    const int64_t offset = FindOffset(need, fit);
    plan_.offsets[need] = offset;
    plan_.bytes = std::max(plan_.bytes, offset + needs_[need].bytes);
    const auto at =
        std::upper_bound(placed_.begin(), placed_.end(), offset,
                         [&](int64_t value, size_t other) { return value < plan_.offsets[other]; });
    placed_.insert(at, need);
  }

  const MemoryPlan& plan() const { return plan_; }

 private:
  // Walks over the gaps between the buffers that are live together with this one.
  int64_t FindOffset(size_t need, Fit fit) const {
    const MemoryNeed& wanted = needs_[need];
    int64_t best = -1, best_gap = INT64_MAX, end = 0;
    for (size_t other : placed_) {
      if (!LiveTogether(wanted, needs_[other])) continue;
      const int64_t start = RoundUp(end, wanted.alignment_bytes);
      const int64_t gap = plan_.offsets[other] - end;
      if (start + wanted.bytes <= plan_.offsets[other] && gap < best_gap) {
        if (fit == Fit::kLowest) return start;
        best = start;
        best_gap = gap;
      }
      end = std::max(end, plan_.offsets[other] + needs_[other].bytes);
    }
    return best >= 0 ? best : RoundUp(end, wanted.alignment_bytes);
  }

  std::span<const MemoryNeed> needs_;
  MemoryPlan plan_;
  // Ordered by offset.
  std::vector<size_t> placed_;
};

MemoryPlan PlaceInOrder(std::span<const MemoryNeed> needs, std::span<const size_t> order,
                        Placement::Fit fit) {
  Placement placement(needs);
  for (size_t need : order) placement.Place(need, fit);
  return placement.plan();
}

std::vector<size_t> LargestFirst(std::span<const MemoryNeed> needs) {
  std::vector<size_t> order(needs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (needs[a].bytes != needs[b].bytes) return needs[a].bytes > needs[b].bytes;
    return needs[a].last - needs[a].first > needs[b].last - needs[b].first;
  });
  return order;
}

// Places the buffers in every order, each at the lowest place that is free. One of the orders gives
// the smallest possible arena: the order of the offsets in a best plan.
MemoryPlan TryAllOrders(std::span<const MemoryNeed> needs, MemoryPlan best, int64_t enough) {
  std::vector<size_t> order(needs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  do {
    MemoryPlan plan = PlaceInOrder(needs, order, Placement::Fit::kLowest);
    if (plan.bytes < best.bytes) best = std::move(plan);
  } while (best.bytes > enough && std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const MemoryNeed> needs) {
  for (const MemoryNeed& need : needs) {
    KILN_CHECK(need.bytes >= 1 && need.alignment_bytes >= 1 && need.first <= need.last);
  }
  const std::vector<size_t> order = LargestFirst(needs);
  MemoryPlan plan = PlaceInOrder(needs, order, Placement::Fit::kBest);
  MemoryPlan lowest = PlaceInOrder(needs, order, Placement::Fit::kLowest);
  if (lowest.bytes < plan.bytes) plan = std::move(lowest);
  const int64_t peak = PeakBytes(needs);
  if (plan.bytes == peak || needs.size() > kMaxBuffersForAllOrders) return plan;
  return TryAllOrders(needs, std::move(plan), peak);
}

int64_t PeakBytes(std::span<const MemoryNeed> needs) {
  // Changes of the live bytes, by kernel.
  std::map<int64_t, int64_t> changes;
  for (const MemoryNeed& need : needs) {
    changes[need.first] += need.bytes;
    changes[int64_t{need.last} + 1] -= need.bytes;
  }
  int64_t live = 0, peak = 0;
  for (const auto& [kernel, change] : changes) peak = std::max(peak, live += change);
  return peak;
}

std::optional<MemoryConflict> FindConflict(std::span<const MemoryNeed> needs,
                                           std::span<const int64_t> offsets) {
  std::vector<size_t> order(needs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return needs[a].first < needs[b].first; });
  // Live buffers by offset; they do not overlap.
  std::map<int64_t, size_t> live;
  using Ending = std::pair<int32_t, size_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  for (size_t need : order) {
    while (!endings.empty() && endings.top().first < needs[need].first) {
      live.erase(offsets[endings.top().second]);
      endings.pop();
    }
    const auto conflict = [&](size_t other) -> MemoryConflict {
      return {std::min(need, other), std::max(need, other), needs[need].first};
    };
    const auto above = live.lower_bound(offsets[need]);
    if (above != live.end() && above->first < offsets[need] + needs[need].bytes) {
      return conflict(above->second);
    }
    if (above != live.begin()) {
      const auto& [offset, other] = *std::prev(above);
      if (offset + needs[other].bytes > offsets[need]) return conflict(other);
    }
    live.emplace(offsets[need], need);
    endings.emplace(needs[need].last, need);
  }
  return std::nullopt;
}

}  // namespace kiln::runtime
