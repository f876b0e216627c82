#include "client/cli/jobs/job_preview.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/thread_pool.h"
#include "client/cli/space_text.h"
#include "client/view/json.h"
#include "client/view/sketches.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/target/target.h"
#include "device/calibration.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"
#include "search/choice/heuristic_choice.h"
#include "search/space/task.h"
#include "search/templates/kernel_template.h"

namespace kiln::client {
namespace {

struct TaskFacts {
  double flop_count = 0;
  int64_t argument_bytes = 0;
  int sketches = 0;
  search::HeuristicChoice untuned;
};

StatusOr<TaskFacts> FactsOf(const v1::TaskSpec& task, uint64_t seed) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(task.dag()));
  TaskFacts facts;
  facts.flop_count = dag->flop_count();
  for (const dag::Tensor argument : dag->arguments()) {
    facts.argument_bytes += dag->op(argument.op).num_elements() * dag->type(argument).bytes();
  }
  KILN_ASSIGN_OR_RETURN(facts.sketches, CountSketches(dag, task.target()));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(task.target()));
  const search::Task searched(dag, target, target::DefaultHardware(target, AvailableCpus()),
                              dag::WorkloadKey(*dag));
  KILN_ASSIGN_OR_RETURN(
      facts.untuned,
      search::ChooseHeuristic(searched, device::CalibrationOf(searched.device).row, seed));
  return facts;
}

std::string NameOf(const v1::TaskSpec& task) {
  return task.has_alternative_of() ? "  or " + task.variant() : task.description();
}

std::string JsonRow(int id, const v1::TaskSpec& task, const TaskFacts& facts) {
  return fmt::format(
      "{{\"task\":{},\"description\":{},\"variant\":{},\"network\":{},\"target\":{},\"weight\":{},"
      "\"flop_count\":{},\"argument_bytes\":{},\"sketches\":{},\"untuned\":{{\"steps\":{},"
      "\"predicted_s\":{}}}}}\n",
      id, JsonString(task.description()), JsonString(task.variant()), JsonString(task.network()),
      JsonString(task.target()), task.weight(), facts.flop_count, facts.argument_bytes,
      facts.sketches, facts.untuned.steps, facts.untuned.predicted_s);
}

// Returns the space of the job's hand-written kernel.
StatusOr<std::string> PreviewKernel(const v1::JobSpec& spec, bool json) {
  KILN_ASSIGN_OR_RETURN(const search::TemplatePtr kernel,
                        search::KernelTemplate::Parse(spec.options().kernel()));
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(spec.tasks(0).dag()));
  KILN_ASSIGN_OR_RETURN(const search::ConfigSpace space, kernel->Space(dag));
  return SpaceText(space, json);
}

}  // namespace

StatusOr<std::string> PreviewJob(const v1::JobSpec& spec, bool json) {
  if (!spec.options().kernel().empty()) return PreviewKernel(spec, json);
  constexpr int kMaxLines = 4;
  Table table({{"ID", Table::kRight},
               {"Task", Table::kLeft, 16, kMaxLines},
               {"Weight", Table::kRight},
               {"GFLOP", Table::kRight},
               {"Arguments", Table::kRight},
               {"Sketches", Table::kRight},
               {"Untuned", Table::kRight}});
  std::string rows;
  double flop_count = 0;
  for (int i = 0; i < spec.tasks_size(); ++i) {
    const v1::TaskSpec& task = spec.tasks(i);
    KILN_ASSIGN_OR_RETURN(const TaskFacts facts, FactsOf(task, spec.options().seed()));
    if (json) rows += JsonRow(i, task, facts);
    if (!task.has_alternative_of()) flop_count += task.weight() * facts.flop_count;
    table.AddRow({fmt::format("{}", i), NameOf(task), fmt::format("{:g}", task.weight()),
                  fmt::format("{:.4g}", 1e-9 * facts.flop_count), FormatBytes(facts.argument_bytes),
                  fmt::format("{}", facts.sketches), FormatSeconds(facts.untuned.predicted_s)});
  }
  if (json) return rows;
  int groups = 0;
  for (const v1::TaskSpec& task : spec.tasks()) groups += task.has_alternative_of() ? 0 : 1;
  return fmt::format(
      "{}{}, {}\ntarget {}, {:.4g} GFLOP by weight\nnothing is tuned with --trials 0: the times "
      "are "
      "predictions, of schedules that are chosen without measuring\n",
      table.ToString(TerminalColumns(STDOUT_FILENO)), Counted(groups, "task"),
      RowsText(groups, spec.tasks_size()), spec.tasks(0).target(), 1e-9 * flop_count);
}

}  // namespace kiln::client
