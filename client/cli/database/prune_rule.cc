#include "client/cli/database/prune_rule.h"

#include <algorithm>
#include <iterator>

#include "base/arrays/packed_key.h"
#include "scheduler/words/format.h"
#include "store/record.h"

namespace kiln::client {

PruneCandidate CandidateOf(const v1::Record& record) {
  const bool rewritten = HasUnsaidLayouts(record.layout_rewrite_option(), record.workload_key());
  PruneCandidate candidate;
  candidate.group = {record.workload_id().empty() ? record.workload_key() : record.workload_id(),
                     record.target(), record.result().device(), record.result().measured_as(),
                     rewritten ? "rewritten layouts" : ""};
  candidate.schedule = {record.workload_id(), record.target(), record.steps()};
  candidate.id = record.id();
  candidate.job_id = record.job_id();
  candidate.timestamp_s = static_cast<double>(record.result().timestamp_s());
  const double cost_s = CostOf(record.result());
  if (record.result().error() == v1::NO_ERROR && cost_s > 0) {
    candidate.cost = {record.result().stopped_early(), cost_s};
  }
  return candidate;
}

PruneCandidate CandidateOf(const store::AutotvmRecord& record) {
  PruneCandidate candidate{.group = {store::AutotvmWorkload(record), record.target},
                           .id = record.id,
                           .timestamp_s = record.timestamp_s};
  if (record.error == store::kNoError) candidate.cost = {false, store::MeanCost(record)};
  return candidate;
}

Pruner::Row& Pruner::See(const PruneCandidate& candidate) {
  last_id_ = std::max(last_id_, candidate.id);
  Row& row = rows_[candidate.group];
  ++row.records;
  if (!candidate.cost.has_value()) {
    ++row.failed;
    return row;
  }
  auto& best = best_[candidate.group];
  best.emplace(candidate.cost->first, candidate.cost->second, candidate.id);
  row.best_s = std::get<1>(*best.begin());
  if (best.size() > std::max<size_t>(1, rule_.keep)) best.erase(std::prev(best.end()));
  return row;
}

bool Pruner::Deletes(const PruneCandidate& candidate) const {
  if (candidate.id > last_id_) return false;
  if (candidate.timestamp_s >= static_cast<double>(rule_.before_s)) return false;
  if (rule_.open_jobs.contains(candidate.job_id)) return false;
  if (!candidate.schedule.empty() && rule_.named.contains(candidate.id)) return false;
  if (rule_.pinned.contains(candidate.schedule)) return false;
  const auto best = best_.find(candidate.group);
  if (rule_.keep == 0 || best == best_.end()) return true;
  return std::ranges::none_of(
      best->second, [&](const auto& kept) { return std::get<int64_t>(kept) == candidate.id; });
}

int64_t Pruner::deleted() const {
  int64_t deleted = 0;
  for (const auto& [group, row] : rows_) deleted += row.deleted;
  return deleted;
}

}  // namespace kiln::client
