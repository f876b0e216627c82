#include "scheduler/dispatch/dispatch_items.h"

#include "base/status.h"

namespace kiln::scheduler {

std::string NameOf(const BuildItem& item) {
  if (const auto* trial = std::get_if<InFlightTrial>(&item.work)) {
    return fmt::format("trial {}", trial->trial.number);
  }
  return std::holds_alternative<ReferenceBuild>(item.work)
             ? fmt::format("the unscheduled program of task {}", item.task)
             : fmt::format("a finalist of task {}", item.task);
}

std::string NameOf(const RunItem& item) {
  if (const auto* trial = std::get_if<BuiltTrial>(&item.work)) {
    return fmt::format("trial {}", trial->in_hand.trial.number);
  }
  return fmt::format("the finalists of task {}", item.task);
}

std::stop_token AbandonedOf(const BuildItem& item) {
  const auto* trial = std::get_if<InFlightTrial>(&item.work);
  return trial == nullptr ? std::stop_token() : trial->abandoned;
}

std::stop_token AbandonedOf(const RunItem& item) {
  const auto* trial = std::get_if<BuiltTrial>(&item.work);
  return trial == nullptr ? std::stop_token() : trial->in_hand.abandoned;
}

}  // namespace kiln::scheduler
