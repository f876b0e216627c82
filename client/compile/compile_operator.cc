#include "client/compile/compile_operator.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/compile/assembly.h"
#include "client/compile/kernel_program.h"
#include "client/compile/network_target.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "graph/tasks.h"
#include "search/choice/choice.h"
#include "search/choice/context.h"

namespace kiln::client {
namespace {

graph::NetworkTask TaskOf(const OperatorToCompile& what) {
  return graph::MakeTask(dag::PlainInputs(what.dag), what.description);
}

StatusOr<CompiledNetwork> Assemble(const OperatorToCompile& what, const graph::NetworkTask& task,
                                   const ProgramOptions& options, const TaskProgram& program) {
  KILN_ASSIGN_OR_RETURN(
      const runtime::NetworkTarget target,
      NetworkTargetOf(options.target,
                      what.device.empty() ? DeviceOf(std::span(&program, 1)) : what.device));
  KILN_ASSIGN_OR_RETURN(CompiledNetwork made, AssembleOne(what.description, task, program, target));
  made.network.kernels[0].computation = dag::PrintDag(*task.dag, what.ranges);
  return made;
}

// Returns whether `chosen` is a record of `packed`, or was set for it. Other schedules are those of
// the computation with unpacked inputs, or were chosen without measuring.
bool HasRecord(const search::ScheduledDag& chosen, const dag::DagPtr& packed) {
  const search::ChoiceSource source = chosen.schedule.source;
  return chosen.dag == packed &&
         (source == search::ChoiceSource::kRecord || source == search::ChoiceSource::kSet);
}

// Returns the two remarks, of which each may be empty, as one.
std::string Joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + "; " + second;
}

// `what` takes packed inputs, and `task` is the same computation with unpacked ones.
StatusOr<CompiledNetwork> CompileFaster(const OperatorToCompile& what,
                                        const graph::NetworkTask& task,
                                        const ProgramOptions& options, Archive& archive) {
  const graph::NetworkTask tasks[] = {graph::MakeTask(what.dag, what.description), task};
  KILN_ASSIGN_OR_RETURN(std::vector<search::ScheduledDag> chosen,
                        ChooseRecords(tasks, options, archive));
  std::string remark;
  if (HasRecord(chosen[0], what.dag)) {
    auto made = CompileOperator(what, options, chosen[0].schedule);
    if (made.ok()) return made;
    remark = Message(made.status());
  }
  KILN_ASSIGN_OR_RETURN(std::vector<TaskProgram> programs,
                        CompileChosen(std::span(&task, 1), {std::move(chosen[1])}, options));
  programs[0].remark = Joined(remark, programs[0].remark);
  return Assemble(what, task, options, programs[0]);
}

}  // namespace

StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options, Archive* archive) {
  const graph::NetworkTask task = TaskOf(what);
  if (task.dag != what.dag && archive != nullptr)
    return CompileFaster(what, task, options, *archive);
  KILN_ASSIGN_OR_RETURN(const std::vector<TaskProgram> programs,
                        CompileTasks(std::span(&task, 1), options, archive));
  return Assemble(what, task, options, programs[0]);
}

StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options,
                                          const search::Choice& choice) {
  const graph::NetworkTask task = TaskOf(what);
  TaskProgram program{.dag = task.dag, .compiled = {}, .choice = choice, .remark = {}};
  auto compiled = CompileKernel(task.dag, choice.steps, options.target, choice.hardware);
  if (!compiled.ok()) {
    const std::string what_fails =
        choice.record.empty() ? "the schedule" : "record " + choice.record;
    return Annotate(compiled.status(), fmt::format("{} can't be compiled for {}", what_fails,
                                                   target::PrintTarget(options.target)));
  }
  program.compiled = *std::move(compiled);
  if (task.dag != what.dag) {
    if (program.choice.source == search::ChoiceSource::kRecord)
      program.choice.source = search::ChoiceSource::kCompatible;
    program.choice.reused_from = fmt::format("{} with packed inputs", what.description);
    program.choice.cost_s = 0;
  }
  return Assemble(what, task, options, program);
}

}  // namespace kiln::client
