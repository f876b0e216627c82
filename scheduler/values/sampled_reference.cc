#include "scheduler/values/sampled_reference.h"

#include <utility>

#include "compiler/dag/sample_outputs.h"

namespace kiln::scheduler {

StatusOr<SampledReference> MakeSampledReference(const dag::DagText& whole, uint64_t seed) {
  KILN_ASSIGN_OR_RETURN(const dag::SampledDag sampled, dag::SampleOutputs(whole, {.seed = seed}));
  const dag::Dag& dag = *whole.dag;
  SampledReference sample;
  sample.dag = dag::PrintDag(*sampled.text.dag, sampled.text.ranges);
  sample.elements = sampled.elements();
  for (const dag::OutputGrid& grid : sampled.grids) {
    v1::OutputSample& output = sample.outputs.emplace_back();
    output.set_output(static_cast<uint32_t>(grid.output));
    output.mutable_offset()->Add(grid.offset.begin(), grid.offset.end());
    output.mutable_stride()->Add(grid.stride.begin(), grid.stride.end());
  }
  for (const dag::Tensor argument : dag.arguments()) {
    const dag::Operator& op = dag.op(argument.op);
    if (!op.is_placeholder()) sample.all += op.num_elements();
  }
  return sample;
}

}  // namespace kiln::scheduler
