#include "search/space/search_space.h"

namespace kiln::search {

const SearchSpace& SpaceOf(const target::Target& target) {
  static constexpr SearchSpace kCpu = {
      .sketch_rules = CpuSketchRules,
      .tiling = &Parameters::cpu_tiling,
      .sketch_judged_trials = &Parameters::sketch_judged_trials_cpu,
      .neighbours_from_results = &Parameters::neighbours_from_results_cpu};
  static constexpr SearchSpace kGpu = {
      .sketch_rules = GpuSketchRules,
      .tiling = &Parameters::gpu_tiling,
      .sketch_judged_trials = &Parameters::sketch_judged_trials_gpu,
      .neighbours_from_results = &Parameters::neighbours_from_results_gpu};
  switch (target.kind->execution) {
    case target::ExecutionModel::kCpu:
      return kCpu;
    case target::ExecutionModel::kGpu:
      return kGpu;
  }
  KILN_CHECK(false, "execution model {}", static_cast<int>(target.kind->execution));
  return kCpu;
}

}  // namespace kiln::search
