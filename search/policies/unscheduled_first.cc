#include "search/policies/unscheduled_first.h"

#include <iterator>
#include <utility>

namespace kiln::search {
namespace {

bool IsUnscheduled(const Observation& observation) {
  return observation.candidate.hash == schedule::HashSteps({});
}

}  // namespace

UnscheduledFirst::UnscheduledFirst(const Task& task, std::unique_ptr<Policy> others)
    : unscheduled_(task), others_(std::move(others)) {
  const uint64_t unscheduled = schedule::HashSteps({});
  others_->Avoid({&unscheduled, 1});
}

StatusOr<std::vector<Candidate>> UnscheduledFirst::Propose(int n) {
  KILN_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, unscheduled_.Propose(n));
  const int left = n - static_cast<int>(candidates.size());
  if (left == 0 && n > 0) {
    report_ = unscheduled_.last_round();
    return candidates;
  }
  KILN_ASSIGN_OR_RETURN(std::vector<Candidate> more, others_->Propose(left));
  report_ = others_->last_round();
  report_.proposed += static_cast<int>(candidates.size());
  candidates.insert(candidates.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  return candidates;
}

// As a parent it has no tiles to change, and what it costs says nothing of schedules.
void UnscheduledFirst::Observe(std::span<const Observation> observations) {
  std::vector<Observation> scheduled;
  for (const Observation& o : observations) {
    // Of an earlier job: not a reading of this one.
    if (!IsUnscheduled(o)) scheduled.push_back(o);
    if (IsUnscheduled(o) && o.record == 0) unscheduled_.Observe({&o, 1});
  }
  others_->Observe(scheduled);
}

}  // namespace kiln::search
