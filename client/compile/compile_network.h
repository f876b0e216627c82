// From a network and the records of its tasks to a compiled network (runtime/network.h): what
// `kiln compile` does.
//
// Runs the compiler in the calling process, on threads of its own; nothing outlives a call.
#pragma once

#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/compile/compiled_network.h"
#include "client/compile/task_programs.h"
#include "client/network.h"
#include "graph/graph.h"

namespace kiln::client {

struct CompileOptions {
  ProgramOptions programs;
  std::string device = {};  // the model that it is for, for people; "": that of the records
  Variants variants = Variants::kAll;
  bool pack_constants = false;  // ParseLayoutRewrite
};

// The network after its passes, one kernel per group, each with the best record of its computation;
// a convolution is done in the way whose record is faster, and constants are packed unless a record
// of the kernel that takes them as they are is faster. Kernels without a record get a schedule that
// is chosen without measuring. `archive`: null: no records. Errors are for the user.
StatusOr<CompiledNetwork> CompileNetwork(const graph::Graph& network, const CompileOptions& options,
                                         Archive* archive);

}  // namespace kiln::client
