// A kernel that the user wrote, from the files that the command line names: its source, and the
// description of its space.
#pragma once

#include <string>

#include "base/status.h"
#include "client/cli/workload_source.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::client {

struct KernelSource {
  handwritten::KernelText text;  // with all sources
  Workload workload;             // what it must compute
};

// `source`: *.cu or *.c. Other files that the space names are beside it. Errors are for the user:
// "my_kernel.toml:3:14: ...".
StatusOr<KernelSource> LoadKernelSource(const std::string& source, const std::string& space);

// The kind of target that the file is for, where the user has said none (his default): "cuda" for a
// kernel in CUDA.
std::string TargetOfKernel(const std::string& source, const std::string& given, bool is_default);

}  // namespace kiln::client
