#include "client/compile/kernel_program.h"

#include "compiler/codegen/backends/backends.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::client {

StatusOr<codegen::Compiled> CompileKernel(const dag::DagPtr& dag, const std::string& steps,
                                          const target::Target& target,
                                          const target::HardwareParams& hardware) {
  const codegen::Backend* const backend = codegen::FindBackend(*target.kind);
  KILN_RETURN_IF_ERROR(backend->Compiler().status());
  KILN_ASSIGN_OR_RETURN(const target::Target resolved, backend->Resolve(target));
  KILN_ASSIGN_OR_RETURN(const auto parsed, schedule::ParseSteps(steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, parsed));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = resolved.is_gpu()}));
  KILN_RETURN_IF_ERROR(backend->Check(program, resolved, target::FillHardware(resolved, hardware)));
  codegen::CompileTimes times;
  return backend->Compile(program, resolved, {.waits_for_previous = true}, times);
}

}  // namespace kiln::client
