#include "store/autotvm_record.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "store/record.h"

namespace kiln::store {

double MeanCost(const AutotvmRecord& record) {
  if (record.error != kNoError || record.costs_s.empty()) {
    return std::numeric_limits<double>::infinity();
  }
  return std::accumulate(record.costs_s.begin(), record.costs_s.end(), 0.0) /
         static_cast<double>(record.costs_s.size());
}

std::string AutotvmWorkload(const AutotvmRecord& record) { return record.task + " " + record.args; }

bool SameMeasurement(const AutotvmRecord& a, const AutotvmRecord& b) {
  return a.task == b.task && a.args == b.args && a.kwargs == b.kwargs && a.target == b.target &&
         a.timestamp_s == b.timestamp_s && a.config_index == b.config_index && a.error == b.error;
}

Status ValidateAutotvmRecord(const AutotvmRecord& record) {
  if (record.target.empty() || record.task.empty()) {
    return InvalidArgument("an autotvm record needs a target and a task, found '{}' and '{}'",
                           record.target, record.task);
  }
  if (record.error < 0 || record.error >= kNumErrorKinds) {
    return InvalidArgument("error number {}, expected 0 to {}", record.error, kNumErrorKinds - 1);
  }
  if (record.error != kNoError) return OkStatus();
  if (record.costs_s.empty()) return InvalidArgument("it has no error and no cost");
  for (const double cost_s : record.costs_s) {
    if (std::isfinite(cost_s) && cost_s > 0) continue;
    return InvalidArgument("cost {} s, expected a positive number", cost_s);
  }
  return OkStatus();
}

}  // namespace kiln::store
