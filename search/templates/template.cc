#include "search/templates/template.h"

#include "compiler/lower/lower.h"
#include "search/space/gpu_validity.h"

namespace kiln::search {

uint64_t Instance::Hash() const {
  return kernel ? handwritten::HashKernelPoint(*kernel)
                : schedule::HashSteps(state.value().steps());
}

Status Template::CheckRuns(const Instance& instance, const Task& task, Drop& drop) const {
  const schedule::State& state = instance.state.value();
  drop = Drop::kLowering;
  if (task.target.is_gpu()) {
    KILN_ASSIGN_OR_RETURN(const schedule::State filled, lower::FillExtents(state, task.stop));
    const Status limits = CheckGpuLimits(filled, task.hardware, task.device.max_cluster_blocks);
    if (!limits.ok()) {
      drop = Message(limits).find("shared memory") != std::string_view::npos ? Drop::kSharedMemory
                                                                             : Drop::kThreads;
      return limits;
    }
  }
  return lower::Lower(state, {.gpu = task.target.is_gpu(), .stop = task.stop}).status();
}

}  // namespace kiln::search
