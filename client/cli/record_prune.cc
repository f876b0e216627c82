#include "client/cli/record_prune.h"

#include <algorithm>
#include <iterator>

#include "base/packed_key.h"
#include "client/view/format.h"

namespace kiln::client {

std::vector<std::string> Pruner::GroupOf(const v1::Record& record) {
  const bool rewritten = HasUnsaidLayouts(record.layout_rewrite_option(), record.workload_key());
  return {record.workload_id().empty() ? record.workload_key() : record.workload_id(),
          record.target(), rewritten ? "rewritten layouts" : ""};
}

void Pruner::See(const v1::Record& record) {
  last_id_ = std::max(last_id_, record.id());
  const std::vector<std::string> group = GroupOf(record);
  Row& row = rows_[group];
  if (++row.records == 1) {
    row.target = record.target();
    row.example = record;
    row.example.clear_steps();
  }
  const double cost_s = CostOf(record.result());
  if (record.result().error() != v1::NO_ERROR || cost_s <= 0) {
    ++row.failed;
    return;
  }
  auto& best = best_[group];
  best.emplace(record.result().stopped_early(), cost_s, record.id());
  row.best_s = std::get<1>(*best.begin());
  if (best.size() > std::max<size_t>(1, rule_.keep)) best.erase(std::prev(best.end()));
}

bool Pruner::Deletes(const v1::Record& record) const {
  if (record.id() > last_id_ || record.result().timestamp_s() >= rule_.before_s) return false;
  if (rule_.open_jobs.contains(record.job_id())) return false;
  const auto best = best_.find(GroupOf(record));
  if (rule_.keep == 0 || best == best_.end()) return true;
  return std::ranges::none_of(
      best->second, [&](const auto& kept) { return std::get<int64_t>(kept) == record.id(); });
}

}  // namespace kiln::client
