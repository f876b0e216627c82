// The files that a builder's child needs: the libraries of the system, and the compilers of
// hand-written and CUDA kernels with their headers.
#pragma once

#include "base/process/namespaces.h"

namespace kiln::builder {

// Looks for the compilers, as the child will do. Sets KILN_NVRTC, so that the child finds the same
// NVRTC. Called by main's thread before there are others.
FileView FilesOfBuilds();

}  // namespace kiln::builder
