// Loads a hand-written kernel from the files that the command line names: its source, and the
// description of its space.
#pragma once

#include <string>

#include "base/status.h"
#include "client/jobs/workload_source.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::client {

struct KernelSource {
  // Text with all sources.
  handwritten::KernelText text;
  // The computation that the kernel must perform.
  Workload workload;
};

// `source` is a *.cu or *.c. Other files that the space names stand beside the space. Errors are
// for the user: "my_kernel.toml:3:14: ...".
StatusOr<KernelSource> LoadKernelSource(const std::string& source, const std::string& space);

// Returns the kind of target for the file if `given` is only the default: "cuda" for a kernel in
// CUDA.
std::string TargetOfKernel(const std::string& source, const std::string& given, bool is_default);

}  // namespace kiln::client
