// Compiles tasks into programs, each with the best record of its computation.
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
#include "search/choice/context.h"

namespace kiln::client {

struct ProgramOptions {
  target::Target target;
  // True: refuses tasks of which one was never tuned for this target; the error lists such tasks.
  bool strict = false;
  uint64_t seed = 1;
  // 0: one thread for each CPU.
  int threads = 0;
};

// The program of one task.
struct TaskProgram {
  // The computation of the program. It is that of the task, or, if the task takes inputs packed and
  // a record with unpacked inputs is faster, the same computation with unpacked inputs.
  dag::DagPtr dag;
  codegen::Compiled compiled;
  search::Choice choice;
  // Why a record was not used.
  std::string remark;
};

// Returns the device of the first record that is for this target; "" if no record names a device.
std::string DeviceOf(std::span<const TaskProgram> programs);

// Returns the schedules that records give, in the order of the tasks. Each is a schedule of the
// task's computation or of the same with unpacked inputs (search::FasterOf). A task without a
// usable record has no steps.
StatusOr<std::vector<search::ScheduledDag>> ChooseRecords(std::span<const graph::NetworkTask> tasks,
                                                          const ProgramOptions& options,
                                                          Archive& archive);

// Returns the programs in the order of the tasks. A task uses its own record, or one of the same
// computation with unpacked inputs. Without such a record it uses that of a compatible task, and
// without any a schedule that is chosen without measuring (search/choice/context.h). A null
// `archive` has no records. Errors are for the user.
StatusOr<std::vector<TaskProgram>> CompileTasks(std::span<const graph::NetworkTask> tasks,
                                                const ProgramOptions& options, Archive* archive);

// The same with the schedules that ChooseRecords returned for these tasks.
StatusOr<std::vector<TaskProgram>> CompileChosen(std::span<const graph::NetworkTask> tasks,
                                                 std::vector<search::ScheduledDag> chosen,
                                                 const ProgramOptions& options);

}  // namespace kiln::client
