#include "client/check/samples.h"

#include <algorithm>

#include "compiler/dag/workload_key.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/policies/policy.h"

namespace kiln::client {

namespace {

// Draws up to n candidates, a few at a time, until `fn` returns true for one.
template <typename Fn>
Status Draw(const dag::DagPtr& dag, const target::Target& target, uint64_t seed, int n,
            const std::map<std::string, double>& parameters, Fn&& fn) {
  constexpr int kAtOnce = 64;
  const search::Task task(dag, target, target::DefaultHardware(target, /*host_cores=*/2),
                          dag::WorkloadKey(*dag));
  KILN_ASSIGN_OR_RETURN(const auto policy, search::MakePolicy("sketch.random", task, seed,
                                                              {.parameters = parameters}));
  for (int drawn = 0; drawn < n; drawn += kAtOnce) {
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(std::min(kAtOnce, n - drawn)));
    if (candidates.empty()) break;
    for (const search::Candidate& candidate : candidates) {
      if (fn(candidate)) return OkStatus();
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> SampleSteps(const dag::DagPtr& dag, const target::Target& target,
                                               uint64_t seed, int n) {
  std::vector<std::string> samples;
  KILN_RETURN_IF_ERROR(Draw(dag, target, seed, n, {}, [&](const search::Candidate& candidate) {
    samples.push_back(schedule::PrintSteps(candidate.steps));
    return false;
  }));
  return samples;
}

StatusOr<codegen::CudaSource> CudaOfSteps(const dag::DagPtr& dag, const std::string& steps) {
  KILN_ASSIGN_OR_RETURN(const auto parsed, schedule::ParseSteps(steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, parsed));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  return codegen::GenerateCuda(program);
}

StatusOr<std::string> SampleGpuSteps(const dag::DagPtr& dag, const target::Target& target,
                                     uint64_t seed, const WantedSample& wanted) {
  std::string found;
  int samples = 0;
  KILN_RETURN_IF_ERROR(Draw(dag, target, seed, wanted.samples, wanted.parameters,
                            [&](const search::Candidate& candidate) {
                              ++samples;
                              const std::string steps = schedule::PrintSteps(candidate.steps);
                              const auto source = CudaOfSteps(dag, steps);
                              if (!source.ok() || !wanted.is_wanted(*source)) return false;
                              found = steps;
                              return true;
                            }));
  if (!found.empty()) return found;
  return NotFound("none of {} samples is of this kind", samples);
}

}  // namespace kiln::client
