#include "client/render.h"

#include <fmt/ranges.h>

#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/cuda_source.h"
#include "compiler/codegen/llvm.h"
#include "compiler/dag/text.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"

namespace kiln::client {
namespace {

std::string WithNewline(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

// One step a line; still one JSON array.
std::string StepLines(const std::vector<schedule::StepPtr>& steps) {
  if (steps.empty()) return "[]\n";
  std::string text = "[";
  for (size_t i = 0; i < steps.size(); ++i) {
    text += (i == 0 ? "" : ",\n ") + steps[i]->ToJson();
  }
  return text + "]\n";
}

StatusOr<target::Target> LlvmTarget(const Rendered& what, std::string_view form) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(what.target));
  if (target.kind == target::TargetKind::kLlvm) return codegen::ResolveCpu(target);
  return InvalidArgument("target '{}' has no {} form, only llvm targets do; say --target llvm",
                         what.target, form);
}

StatusOr<ir::Program> LoweredProgram(const schedule::State& state, const Rendered& what) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(what.target));
  return lower::Lower(state, {.gpu = target.is_gpu()});
}

StatusOr<std::string> RenderCode(const schedule::State& state, const Rendered& what,
                                 std::string_view form) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, LlvmTarget(what, form));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what));
  if (form == "asm") return codegen::PrintAssembly(program, target);
  return codegen::PrintLlvmIr(program, target);
}

StatusOr<std::string> RenderCuda(const schedule::State& state, const Rendered& what) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(what.target));
  if (!target.is_gpu()) {
    return InvalidArgument("target '{}' has no cuda form, only cuda targets do; say --target cuda",
                           what.target);
  }
  KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what));
  KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  const std::string arch = target.Option("arch");
  const bool can_compile = !arch.empty() && codegen::FindNvrtc().ok();
  if (!can_compile) return source.text;
  // Code that does not compile is shown all the more.
  const auto cubin = codegen::CompileCubin(source.text, arch);
  if (!cubin.ok()) {
    const std::string_view message = Message(cubin.status());
    return fmt::format("// {}\n\n{}", message.substr(0, message.find('\n')), source.text);
  }
  return codegen::ResourceComment(source, *cubin) + "\n" + source.text;
}

}  // namespace

std::vector<std::string> RenderForms() {
  return {"dag", "steps", "schedule", "loops", "program", "llvm", "asm", "cuda"};
}

StatusOr<std::string> Render(const Rendered& what, std::string_view form) {
  if (form == "dag") return WithNewline(dag::PrintDag(*what.dag));
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(what.steps));
  if (form == "steps") return StepLines(steps);
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(what.dag, steps));
  if (form == "schedule") {
    return WithNewline(steps.empty() ? "# the unscheduled loops: no primitives"
                                     : schedule::PrintPrimitives(state));
  }
  if (form == "loops") {
    // With the extents of attached stages, which replay alone leaves open.
    auto filled = lower::FillExtents(state);
    return WithNewline(schedule::PrintLoops(filled.ok() ? *filled : state));
  }
  if (form == "program") {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what));
    return WithNewline(ir::ProgramText(program));
  }
  if (form == "llvm" || form == "asm") {
    KILN_ASSIGN_OR_RETURN(std::string text, RenderCode(state, what, form));
    return WithNewline(std::move(text));
  }
  if (form == "cuda") {
    KILN_ASSIGN_OR_RETURN(std::string text, RenderCuda(state, what));
    return WithNewline(std::move(text));
  }
  return InvalidArgument("unknown form '{}', expected one of: {}", form,
                         fmt::join(RenderForms(), ", "));
}

}  // namespace kiln::client
