#include "client/compile/compile_operator.h"

#include <fmt/format.h>

#include <utility>

#include "client/compile/assembly.h"
#include "client/compile/kernel_program.h"
#include "client/compile/network_target.h"
#include "compiler/dag/text.h"

namespace kiln::client {
namespace {

StatusOr<CompiledNetwork> Assemble(const OperatorToCompile& what, const ProgramOptions& options,
                                   const TaskProgram& program) {
  KILN_ASSIGN_OR_RETURN(
      const runtime::NetworkTarget target,
      NetworkTargetOf(options.target,
                      what.device.empty() ? DeviceOf(std::span(&program, 1)) : what.device));
  KILN_ASSIGN_OR_RETURN(CompiledNetwork made,
                        AssembleOne(what.task.description, what.task, program, target));
  made.network.kernels[0].computation = dag::PrintDag(*what.task.dag, what.ranges);
  return made;
}

}  // namespace

StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options, Archive* archive) {
  KILN_ASSIGN_OR_RETURN(const std::vector<TaskProgram> programs,
                        CompileTasks(std::span(&what.task, 1), options, archive));
  return Assemble(what, options, programs[0]);
}

StatusOr<CompiledNetwork> CompileOperator(const OperatorToCompile& what,
                                          const ProgramOptions& options,
                                          const ScheduleChoice& choice) {
  TaskProgram program{.compiled = {}, .choice = choice, .remark = {}};
  auto compiled = CompileKernel(what.task.dag, choice.steps, options.target, choice.hardware);
  if (!compiled.ok()) {
    return Annotate(compiled.status(),
                    fmt::format("record {} can't be compiled for {}", choice.record,
                                target::PrintTarget(options.target)));
  }
  program.compiled = *std::move(compiled);
  return Assemble(what, options, program);
}

}  // namespace kiln::client
