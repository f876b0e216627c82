// Exports a tuned kernel as one CUDA file that nvcc compiles. The file has the kernels as they were
// measured, a simple reference for the same computation, and a main that fills the inputs, checks
// the result and times it. It needs nothing of Kiln.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"

namespace kiln::client {

struct ExportedKernel {
  dag::DagPtr dag;
  // Ranges of the inputs; main fills the inputs within them.
  std::vector<dag::InputRange> ranges = {};
  // JSON.
  std::string steps;
  // "conv2d_nhwc 1,7,7,512,512,3,3,1,1 + bias + relu".
  std::string description;
  // How prepared inputs are made; "": no input is prepared.
  std::string preparation;
  std::string workload_key, target;
  // "sm_90".
  std::string arch;
  // The device that measured the kernel; "": not known.
  std::string device;
  // The cost on that device; none: not known.
  std::optional<double> cost_s = {};
  // 0 or less: not known.
  double flop_count = 0;
  // Name of the file in the command of its head comment.
  std::string file_name = "kernel.cu";
};

struct ExportedFile {
  std::string text;
  // The flag that tells nvcc the architecture: "-arch=sm_90", or, for a kernel that only sm_90a can
  // run, "-gencode=arch=compute_90a,code=sm_90a" (-arch would compile it for sm_90 as well).
  std::string arch_flag;
};

// Pure function. InvalidArgument for types that the file's main cannot fill.
StatusOr<ExportedFile> ExportCuda(const ExportedKernel& kernel);

}  // namespace kiln::client
