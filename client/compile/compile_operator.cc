#include "client/compile/compile_operator.h"

#include <fmt/format.h>

#include <optional>
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

// Returns the schedule of a record of the computation with packed inputs, as it is asked for.
// Returns none if there is no such record, or if one with unpacked inputs is faster.
StatusOr<std::optional<search::Choice>> ChooseForPacked(const OperatorToCompile& what,
                                                        const ProgramOptions& options,
                                                        Archive& archive) {
  const graph::NetworkTask packed = graph::MakeTask(what.dag, what.description);
  KILN_ASSIGN_OR_RETURN(std::vector<search::ScheduledDag> chosen,
                        ChooseRecords(std::span(&packed, 1), options, archive));
  search::Choice& choice = chosen[0].schedule;
  const bool has_record =
      choice.source == search::ChoiceSource::kRecord || choice.source == search::ChoiceSource::kSet;
  if (!has_record || chosen[0].dag != what.dag) return std::nullopt;
  return std::move(choice);
}

}  // namespace

StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options, Archive* archive) {
  const graph::NetworkTask task = TaskOf(what);
  std::string remark;
  if (task.dag != what.dag && archive != nullptr) {
    KILN_ASSIGN_OR_RETURN(const std::optional<search::Choice> packed,
                          ChooseForPacked(what, options, *archive));
    if (packed.has_value()) {
      auto made = CompileOperator(what, options, *packed);
      if (made.ok()) return made;
      remark = Message(made.status());
    }
  }
  KILN_ASSIGN_OR_RETURN(std::vector<TaskProgram> programs,
                        CompileTasks(std::span(&task, 1), options, archive));
  if (programs[0].remark.empty()) programs[0].remark = std::move(remark);
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
