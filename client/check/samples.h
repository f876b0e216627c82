// Candidates of a workload without a job: random sampling draws them for a device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"

namespace kiln::client {

// Returns the steps of up to n candidates as JSON. The same seed gives the same candidates.
StatusOr<std::vector<std::string>> SampleSteps(const dag::DagPtr& dag, const target::Target& target,
                                               uint64_t seed, int n);

// A condition on the CUDA text of a sample, and how many samples are tried.
struct WantedSample {
  std::function<bool(const codegen::CudaSource&)> is_wanted;
  int samples = 64;
  // Parameters of the policy that draws the samples.
  std::map<std::string, double> parameters = {};
};
// Returns the first sample for a GPU whose CUDA text meets the condition. NotFound: there is none.
StatusOr<std::string> SampleGpuSteps(const dag::DagPtr& dag, const target::Target& target,
                                     uint64_t seed, const WantedSample& wanted);

// Returns the CUDA text of a schedule.
StatusOr<codegen::CudaSource> CudaOfSteps(const dag::DagPtr& dag, const std::string& steps);

}  // namespace kiln::client
