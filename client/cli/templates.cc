// kiln templates: the templates that Kiln ships, the space of one for a computation, a point of it.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/terminal.h"
#include "client/cli/commands.h"
#include "client/cli/template_source.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/templates/shipped.h"

namespace kiln::client {
namespace {

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

void PrintSpace(const search::ConfigSpace& space, bool json) {
  if (!json) {
    fmt::print("{}", space.Print());
    return;
  }
  std::string knobs;
  for (const search::Knob& knob : space.knobs()) {
    knobs += fmt::format("{}{{\"name\":{},\"len\":{},\"what\":{}}}", knobs.empty() ? "" : ",",
                         JsonString(knob.name()), knob.size(), JsonString(knob.Description()));
  }
  const search::ValidCount valid = space.CountValid();
  fmt::print("{{\"len\":{},\"len_is_exact\":{},\"range_length\":{},\"knobs\":[{}]}}\n", valid.count,
             valid.is_exact, space.range(), knobs);
}

Status PrintConfig(const search::Template& schedule_template, const dag::DagPtr& dag,
                   const search::ConfigSpace& space, int64_t index, bool json) {
  if (index < 0 || index >= space.range())
    return InvalidArgument("--config {}: expected an index from 0 to {}", index, space.range() - 1);
  const search::Config config = space.Get(index);
  const std::string entities = search::PrintEntities(config.entities);
  if (!json) {
    for (const auto& [name, entity] : config.entities)
      fmt::print("{} = {}\n", name, search::PrintEntity(entity));
  }
  const StatusOr<schedule::State> state = schedule_template.Instantiate(dag, config);
  if (!state.ok()) return Annotate(state.status(), fmt::format("config {}", index));
  if (json) {
    fmt::print("{{\"index\":{},\"entity\":{},\"steps\":{}}}\n", index, entities,
               JsonString(schedule::PrintSteps(state->steps())));
  } else {
    fmt::print("\n{}\n{}", schedule::PrintLoops(*state), schedule::PrintPrimitives(*state));
  }
  return OkStatus();
}

}  // namespace

Status TemplatesCommand(const TemplatesFlags& flags, bool json) {
  if (flags.what.empty()) {
    ListTemplates(json);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(flags.target));
  KILN_ASSIGN_OR_RETURN(const TemplateSource source, LoadTemplate(flags.what, target.is_gpu()));
  WorkloadArguments arguments = flags.arguments;
  const bool has_computation = !arguments.op.empty() || !arguments.args.empty();
  if (arguments.op.empty()) arguments.op = source.op;
  if (!has_computation) {
    if (flags.config) return InvalidArgument("--config is of a computation: give its --args");
    fmt::print("{}",
               json ? fmt::format("{{\"template\":{}}}\n", JsonString(source.text)) : source.text);
    return OkStatus();
  }
  if (arguments.op.empty())
    return InvalidArgument(
        "{} is a file: give the operator or the text file that it is for after it", source.name);
  KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(arguments));
  KILN_ASSIGN_OR_RETURN(search::TemplatePtr parsed, search::TextTemplate::Parse(source.text));
  KILN_ASSIGN_OR_RETURN(const search::TemplatePtr fitting,
                        search::TemplateFor(parsed, workload.dag, target.is_gpu()));
  KILN_ASSIGN_OR_RETURN(const search::ConfigSpace space, fitting->Space(workload.dag));
  if (flags.config) return PrintConfig(*fitting, workload.dag, space, *flags.config, json);
  PrintSpace(space, json);
  return OkStatus();
}

}  // namespace kiln::client
