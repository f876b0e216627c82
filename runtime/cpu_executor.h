// Networks of shared objects, on the cores of this machine.
#pragma once

#include "runtime/executor.h"

namespace kiln::runtime {

// FailedPrecondition when this CPU lacks what the file needs.
StatusOr<std::unique_ptr<Executor>> LoadOnCpu(std::shared_ptr<const NetworkFile> file,
                                              const ExecutorOptions& options);

}  // namespace kiln::runtime
