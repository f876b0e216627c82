// kiln tasks lists the tasks of a network.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/cli/compilation_target.h"
#include "client/cli/network_flags.h"
#include "client/cli/session_flags.h"
#include "client/cli/workload_flags.h"
#include "client/cli/workloads/commands.h"
#include "client/jobs/operator_name.h"
#include "client/network.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/target/target.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

struct TasksFlags {
  NetworkArguments network;
  std::string target;
  std::string variants = "all";
  // See ParseLayoutRewrite.
  std::string layout_rewrite;
  bool include_simple = false;
  // True: the text of each task's computation is printed too.
  bool dags = false;
  // "graph": the network's text is printed instead of the tasks.
  std::string form;
  // The text after the pass of this name; "": before all passes; "all": after all.
  std::string after = {};
};

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

std::string MegaflopText(const dag::Dag& dag) {
  const double flops = dag.flop_count();
  return flops < 0 ? "-" : fmt::format("{:.4g}", 1e-6 * flops);
}

// Prints the rows of a job with these tasks, with its numbers. A pipe gets the width of a terminal.
void PrintTable(const std::vector<NetworkTuneTask>& tasks) {
  constexpr int kMaxLines = 4;
  Table table({{"ID", Table::kRight},
               {"Weight", Table::kRight},
               {"Task", Table::kLeft, 24, kMaxLines},
               {"MFLOP", Table::kRight}});
  double flops = 0;
  int rows = 0;
  for (const NetworkTuneTask& task : tasks) {
    for (const TaskVariant& variant : task.variants) {
      const bool first = &variant == &task.variants[0];
      table.AddRow({fmt::format("{}", rows++), first ? fmt::format("{}", task.weight) : "",
                    first ? task.description : fmt::format("  or {}", variant.name),
                    MegaflopText(*variant.dag)});
    }
    flops += task.weight * std::max(0.0, task.variants[0].dag->flop_count());
  }
  const auto count = static_cast<int>(tasks.size());
  fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  if (rows > count) fmt::print("{}\n", RowsText(count, rows));
  fmt::print("{}, {} FLOPs in all\n", Counted(count, "task"),
             FormatCount(static_cast<int64_t>(flops)));
}

void PrintDags(const std::vector<NetworkTuneTask>& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (const TaskVariant& variant : tasks[i].variants) {
      fmt::print("\n# {}: {}{}{}\n{}", i, tasks[i].description, variant.name.empty() ? "" : ", ",
                 variant.name, dag::PrintDag(*variant.dag));
    }
  }
}

Status PrintTasks(const TasksFlags& flags, const Session& session) {
  if (!IsNetwork(flags.network.what)) {
    return InvalidArgument(
        "{} is no network, expected network:NAME, a model (*.onnx) or a network's text (*.graph){}",
        flags.network.what, DidYouMeanNetwork(flags.network.what));
  }
  KILN_ASSIGN_OR_RETURN(const ChosenTarget chosen, ChooseTarget(flags.target, session));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(chosen.text));
  TaskSelection selection{.include_simple = flags.include_simple};
  KILN_ASSIGN_OR_RETURN(selection.variants, ParseVariants(flags.variants));
  KILN_ASSIGN_OR_RETURN(selection.pack_constants, ParseLayoutRewrite(flags.layout_rewrite, target));
  KILN_ASSIGN_OR_RETURN(const graph::Graph network, LoadNetwork(flags.network));
  SayTarget(chosen.note, session);
  if (flags.form == "graph") {
    KILN_ASSIGN_OR_RETURN(const std::string text,
                          NetworkText(network, target, selection.variants, flags.after));
    fmt::print("{}", text);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<NetworkTuneTask> tasks,
                        TuneTasks(network, target, selection));
  if (session.json) {
    for (const NetworkTuneTask& task : tasks) fmt::print("{}\n", TaskJson(task));
    return OkStatus();
  }
  PrintTable(tasks);
  if (flags.dags) PrintDags(tasks);
  return OkStatus();
}

}  // namespace

Run AddTasks(CLI::App& tasks, SessionFlags& session) {
  const auto flags = std::make_shared<TasksFlags>();
  tasks.description("what there is to tune in a network");
  tasks
      .add_option("network", flags->network.what,
                  "network:NAME (docs/zoo.md), a model (*.onnx) or a network's text (*.graph)")
      ->required();
  AddNetworkArguments(tasks, flags->network);
  AddLayout(tasks, flags->network.layout);
  tasks
      .add_option(
          "--dtype", flags->network.dtype,
          "of network:NAME: type of its floats; of a model: float16 or bfloat16 where it has "
          "float32 and results allow it")
      ->capture_default_str();
  tasks.add_option("--target", flags->target, "the target: cuda or llvm [as for kiln tune]");
  tasks
      .add_option("--variants", flags->variants,
                  "convolutions as they stand, by Winograd's method where it can be, or both")
      ->check(CLI::IsMember({"direct", "winograd", "all"}))
      ->capture_default_str();
  AddLayoutRewrite(tasks, flags->layout_rewrite);
  tasks.add_flag("--include-simple-tasks", flags->include_simple,
                 "also what has no sums: elementwise functions and moves");
  tasks.add_flag("--dag", flags->dags, "the text of each task's computation, too");
  tasks.add_option("--as", flags->form, "instead of the tasks: graph, the network's text")
      ->check(CLI::IsMember({"graph"}));
  tasks
      .add_option("--after", flags->after,
                  "with --as graph: after the pass of this name, or all [before all]")
      ->type_name("PASS");
  session.AddScheduler(tasks);
  return Plain([flags](const Session& session) { return PrintTasks(*flags, session); });
}

}  // namespace kiln::client
