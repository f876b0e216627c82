// A tuned kernel as one CUDA file that nvcc compiles: the kernels as they were measured, a simple
// reference for the same computation, and a main that fills the inputs, checks the result and times
// it. Needs nothing of Kiln.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"

namespace kiln::client {

struct ExportedKernel {
  dag::DagPtr dag;
  std::vector<dag::InputRange> ranges = {};  // of its inputs, which main keeps to
  std::string steps;                         // JSON
  std::string description;                   // "conv2d_nhwc 1,7,7,512,512,3,3,1,1 + bias + relu"
  std::string preparation;  // how inputs that come prepared are made; "": none does
  std::string workload_key, target;
  std::string arch;                     // "sm_90"
  std::string device;                   // that it was measured on; "": not known
  std::optional<double> cost_s = {};    // measured there; none: not known
  double flop_count = 0;                // 0 or less: not known
  std::string file_name = "kernel.cu";  // for the command in its head comment
};

struct ExportedFile {
  std::string text;
  // That tells nvcc what to compile for: "-arch=sm_90", or of what sm_90a alone has
  // "-gencode=arch=compute_90a,code=sm_90a" (-arch would have it compiled for sm_90 as well).
  std::string arch_flag;
};

// Pure. InvalidArgument for types that the file's main cannot fill.
StatusOr<ExportedFile> ExportCuda(const ExportedKernel& kernel);

}  // namespace kiln::client
