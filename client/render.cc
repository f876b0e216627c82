#include "client/render.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/cuda_source.h"
#include "compiler/codegen/llvm.h"
#include "compiler/dag/text.h"
#include "compiler/ir/pass.h"
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

// Listens to the passes: what they do, as text, and which of them there are.
class PassLog {
 public:
  explicit PassLog(const std::vector<std::string>& leave_out) {
    instruments_.leave_out.insert(leave_out.begin(), leave_out.end());
    instruments_.observer = [this](const ir::PassReport& report) { Add(report); };
  }
  PassLog(const PassLog&) = delete;
  PassLog& operator=(const PassLog&) = delete;

  const ir::PassInstruments* instruments() const { return &instruments_; }
  const std::string& text() const { return text_; }

  Status CheckNames() const {
    for (const std::string& name : instruments_.leave_out) {
      if (std::ranges::find(names_, name) != names_.end()) continue;
      return InvalidArgument("--leave-out: no pass is called '{}' here, expected one of: {}", name,
                             fmt::join(names_, ", "));
    }
    return OkStatus();
  }

 private:
  void Add(const ir::PassReport& report) {
    if (report.program != nullptr) {
      if (names_.empty()) text_ += WithNewline(std::string(report.before));
      names_.emplace_back(report.name);
    }
    text_ += fmt::format("# {}: {:.1f} us{}\n", report.name, report.seconds * 1e6,
                         report.left_out             ? ", left out"
                         : report.changed            ? ", changed the program:"
                         : report.program != nullptr ? ", changed nothing"
                                                     : "");
    if (report.changed) text_ += WithNewline(ir::ProgramText(*report.program));
  }

  ir::PassInstruments instruments_;
  std::vector<std::string> names_;  // of those that can be left out
  std::string text_;
};

StatusOr<ir::Program> LoweredProgram(const schedule::State& state, const Rendered& what,
                                     const ir::PassInstruments* instruments) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(what.target));
  return lower::Lower(state, {.gpu = target.is_gpu(), .instruments = instruments});
}

StatusOr<std::string> RenderProgram(const schedule::State& state, const Rendered& what,
                                    const ir::PassInstruments* instruments) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what, instruments));
  return ir::ProgramText(program);
}

StatusOr<std::string> RenderPasses(const schedule::State& state, const Rendered& what,
                                   const PassLog& log) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(what.target));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what, log.instruments()));
  if (target.is_gpu()) {
    KILN_RETURN_IF_ERROR(
        codegen::GenerateCuda(program, {.instruments = log.instruments()}).status());
  }
  return log.text();
}

StatusOr<std::string> RenderCode(const schedule::State& state, const Rendered& what,
                                 std::string_view form, const ir::PassInstruments* instruments) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, LlvmTarget(what, form));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what, instruments));
  if (form == "asm") return codegen::PrintAssembly(program, target);
  return codegen::PrintLlvmIr(program, target);
}

StatusOr<std::string> RenderCuda(const schedule::State& state, const Rendered& what,
                                 const ir::PassInstruments* instruments) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(what.target));
  if (!target.is_gpu()) {
    return InvalidArgument("target '{}' has no cuda form, only cuda targets do; say --target cuda",
                           what.target);
  }
  KILN_ASSIGN_OR_RETURN(const ir::Program program, LoweredProgram(state, what, instruments));
  KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source,
                        codegen::GenerateCuda(program, {.instruments = instruments}));
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

StatusOr<std::string> RenderCompiled(const schedule::State& state, const Rendered& what,
                                     std::string_view form) {
  const PassLog log(what.leave_out);
  const bool watched = form == "passes" || !what.leave_out.empty();
  const ir::PassInstruments* instruments = watched ? log.instruments() : nullptr;
  StatusOr<std::string> text = form == "passes"    ? RenderPasses(state, what, log)
                               : form == "program" ? RenderProgram(state, what, instruments)
                               : form == "cuda"    ? RenderCuda(state, what, instruments)
                                                   : RenderCode(state, what, form, instruments);
  if (text.ok()) KILN_RETURN_IF_ERROR(log.CheckNames());
  return text;
}

constexpr std::string_view kCompiledForms[] = {"passes", "program", "llvm", "asm", "cuda"};

}  // namespace

std::vector<std::string> RenderForms() {
  std::vector<std::string> forms = {"dag", "steps", "schedule", "loops"};
  forms.insert(forms.end(), std::begin(kCompiledForms), std::end(kCompiledForms));
  return forms;
}

StatusOr<std::string> Render(const Rendered& what, std::string_view form) {
  const bool compiled = std::ranges::find(kCompiledForms, form) != std::end(kCompiledForms);
  if (!compiled && !what.leave_out.empty()) {
    return InvalidArgument("--leave-out is for {}, not for {}", fmt::join(kCompiledForms, ", "),
                           form);
  }
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
  if (compiled) {
    KILN_ASSIGN_OR_RETURN(std::string text, RenderCompiled(state, what, form));
    return WithNewline(std::move(text));
  }
  return InvalidArgument("unknown form '{}', expected one of: {}", form,
                         fmt::join(RenderForms(), ", "));
}

}  // namespace kiln::client
