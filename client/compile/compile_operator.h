// One computation as a network of one kernel: its inputs and outputs are those of its text.
//
// Runs the compiler in the calling process, on threads of its own; nothing outlives a call.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/compile/compiled_network.h"
#include "client/compile/task_programs.h"
#include "compiler/dag/input_range.h"
#include "graph/tasks.h"

namespace kiln::client {

struct OperatorToCompile {
  graph::NetworkTask task;                   // graph::MakeTask
  std::vector<dag::InputRange> ranges = {};  // of the values that its inputs get in checks
  std::string device = {};                   // the model that it is for; "": that of the record
};

// With the best record of the computation, as a kernel of a network gets it. `archive`: null: no
// records.
StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options, Archive* archive);

// With this schedule and no other: refused where it can't be compiled.
StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options,
                                          const ScheduleChoice& choice);

}  // namespace kiln::client
