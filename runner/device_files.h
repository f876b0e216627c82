// The files that a runner's child needs for a kind of device; docs/runner.md lists them.
#pragma once

#include <string>

#include "base/process/namespaces.h"

namespace kiln::runner {

// Files of a CPU: the libraries of the system, and facts about processors and memory.
FileView CpuFiles();

// Files of NVIDIA's driver, as NVIDIA's container toolkit mounts them: /dev/nvidia*, its libraries,
// what it reads of /sys, and the folder that CUDA_CACHE_PATH names. `root` is put before the
// folders that are listed, for tests.
FileView CudaFiles(const std::string& root = "");

}  // namespace kiln::runner
