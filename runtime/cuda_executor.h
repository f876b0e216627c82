// Networks of cubins, which run on an NVIDIA GPU.
#pragma once

#include "runtime/executor.h"

namespace kiln::runtime {

// FailedPrecondition if there is no such GPU, or only one of another architecture.
StatusOr<std::unique_ptr<Executor>> LoadOnCuda(std::shared_ptr<const NetworkFile> file,
                                               const ExecutorOptions& options);

}  // namespace kiln::runtime
