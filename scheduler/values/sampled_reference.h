// A reference for a task whose unscheduled loops take too long: it computes only a sample of the
// outputs (compiler/dag/sample_outputs.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "proto/runner.pb.h"

namespace kiln::scheduler {

struct SampledReference {
  std::string dag;  // text of the reference's computation, which runs without a schedule
  std::vector<v1::OutputSample> outputs;
  int64_t elements = 0;  // number of elements in the sample
  int64_t all = 0;       // number of elements in the outputs
};

// Fails as SampleOutputs does.
StatusOr<SampledReference> MakeSampledReference(const dag::DagText& whole, uint64_t seed);

}  // namespace kiln::scheduler
