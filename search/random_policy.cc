#include "search/random_policy.h"

#include "compiler/lower/lower.h"
#include "search/sample.h"
#include "search/sample_gpu.h"

namespace kiln::search {

RandomPolicy::RandomPolicy(const Task& task, Parameters parameters, uint64_t seed)
    : task_(task), parameters_(std::move(parameters)), rng_(seed) {
  sketches_ = GenerateSketches({task_, parameters_});
}

StatusOr<Candidate> RandomPolicy::Draw() {
  const Sketch& sketch = PickFrom(rng_, sketches_);
  KILN_ASSIGN_OR_RETURN(schedule::State state, task_.target.is_gpu()
                                                   ? SampleGpu(sketch, task_, parameters_, rng_)
                                                   : SampleCpu(sketch, task_, parameters_, rng_));
  KILN_RETURN_IF_ERROR(lower::Lower(state, {.gpu = task_.target.is_gpu()}).status());
  return Candidate{state.steps(), schedule::HashSteps(state.steps())};
}

StatusOr<std::vector<Candidate>> RandomPolicy::Propose(int n) {
  std::vector<Candidate> candidates;
  int futile = 0;
  Status last;
  while (static_cast<int>(candidates.size()) < n && futile < parameters_.max_futile_samples) {
    StatusOr<Candidate> candidate = Draw();
    if (!candidate.ok()) {
      last = candidate.status();
      ++futile;
    } else if (!known_.insert(candidate->hash).second) {
      ++futile;
    } else {
      candidates.push_back(*std::move(candidate));
      futile = 0;
    }
  }
  if (candidates.empty() && known_.empty() && !last.ok()) {
    return Annotate(last, "no sampled candidate is legal, the last one");
  }
  return candidates;
}

void RandomPolicy::Observe(std::span<const Observation> observations) {
  for (const Observation& o : observations) known_.insert(o.candidate.hash);
}

}  // namespace kiln::search
