#include "tests/schedules/check_llvm.h"

#include <cstring>

#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"

namespace kiln {
namespace {

StatusOr<std::vector<ir::NDArray>> RunCompiled(const Workload& workload,
                                               const codegen::Compiled& compiled) {
  KILN_ASSIGN_OR_RETURN(const codegen::LoadedProgram program,
                        codegen::LoadedProgram::Load(compiled.binary));
  std::vector<codegen::GuardedBytes> memory;
  std::vector<void*> pointers;
  std::vector<ir::NDArray> outputs = PoisonedOutputs(workload);
  size_t input = 0, output = 0;
  for (const codegen::Argument& arg : compiled.args) {
    const auto bytes = static_cast<size_t>(arg.bytes());
    memory.emplace_back(bytes, codegen::GuardedBytes::Place::kBack);
    if (arg.scope == ir::Scope::kInput) {
      const ir::NDArray& plain = workload.inputs[input++];
      const ir::NDArray taken = arg.packing ? Packed(plain, *arg.packing) : plain;
      std::memcpy(memory.back().data(), taken.bytes().data(), bytes);
    } else {
      std::memset(memory.back().data(), 0xa5, bytes);
    }
    pointers.push_back(memory.back().data());
  }
  program.Run(pointers);
  for (size_t i = 0; i < compiled.args.size(); ++i) {
    if (compiled.args[i].scope != ir::Scope::kOutput) continue;
    std::memcpy(outputs[output].mutable_bytes().data(), memory[i].data(),
                outputs[output].bytes().size());
    ++output;
  }
  return outputs;
}

Status CheckProgram(const Workload& workload, const ir::Program& program) {
  KILN_RETURN_IF_ERROR(ir::Verify(program));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget("llvm"));
  KILN_ASSIGN_OR_RETURN(const codegen::Compiled compiled, codegen::CompileLlvm(program, target));
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> outputs, RunCompiled(workload, compiled));
  return CompareOutputs(workload, outputs);
}

}  // namespace

Status CheckByLlvm(const Workload& workload, const schedule::State& state) {
  const std::string what =
      fmt::format("{} with steps {}", workload.name, schedule::PrintSteps(state.steps()));
  const StatusOr<ir::Program> program = lower::Lower(state, {});
  if (!program.ok()) return Annotate(program.status(), what);
  return Annotate(CheckProgram(workload, *program), what + "\n" + ir::ProgramText(*program));
}

}  // namespace kiln
