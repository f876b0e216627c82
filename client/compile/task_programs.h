// The programs of tasks: each with the best record of its computation, compiled.
//
// Runs the compiler in the calling process, on threads of its own; nothing outlives a call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "compiler/codegen/compiled.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"
#include "graph/tasks.h"
#include "search/choice/choice.h"

namespace kiln::client {

struct ProgramOptions {
  target::Target target;
  // Refuses tasks of which one was never tuned for this target; the error lists them.
  bool strict = false;
  uint64_t seed = 1;
  int threads = 0;  // 0: one for each CPU
};

// Of one task.
struct TaskProgram {
  // What it computes: what the task does, or, where that takes inputs packed and a record without
  // is faster, the same with its inputs as they are.
  dag::DagPtr dag;
  codegen::Compiled compiled;
  search::Choice choice;
  std::string remark;  // why a record was not used
};

// The device that measured the first of the records that are for this target; "" where none says.
std::string DeviceOf(std::span<const TaskProgram> programs);

// In the order of the tasks. A task without a record of its own, or of the same with its inputs as
// they are, gets that of a compatible task, and if there is none a schedule that is chosen without
// measuring (search/choice/context.h). `archive`: null: no records. Errors are for the user.
StatusOr<std::vector<TaskProgram>> CompileTasks(std::span<const graph::NetworkTask> tasks,
                                                const ProgramOptions& options, Archive* archive);

}  // namespace kiln::client
