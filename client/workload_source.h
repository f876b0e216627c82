// What the user wants tuned, from words of the command line: an operator of the library with its
// arguments, or a text file.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::client {

struct WorkloadWords {
  std::string op = {};    // "conv2d_nchw", or the path of a text file
  std::string args = {};  // "1,7,7,512,512,3,3,1,1"
  std::string dtype = "float32";
  std::string out_dtype = {};  // "" = as the operator says
  std::string epilogue = {};   // "bias,relu"
};

struct Workload {
  dag::DagPtr dag;
  std::string description;  // "conv2d_nchw 1,7,7,512,512,3,3,1,1 + bias + relu", "my_op.te"
};

// A path: it has a slash or ends in .te.
bool IsTextFile(std::string_view op);

// Errors are for the user: "my_op.te:3:14: expected ...", "no operator conv2d; closest: ...".
StatusOr<Workload> LoadWorkload(const WorkloadWords& words);
StatusOr<dag::DagPtr> LoadTextFile(const std::string& path);

}  // namespace kiln::client
