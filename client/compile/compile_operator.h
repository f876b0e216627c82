// Compiles one computation as a network of one kernel, with the inputs and outputs of its text. The
// caller of the network gives inputs unpacked. Therefore a computation with packed inputs
// (dag/packed_inputs.h) is compiled as the same computation with unpacked inputs; steps for one are
// valid for the other.
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
  // Ranges of the values that inputs get in checks.
  std::vector<dag::InputRange> ranges = {};
  // The device model; "": that of the record.
  std::string device = {};
};

// Uses the best record of the computation, like a kernel of a network. A record of the same
// computation with packed inputs is reused like a record of another task. A null `archive` has no
// records.
StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options, Archive* archive);

// Uses this schedule only, and refuses a schedule that can't be compiled. A schedule that was
// measured with packed inputs counts as reused, and its cost is not known.
StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options,
                                          const search::Choice& choice);

}  // namespace kiln::client
