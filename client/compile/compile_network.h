// Makes a compiled network (runtime/network.h) of a network and the records of its tasks, as `kiln
// compile` does.
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
  // The device model, for people; "": that of the records.
  std::string device = {};
  Variants variants = Variants::kAll;
  // See ParseLayoutRewrite.
  bool pack_constants = false;
};

// Compiles the network after its passes, one kernel per group, each with the best record of its
// computation. A convolution uses the algorithm whose record is faster, and constants are packed
// unless the record of the kernel with unpacked constants is faster. Kernels without a record get a
// schedule that is chosen without measuring. A null `archive` has no records. Errors are for the
// user.
StatusOr<CompiledNetwork> CompileNetwork(const graph::Graph& network, const CompileOptions& options,
                                         Archive* archive);

}  // namespace kiln::client
