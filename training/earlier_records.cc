#include "training/earlier_records.h"

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "base/numbers/rng.h"

namespace kiln::training {

bool SameDevice(std::string_view a, std::string_view b) { return a.empty() || b.empty() || a == b; }

std::optional<double> CostOf(const store::Record& record) {
  return record.error == store::kNoError ? std::optional(store::Cost(record)) : std::nullopt;
}

RecordList Choose(RecordList records, size_t most) {
  if (records.size() <= most) return records;
  std::vector<size_t> order(records.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const std::optional<double> x = CostOf(*records[a]), y = CostOf(*records[b]);
    if (x.has_value() != y.has_value()) return x.has_value();
    return x != y ? *x < *y : a < b;
  });
  const size_t best = (most + 1) / 2;
  // The seed makes the draw the same as long as the number of records is.
  Rng rng(records.size());
  for (size_t i = best; i < most; ++i) {
    const int64_t left = static_cast<int64_t>(order.size() - i);
    std::swap(order[i], order[i + static_cast<size_t>(UniformInt(rng, left))]);
  }
  order.resize(most);
  std::sort(order.begin(), order.end());
  RecordList chosen;
  for (const size_t i : order) chosen.push_back(records[i]);
  return chosen;
}

RecordList ChooseFromEachGroup(const RecordGroups& groups, size_t most) {
  std::vector<size_t> sizes;
  for (const auto& [key, records] : groups) sizes.push_back(records.size());
  std::sort(sizes.begin(), sizes.end());
  // Small groups leave the rest of their shares to larger ones.
  size_t share = 0, left = most;
  for (size_t i = 0; i < sizes.size(); ++i) {
    share = std::max<size_t>(1, left / (sizes.size() - i));
    left -= std::min({left, share, sizes[i]});
  }
  RecordList chosen;
  for (const auto& [key, records] : groups) {
    for (const store::Record* record : Choose(records, share)) chosen.push_back(record);
  }
  return chosen;
}

std::vector<std::optional<Steps>> ParseAll(std::string_view job_id, const RecordList& records,
                                           const std::stop_token& stop, ThreadPool& pool) {
  std::vector<std::optional<Steps>> all(records.size());
  std::vector<Status> refused(records.size());
  pool.ParallelFor(static_cast<int64_t>(records.size()), [&](int64_t i) {
    if (stop.stop_requested()) return;
    auto steps = schedule::ParseSteps(records[i]->steps);
    refused[i] = steps.status();
    if (steps.ok()) all[i] = *std::move(steps);
  });
  const auto count = std::ranges::count_if(refused, [](const Status& s) { return !s.ok(); });
  if (count > 0) {
    const auto first = std::ranges::find_if(refused, [](const Status& s) { return !s.ok(); });
    LogWarn("job {}: {} of {} earlier records are left out; record {}: {}", job_id, count,
            records.size(), records[static_cast<size_t>(first - refused.begin())]->id,
            Message(*first));
  }
  return all;
}

}  // namespace kiln::training
