// Networks of shared objects, which run on the cores of this machine.
#pragma once

#include "runtime/executor.h"

namespace kiln::runtime {

// FailedPrecondition if this CPU lacks a feature that the file needs.
StatusOr<std::unique_ptr<Executor>> LoadOnCpu(std::shared_ptr<const NetworkFile> file,
                                              const ExecutorOptions& options);

}  // namespace kiln::runtime
