// kiln templates prints the templates that Kiln ships, the space of a template (or of a
// hand-written kernel) for a computation, and a point of a space.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/console/terminal.h"
#include "client/cli/compilation_target.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/session_flags.h"
#include "client/cli/space_text.h"
#include "client/cli/workload_flags.h"
#include "client/jobs/kernel_source.h"
#include "client/jobs/template_source.h"
#include "client/jobs/workload_source.h"
#include "client/view/json.h"
#include "compiler/target/target.h"
#include "scheduler/words/format.h"
#include "search/templates/kernel_template.h"
#include "search/templates/shipped.h"

namespace kiln::client {
namespace {

struct TemplatesFlags {
  // Name of a template or a file (template_source.h); "": list the templates.
  std::string what;
  // Operator for the template. A shipped template has its own.
  WorkloadArguments arguments;
  // "": the default (compilation_target.h), here and below.
  std::string target;
  // Index of a point of the space, which is shown instead of the space.
  std::optional<int64_t> config;
  // File that describes the parameters of a kernel (kernel_source.h).
  std::string space;
};

void ListTemplates(bool json) {
  Table table({{"Template", Table::kLeft, 12},
               {"Target"},
               {"Operator", Table::kLeft, 12},
               {"What it does", Table::kLeft, 12}});
  for (const search::ShippedTemplate& shipped : search::ShippedTemplates()) {
    const char* const target = shipped.for_gpu ? "cuda" : "llvm";
    if (json) {
      fmt::print("{{\"template\":{},\"target\":\"{}\",\"op\":{},\"what\":{}}}\n",
                 JsonString(std::string(shipped.name)), target, JsonString(std::string(shipped.op)),
                 JsonString(std::string(shipped.what)));
    } else {
      table.AddRow(
          {std::string(shipped.name), target, std::string(shipped.op), std::string(shipped.what)});
    }
  }
  if (json) return;
  fmt::print(
      "{}\nthe text of one: kiln templates TEMPLATE --target cuda; its knobs for a computation: "
      "with "
      "--args\n",
      table.ToString(OutputColumns(STDOUT_FILENO)));
}

// Prints the space of a template or kernel for a computation, or a point of the space.
Status PrintSpace(const search::Template& of, const dag::DagPtr& dag, std::optional<int64_t> config,
                  bool json) {
  KILN_ASSIGN_OR_RETURN(const search::ConfigSpace space, of.Space(dag));
  if (!config) {
    fmt::print("{}", SpaceText(space, json));
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, ConfigText(of, dag, space, *config, json));
  fmt::print("{}", text);
  return OkStatus();
}

// Prints the space of a hand-written kernel.
Status KernelCommand(const TemplatesFlags& flags, bool json) {
  if (!flags.arguments.op.empty() || !flags.arguments.args.empty()) {
    return InvalidArgument("{} is a kernel, whose --space says what it computes: leave out {}",
                           flags.what, flags.arguments.op.empty() ? "--args" : flags.arguments.op);
  }
  KILN_ASSIGN_OR_RETURN(const KernelSource source, LoadKernelSource(flags.what, flags.space));
  return PrintSpace(search::KernelTemplate(source.text), source.workload.dag, flags.config, json);
}

Status PrintTemplates(const TemplatesFlags& flags, const Session& session) {
  const bool json = session.json;
  if (flags.what.empty()) {
    ListTemplates(json);
    return OkStatus();
  }
  if (handwritten::IsKernelFile(flags.what)) return KernelCommand(flags, json);
  if (!flags.space.empty())
    return InvalidArgument("--space is of a kernel, *.cu or *.c; found {}", flags.what);
  KILN_ASSIGN_OR_RETURN(const ChosenTarget chosen, ChooseTarget(flags.target, session));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(chosen.text));
  KILN_ASSIGN_OR_RETURN(const TemplateSource source, LoadTemplate(flags.what, target.is_gpu()));
  WorkloadArguments arguments = flags.arguments;
  const bool has_computation = !arguments.op.empty() || !arguments.args.empty();
  if (arguments.op.empty()) arguments.op = source.op;
  if (!has_computation) {
    if (flags.config) return InvalidArgument("--config is of a computation: give its --args");
    SayTarget(chosen.note, session);
    fmt::print("{}",
               json ? fmt::format("{{\"template\":{}}}\n", JsonString(source.text)) : source.text);
    return OkStatus();
  }
  if (arguments.op.empty())
    return InvalidArgument(
        "{} is a file: give the operator or the text file that it is for after it", source.name);
  KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(arguments));
  KILN_ASSIGN_OR_RETURN(search::TemplatePtr parsed, search::TemplateOfText(source.text));
  KILN_ASSIGN_OR_RETURN(const search::TemplatePtr fitting,
                        search::TemplateFor(parsed, workload.dag, target.is_gpu()));
  SayTarget(chosen.note, session);
  return PrintSpace(*fitting, workload.dag, flags.config, json);
}

}  // namespace

Run AddTemplates(CLI::App& templates, SessionFlags& session) {
  const auto flags = std::make_shared<TemplatesFlags>();
  templates.description("list the schedule templates, or print one or its knobs");
  templates.add_option("template", flags->what,
                       "one that is listed, or a file (*.tmpl); alone: its text is printed; or a "
                       "kernel of yours (*.cu, *.c) with --space");
  templates.add_option("--space", flags->space, "of a kernel: its parameters and launch")
      ->type_name("FILE.toml");
  templates.add_option("op", flags->arguments.op,
                       "the operator or text file (*.te) that it is to schedule [of a listed one "
                       "its operator]");
  AddWorkloadArguments(templates, flags->arguments);
  templates.add_option("--target", flags->target, "cuda or llvm [as for kiln tune]");
  templates
      .add_option("--config", flags->config,
                  "instead of the knobs: their values at this index, and the schedule")
      ->type_name("INDEX")
      ->check(NotNegative());
  session.AddScheduler(templates);
  return Plain([flags](const Session& session) { return PrintTemplates(*flags, session); });
}

}  // namespace kiln::client
