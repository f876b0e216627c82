// One computation as a network of one kernel: its inputs and outputs are those of its text. Who runs
// it gives inputs as they are, so that a computation that takes some packed
// (dag/packed_inputs.h) is compiled as the same one that takes none so; steps for the one are steps
// for the other.
//
// Runs the compiler in the calling process, on threads of its own; nothing outlives a call.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/compile/compiled_network.h"
#include "client/compile/task_programs.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/input_range.h"
#include "search/choice/choice.h"

namespace kiln::client {

struct OperatorToCompile {
  dag::DagPtr dag;
  std::string description;
  std::vector<dag::InputRange> ranges = {};  // of the values that its inputs get in checks
  std::string device = {};                   // the model that it is for; "": that of the record
};

// With the best record of the computation, as a kernel of a network gets it; one of the same
// computation with packed inputs is reused as that of another task is. `archive`: null: no
// records.
StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options, Archive* archive);

// With this schedule and no other: refused where it can't be compiled. One that was measured with
// packed inputs becomes a reused one, whose cost is not known.
StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options,
                                          const search::Choice& choice);

}  // namespace kiln::client
