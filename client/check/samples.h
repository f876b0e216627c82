// Candidates of a workload without a job: what random sampling finds for it on a device.
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

// Steps, as JSON, of up to n candidates. The same seed gives the same ones.
StatusOr<std::vector<std::string>> SampleSteps(const dag::DagPtr& dag, const target::Target& target,
                                               uint64_t seed, int n);

// Which samples are looked through, and for what.
struct WantedSample {
  std::function<bool(const codegen::CudaSource&)> is_wanted;
  int samples = 64;
  std::map<std::string, double> parameters = {};  // of the policy that draws them
};
// The first one for a GPU whose CUDA text is as wanted. NotFound: none is.
StatusOr<std::string> SampleGpuSteps(const dag::DagPtr& dag, const target::Target& target,
                                     uint64_t seed, const WantedSample& wanted);

// The CUDA text of a schedule.
StatusOr<codegen::CudaSource> CudaOfSteps(const dag::DagPtr& dag, const std::string& steps);

}  // namespace kiln::client
