#include "client/shipped/selection.h"

#include <utility>

#include "compiler/handwritten/kernel_point.h"

namespace kiln::client {
namespace {

bool HasSchedule(const store::Record& record) {
  return !record.steps.empty() && record.steps != store::kNoSteps &&
         !handwritten::IsKernelPoint(record.steps) && !store::HasRewrittenLayouts(record);
}

}  // namespace

bool ShippedSelection::IsWanted(const store::Record& record) const {
  if (record.error != store::kNoError || record.costs_s.empty()) return false;
  if (record.device.find(options_.device) == std::string::npos) return false;
  return !options_.workloads.has_value() || options_.workloads->contains(record.workload_id);
}

void ShippedSelection::Add(const store::Record& record) {
  if (!IsWanted(record)) return;
  if (record.dag.empty() || record.workload_id.empty() || record.device.empty()) {
    ++left_out_.unknown;
    return;
  }
  if (!HasSchedule(record)) {
    ++left_out_.no_schedule;
    return;
  }
  if (record.stopped_early || !record.mark.empty()) {
    ++left_out_.doubtful;
    return;
  }
  const auto [place, is_new] =
      best_.try_emplace({record.target, record.device, record.workload_id}, record);
  if (!is_new && store::BetterThan(record, place->second)) place->second = record;
}

std::vector<store::Record> ShippedSelection::Finish() {
  std::vector<store::Record> records;
  for (auto& [key, record] : best_) records.push_back(std::move(record));
  best_.clear();
  return records;
}

}  // namespace kiln::client
