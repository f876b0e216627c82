#include "scheduler/jobs/job_ending.h"

#include <algorithm>

#include "base/text/counted.h"
#include "proto/trial.pb.h"

namespace kiln::scheduler {
namespace {

std::string EndingMessage(store::JobEnding ending, const v1::TuneOptions& options) {
  switch (ending) {
    case store::JobEnding::kNone:
    case store::JobEnding::kTrialsUsedUp:
      break;
    case store::JobEnding::kTargetReached:
      return fmt::format("the latency asked for, {:.4g} ms, is reached",
                         1e3 * options.latency_target_s());
    case store::JobEnding::kNoImprovement:
      return "stopped because nothing improved";
    case store::JobEnding::kSpaceExhausted:
      return options.objective() == "max"
                 ? "no candidates are left that can make the largest latency smaller"
                 : "no candidates are left";
    case store::JobEnding::kTimeUsedUp:
      return fmt::format("its {:.4g} minutes are used up", options.time_budget_s() / 60);
  }
  return {};
}

std::string MostCommonError(const store::TrialCounts& counts) {
  const auto most = std::max_element(counts.by_error.begin() + 1, counts.by_error.end());
  return v1::ErrorKind_Name(
      static_cast<v1::ErrorKind>(static_cast<int>(most - counts.by_error.begin())));
}

}  // namespace

store::JobEnding StoredEnding(search::Ending ending) {
  switch (ending) {
    case search::Ending::kTrialsUsedUp:
      return store::JobEnding::kTrialsUsedUp;
    case search::Ending::kTargetReached:
      return store::JobEnding::kTargetReached;
    case search::Ending::kNoImprovement:
      return store::JobEnding::kNoImprovement;
    case search::Ending::kSpaceExhausted:
      return store::JobEnding::kSpaceExhausted;
    case search::Ending::kTimeUsedUp:
      return store::JobEnding::kTimeUsedUp;
    case search::Ending::kLeftToOthers:
      return store::JobEnding::kNone;
  }
  return store::JobEnding::kNone;
}

StatusOr<std::string> RemarkOn(store::JobEnding ending, const v1::TuneOptions& options,
                               const store::TrialCounts& counts) {
  if (counts.total > 0 && counts.by_error[store::kNoError] == 0) {
    return FailedPrecondition("{} gave a correct program; most common: {}",
                              counts.total == 1
                                  ? "not even the one trial"
                                  : fmt::format("none of the {} trials", counts.total),
                              MostCommonError(counts));
  }
  if (ending == store::JobEnding::kTrialsUsedUp) return std::string();
  return fmt::format("{} of {}: {}", counts.total, Counted(options.trials(), "trial"),
                     EndingMessage(ending, options));
}

}  // namespace kiln::scheduler
