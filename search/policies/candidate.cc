#include "search/policies/policy.h"

namespace kiln::search {

std::string PrintCandidate(const Candidate& candidate) {
  return candidate.kernel ? handwritten::PrintKernelPoint(*candidate.kernel)
                          : schedule::PrintSteps(candidate.steps);
}

StatusOr<Candidate> ParseCandidate(std::string_view text) {
  Candidate candidate;
  if (handwritten::IsKernelPoint(text)) {
    KILN_ASSIGN_OR_RETURN(candidate.kernel, handwritten::ParseKernelPoint(text));
    candidate.hash = handwritten::HashKernelPoint(*candidate.kernel);
    return candidate;
  }
  KILN_ASSIGN_OR_RETURN(candidate.steps, schedule::ParseSteps(text));
  candidate.hash = schedule::HashSteps(candidate.steps);
  return candidate;
}

}  // namespace kiln::search
