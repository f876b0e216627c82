#include "client/check/samples.h"

#include "compiler/dag/workload_key.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/policies/policy.h"

namespace kiln::client {

StatusOr<std::vector<std::string>> SampleSteps(const dag::DagPtr& dag, const target::Target& target,
                                               uint64_t seed, int n) {
  const search::Task task(dag, target, target::DefaultHardware(target, /*host_cores=*/2),
                          dag::WorkloadKey(*dag));
  KILN_ASSIGN_OR_RETURN(const auto policy, search::MakePolicy("sketch.random", task, seed));
  KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(n));
  std::vector<std::string> samples;
  for (const search::Candidate& candidate : candidates) {
    samples.push_back(schedule::PrintSteps(candidate.steps));
  }
  return samples;
}

StatusOr<codegen::CudaSource> CudaOfSteps(const dag::DagPtr& dag, const std::string& steps) {
  KILN_ASSIGN_OR_RETURN(const auto parsed, schedule::ParseSteps(steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, parsed));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  return codegen::GenerateCuda(program);
}

StatusOr<std::string> SampleGpuSteps(
    const dag::DagPtr& dag, const target::Target& target, uint64_t seed, int n,
    const std::function<bool(const codegen::CudaSource&)>& wanted) {
  KILN_ASSIGN_OR_RETURN(const auto samples, SampleSteps(dag, target, seed, n));
  for (const std::string& steps : samples) {
    const auto source = CudaOfSteps(dag, steps);
    if (source.ok() && wanted(*source)) return steps;
  }
  return NotFound("none of {} samples is of this kind", samples.size());
}

}  // namespace kiln::client
