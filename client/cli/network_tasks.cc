// kiln tasks: what there is to tune in a network.
#include <fmt/format.h>
#include <unistd.h>

#include "base/terminal.h"
#include "base/units.h"
#include "client/cli/commands.h"
#include "client/network.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

std::string VariantJson(const TaskVariant& variant) {
  return fmt::format(
      "{{\"variant\":{},\"preparation\":{},\"workload_key\":{},\"flop_count\":{},\"dag\":{}}}",
      JsonString(variant.name), JsonString(variant.preparation),
      JsonString(dag::WorkloadKey(*variant.dag)), variant.dag->flop_count(),
      JsonString(dag::PrintDag(*variant.dag)));
}

std::string TaskJson(const NetworkTuneTask& task) {
  std::string variants;
  for (const TaskVariant& variant : task.variants)
    variants += (variants.empty() ? "" : ",") + VariantJson(variant);
  return fmt::format("{{\"weight\":{},\"task\":{},\"simple\":{},\"variants\":[{}]}}", task.weight,
                     JsonString(task.description), task.is_simple, variants);
}

std::string FlopText(const dag::Dag& dag) {
  const double flops = dag.flop_count();
  return flops < 0 ? "-" : FormatCount(static_cast<int64_t>(flops));
}

void PrintTable(const std::vector<NetworkTuneTask>& tasks) {
  Table table({{"ID", Table::kRight},
               {"Weight", Table::kRight},
               {"Task", Table::kLeft, 24},
               {"FLOPs", Table::kRight},
               {"Key", Table::kLeft, 12}});
  double flops = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (const TaskVariant& variant : tasks[i].variants) {
      const bool first = &variant == &tasks[i].variants[0];
      table.AddRow({first ? fmt::format("{}", i) : "",
                    first ? fmt::format("{}", tasks[i].weight) : "",
                    first ? tasks[i].description : fmt::format("  or {}", variant.name),
                    FlopText(*variant.dag), dag::WorkloadKey(*variant.dag)});
    }
    flops += tasks[i].weight * std::max(0.0, tasks[i].variants[0].dag->flop_count());
  }
  fmt::print("{}{} tasks, {} FLOPs in all\n", table.ToString(OutputColumns(STDOUT_FILENO)),
             tasks.size(), FormatCount(static_cast<int64_t>(flops)));
}

void PrintDags(const std::vector<NetworkTuneTask>& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (const TaskVariant& variant : tasks[i].variants) {
      fmt::print("\n# {}: {}{}{}\n{}", i, tasks[i].description, variant.name.empty() ? "" : ", ",
                 variant.name, dag::PrintDag(*variant.dag));
    }
  }
}

}  // namespace

Status TasksCommand(const TasksFlags& flags, bool json) {
  if (!IsNetwork(flags.network.what)) {
    return InvalidArgument(
        "{} is no network, expected network:NAME, a model (*.onnx) or a network's text (*.graph)",
        flags.network.what);
  }
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(flags.target));
  TaskSelection selection{.include_simple = flags.include_simple};
  KILN_ASSIGN_OR_RETURN(selection.variants, ParseVariants(flags.variants));
  KILN_ASSIGN_OR_RETURN(selection.pack_constants, ParseLayoutRewrite(flags.layout_rewrite, target));
  KILN_ASSIGN_OR_RETURN(const graph::Graph network, LoadNetwork(flags.network));
  if (flags.form == "graph") {
    KILN_ASSIGN_OR_RETURN(const std::string text,
                          NetworkText(network, target, selection.variants, flags.after));
    fmt::print("{}", text);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<NetworkTuneTask> tasks,
                        TuneTasks(network, target, selection));
  if (json) {
    for (const NetworkTuneTask& task : tasks) fmt::print("{}\n", TaskJson(task));
    return OkStatus();
  }
  PrintTable(tasks);
  if (flags.dags) PrintDags(tasks);
  return OkStatus();
}

}  // namespace kiln::client
