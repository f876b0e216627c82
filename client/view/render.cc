#include "client/view/render.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "client/view/render_kernel.h"
#include "compiler/dag/text.h"
#include "compiler/ir/pass.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/tvm/program.h"
#include "compiler/target/recorded.h"
#include "compiler/target/target.h"

namespace kiln::client {
namespace {

std::string WithNewline(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

// Returns the steps one a line, as one JSON array.
std::string StepLines(const std::vector<schedule::StepPtr>& steps) {
  if (steps.empty()) return "[]\n";
  std::string text = "[";
  for (size_t i = 0; i < steps.size(); ++i) {
    text += (i == 0 ? "" : ",\n ") + steps[i]->ToJson();
  }
  return text + "]\n";
}

constexpr std::string_view kPasses = "passes", kProgram = "program";

// A form of code, and the backend that makes it.
struct Shown {
  // Null: there is no such form.
  const codegen::Backend* backend = nullptr;
  std::string_view form = {};
};

Shown FindCodeForm(std::string_view form, codegen::Backends backends) {
  for (const codegen::Backend* backend : backends) {
    for (const codegen::CodeForm& known : backend->forms()) {
      if (known.name == form) return {backend, known.name};
    }
  }
  return {};
}

std::vector<std::string> CompiledForms(codegen::Backends backends) {
  std::vector<std::string> forms = {std::string(kPasses), std::string(kProgram)};
  for (const codegen::Backend* backend : backends) {
    for (const codegen::CodeForm& form : backend->forms()) forms.emplace_back(form.name);
  }
  return forms;
}

// Collects reports of the passes: their effects as text, and their names.
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
  // Names of the passes that can be left out.
  std::vector<std::string> names_;
  std::string text_;
};

// Lowers a schedule for a target, and shows the result.
class CompiledView {
 public:
  CompiledView(const schedule::State& state, target::Target target, const codegen::Backend& backend)
      : state_(state), target_(std::move(target)), backend_(backend) {}

  StatusOr<std::string> Program(const ir::PassInstruments* instruments) const {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, Lowered(instruments));
    return ir::ProgramText(program);
  }

  StatusOr<std::string> Passes(const PassLog& log) const {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, Lowered(log.instruments()));
    KILN_RETURN_IF_ERROR(backend_.RunPasses(program, log.instruments()));
    return log.text();
  }

  StatusOr<std::string> Code(const Shown& shown, const ir::PassInstruments* instruments) const {
    const std::string_view kind = shown.backend->kind().name;
    if (shown.backend != &backend_) {
      return InvalidArgument("target '{}' has no {} form, only {} targets do; say --target {}",
                             target::PrintTarget(target_), shown.form, kind, kind);
    }
    KILN_ASSIGN_OR_RETURN(const target::Target resolved, backend_.Resolve(target_));
    KILN_ASSIGN_OR_RETURN(const ir::Program program, Lowered(instruments));
    return backend_.Show(shown.form, program, resolved, instruments);
  }

 private:
  StatusOr<ir::Program> Lowered(const ir::PassInstruments* instruments) const {
    return lower::Lower(state_, {.gpu = target_.is_gpu(), .instruments = instruments});
  }

  const schedule::State& state_;
  const target::Target target_;
  const codegen::Backend& backend_;
};

StatusOr<std::string> RenderCompiled(const schedule::State& state, const Rendered& what,
                                     std::string_view form, codegen::Backends backends) {
  KILN_ASSIGN_OR_RETURN(target::RecordedTarget recorded,
                        target::ParseRecordedTarget(what.target, codegen::KindsOf(backends)));
  target::Target target = std::move(recorded.target);
  const codegen::Backend& backend = *codegen::FindBackend(*target.kind, backends);
  const CompiledView view(state, std::move(target), backend);
  const PassLog log(what.leave_out);
  const bool watched = form == kPasses || !what.leave_out.empty();
  const ir::PassInstruments* instruments = watched ? log.instruments() : nullptr;
  StatusOr<std::string> text = form == kPasses ? view.Passes(log)
                               : form == kProgram
                                   ? view.Program(instruments)
                                   : view.Code(FindCodeForm(form, backends), instruments);
  if (text.ok()) KILN_RETURN_IF_ERROR(log.CheckNames());
  return text;
}

StatusOr<std::string> RenderTvm(const schedule::State& state, const std::string& text) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  if (target.kind == &target::kNull)
    return InvalidArgument("TVM has no target '{}'; say --target llvm or --target cuda", text);
  return schedule::TvmProgram(state, text);
}

}  // namespace

std::vector<std::string> RenderForms(codegen::Backends backends) {
  std::vector<std::string> forms = {"dag", "steps", "schedule", "tvm", "loops"};
  std::ranges::move(CompiledForms(backends), std::back_inserter(forms));
  forms.emplace_back(kCForm);
  return forms;
}

bool FormNeedsTarget(std::string_view form, codegen::Backends backends) {
  const std::vector<std::string> forms = CompiledForms(backends);
  return form == "tvm" || std::ranges::find(forms, form) != forms.end();
}

StatusOr<std::string> Render(const Rendered& what, std::string_view form,
                             codegen::Backends backends) {
  const std::vector<std::string> forms = CompiledForms(backends);
  const bool compiled = std::ranges::find(forms, form) != forms.end();
  if (!compiled && !what.leave_out.empty())
    return InvalidArgument("--leave-out is for {}, not for {}", fmt::join(forms, ", "), form);
  if (form == "dag") return WithNewline(dag::PrintDag(*what.dag));
  if (IsOfKernel(what.steps, what.kernel)) {
    if (!what.leave_out.empty())
      return InvalidArgument("--leave-out: a hand-written kernel goes through no pass");
    return RenderKernel(what, form);
  }
  if (form == kCForm)
    return InvalidArgument("the form {} is of kernels that people wrote in C; see --as asm", form);
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(what.steps));
  if (form == "steps") return StepLines(steps);
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(what.dag, steps));
  if (form == "schedule") {
    return WithNewline((steps.empty() ? "# the unscheduled loops\n" : "") +
                       schedule::PrintPrimitives(state));
  }
  if (form == "tvm") return RenderTvm(state, what.target);
  if (form == "loops") {
    // FillExtents adds the extents of attached stages, which a replay leaves open.
    auto filled = lower::FillExtents(state);
    return WithNewline(schedule::PrintLoops(filled.ok() ? *filled : state));
  }
  if (compiled) {
    KILN_ASSIGN_OR_RETURN(std::string text, RenderCompiled(state, what, form, backends));
    return WithNewline(std::move(text));
  }
  return InvalidArgument("unknown form '{}', expected one of: {}", form,
                         fmt::join(RenderForms(backends), ", "));
}

}  // namespace kiln::client
