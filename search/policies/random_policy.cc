#include "search/policies/random_policy.h"

#include "compiler/lower/lower.h"
#include "search/sampling/sample.h"
#include "search/sampling/sketch_weights.h"

namespace kiln::search {

constinit const PolicyKind kSketchRandom = {
    .name = "sketch.random",
    .what = "samples",
    .takes_rules = true,
    .make = [](const Task& task, Parameters parameters, uint64_t seed,
               const PolicyOptions& options) -> std::unique_ptr<Policy> {
      return std::make_unique<RandomPolicy>(task, std::move(parameters), seed, options.rules);
    }};

RandomPolicy::RandomPolicy(const Task& task, Parameters parameters, uint64_t seed,
                           BatchedRules* rules)
    : task_(task), parameters_(std::move(parameters)), rng_(seed) {
  sketches_ = GenerateSketches({task_, parameters_, rules});
  weights_ = SketchWeights(task_, sketches_);
}

StatusOr<Candidate> RandomPolicy::Draw() {
  const int number = PickSketch(sketches_, weights_, rng_);
  StatusOr<schedule::State> state = Sample(sketches_[number], task_, parameters_, rng_);
  if (!state.ok()) {
    ++report_.count(Drop::kIllegal);
    return state.status();
  }
  ++report_.sampled;
  const Status lowered =
      lower::Lower(*state, {.gpu = task_.target.is_gpu(), .stop = task_.stop}).status();
  if (!lowered.ok()) {
    ++report_.count(Drop::kLowering);
    return lowered;
  }
  return Candidate{state->steps(), schedule::HashSteps(state->steps()),
                   fmt::format("sketch {}, random", number)};
}

StatusOr<std::vector<Candidate>> RandomPolicy::Propose(int n) {
  report_ = {.round = report_.round + 1, .sketches = static_cast<int>(sketches_.size())};
  std::vector<Candidate> candidates;
  int rejected = 0;
  Status last;
  while (static_cast<int>(candidates.size()) < n && rejected < parameters_.max_rejected_draws) {
    if (task_.stop.stop_requested()) return Cancelled("stopped");
    StatusOr<Candidate> candidate = Draw();
    if (!candidate.ok()) {
      last = candidate.status();
      ++rejected;
    } else if (!known_.insert(candidate->hash).second) {
      ++report_.count(Drop::kKnown);
      ++rejected;
    } else {
      candidates.push_back(*std::move(candidate));
      rejected = 0;
    }
  }
  if (candidates.empty() && known_.empty() && !last.ok()) {
    return Annotate(last, "no sampled candidate is legal, the last one");
  }
  report_.proposed = report_.proposed_by_chance = static_cast<int>(candidates.size());
  return candidates;
}

void RandomPolicy::Observe(std::span<const Observation> observations) {
  for (const Observation& o : observations) known_.insert(o.candidate.hash);
}

}  // namespace kiln::search
