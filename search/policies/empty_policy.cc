#include "search/policies/empty_policy.h"

#include "compiler/lower/lower.h"

namespace kiln::search {

constinit const PolicyKind kEmpty = {.name = "empty",
                                     .what = "the unscheduled loops, once",
                                     .make = [](const Task& task, Parameters, uint64_t,
                                                const PolicyOptions&) -> std::unique_ptr<Policy> {
                                       return std::make_unique<EmptyPolicy>(task);
                                     }};

StatusOr<std::vector<Candidate>> EmptyPolicy::Propose(int n) {
  report_ = {.round = report_.round + 1};
  if (n <= 0 || known_) return std::vector<Candidate>();
  const schedule::State state(task_.dag);
  KILN_RETURN_IF_ERROR(
      lower::Lower(state, {.gpu = task_.target.is_gpu(), .stop = task_.stop}).status());
  known_ = true;
  report_.proposed = 1;
  return std::vector<Candidate>{{{}, schedule::HashSteps({}), "no schedule"}};
}

void EmptyPolicy::Observe(std::span<const Observation> observations) {
  for (const Observation& o : observations) known_ |= o.candidate.hash == schedule::HashSteps({});
}

void EmptyPolicy::Avoid(std::span<const uint64_t> hashes) {
  for (const uint64_t hash : hashes) known_ |= hash == schedule::HashSteps({});
}

}  // namespace kiln::search
