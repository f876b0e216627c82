#include "client/view/summary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <span>

#include "base/arrays/packed_key.h"
#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/view/kernel_values.h"
#include "client/view/render.h"
#include "client/view/render_kernel.h"
#include "client/view/short_loops.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/text.h"
#include "compiler/dag/wide_sums.h"
#include "compiler/handwritten/kernel_text.h"
#include "compiler/target/target.h"
#include "device/noise_mark.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

// Least columns of a task in the table.
constexpr int kMinColumns = 10;
constexpr int kLoopColumns = 78, kMaxLoopLines = 12;

std::string Line(std::string_view name, const std::string& text) {
  return fmt::format("  {:<11}{}\n", name, text);
}

// Returns null if this program does not know the record's target.
const target::TargetKind* KindOf(const v1::Record& record) {
  const auto target = target::ParseTarget(record.target());
  return target.ok() ? target->kind : nullptr;
}

// Returns the command that shows the code of the trial.
std::string CodeLine(const v1::JobStatus& job, const v1::Record& record, const Session& session) {
  codegen::CodeForm form = {"program", "loops"};
  const std::string& kernel = job.spec().options().kernel();
  if (IsOfKernel(record.steps(), kernel)) {
    const auto text = handwritten::ParseKernelText(kernel);
    const bool in_c = text.ok() && text->language == handwritten::Language::kC;
    form = in_c ? codegen::CodeForm{kCForm, "source"} : codegen::CodeForm{"cuda", "source"};
  } else if (const target::TargetKind* const kind = KindOf(record); kind != nullptr) {
    const codegen::Backend& backend = *codegen::FindBackend(*kind);
    if (!backend.forms().empty()) form = backend.forms()[0];
  }
  return fmt::format("\nits {:<10}{}\n", std::string(form.title) + ":",
                     session.Command(fmt::format("show {} --as {}", TrialName(record), form.name)));
}

std::string Indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    out += "  " + std::string(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string Rendering(const v1::JobStatus& job, const v1::Record& record, std::string_view form) {
  const auto dag = dag::ParseDag(record.dag());
  if (!dag.ok()) return fmt::format("(cannot be shown: {})\n", Message(dag.status()));
  const auto text = Render({.dag = *dag,
                            .steps = record.steps(),
                            .target = record.target(),
                            .kernel = job.spec().options().kernel()},
                           form);
  if (!text.ok()) return fmt::format("(cannot be shown: {})\n", Message(text.status()));
  return *text;
}

// Returns the parameters of a kernel, or the loops of a schedule.
std::string LoopsText(const v1::JobStatus& job, const v1::Record& record, const Session& session) {
  const std::string trial = TrialName(record);
  if (IsOfKernel(record.steps(), job.spec().options().kernel())) {
    return fmt::format("\nparameters of trial {}:\n{}", trial,
                       Indented(Rendering(job, record, "schedule")));
  }
  const std::string loops = Rendering(job, record, "loops");
  return fmt::format("\nloops of trial {}:\n{}\nits schedule: {}", trial,
                     Indented(ShortLoops(loops, kLoopColumns, kMaxLoopLines)),
                     session.Command("show " + trial));
}

// Returns the result of earlier jobs, marked "better" if this job found none as fast.
std::string KnownTextOf(const v1::TaskStatus& task, const Session& session) {
  if (task.known_record_id() == 0) return "";
  const bool better = task.best_cost_s() <= 0 || task.known_cost_s() < task.best_cost_s();
  return Line(better ? "better" : "before",
              fmt::format("{} of an earlier job: {}", FormatSeconds(task.known_cost_s()),
                          session.Command(fmt::format("show {}", task.known_record_id()))));
}

// Returns a remark if readings differ so much that the cost is not well known; otherwise "".
std::string NoiseText(const v1::TrialResult& result) {
  constexpr double kMuch = 0.1;
  const double cost_s = CostOf(result);
  if (result.confidence_s() > kMuch * cost_s) {
    return fmt::format(
        "readings differ by +-{:.0f}%: something else ran on the machine (kiln doctor says how "
        "quiet "
        "it is); tune again with --no-warm-start when it does not",
        100 * result.confidence_s() / cost_s);
  }
  return device::ParseNoiseMark(result.message()).has_value() ? result.message() : std::string();
}

std::string TaskText(const v1::TaskStatus& task, const v1::Record& record,
                     std::string_view reference, const Session& session) {
  const double cost_s = CostOf(record.result());
  const std::string speed = SpeedCell(record.flop_count(), cost_s);
  std::string text = Line("best", fmt::format("{}{}, trial {}", FormatSeconds(cost_s),
                                              speed == "-" ? "" : ", " + speed, TrialName(record)));
  if (!record.result().remeasured_costs_s().empty()) {
    text +=
        Line("measured",
             fmt::format("again at the end, in turns with its rivals: median of {}, which is 95% "
                         "sure to within {}",
                         Counted(RemeasurementsOf(record.result()), "reading"),
                         FormatSeconds(record.result().confidence_s())));
  }
  if (const std::string noise = NoiseText(record.result()); !noise.empty())
    text += Line("noise", noise);
  text += Line("speed-up", SpeedUpText(task, record, reference));
  if (const std::string& how = task.spec().preparation(); !how.empty()) {
    text += Line("prepared", how + ", before and once for constant weights");
  }
  text += Line("checked", CheckText(record));
  if (!record.result().device().empty()) text += Line("device", record.result().device());
  text += KnownTextOf(task, session);
  return text;
}

// `variants` are the tasks of the job's only group.
std::string OneGroup(const v1::JobStatus& job, std::span<const int> variants,
                     const v1::Record& record, const Session& session, bool with_loops) {
  const v1::TaskStatus& task = job.tasks(static_cast<int>(record.task_index()));
  std::string text = task.spec().description() + "\n" +
                     TaskText(task, record, ReferenceName(job.spec().options()), session);
  if (variants.size() > 1) text += Line("variant", VariantText(job, variants));
  if (with_loops) text += LoopsText(job, record, session);
  return text + CodeLine(job, record, session);
}

std::string ManyTasks(const v1::JobStatus& job, const std::vector<v1::Record>& best,
                      const Session& session) {
  Table table({{"ID", Table::kRight},
               {"Task", Table::kLeft, kMinColumns},
               {"Best", Table::kRight},
               {"Speed", Table::kRight},
               {"Speed-up", Table::kRight},
               {"Largest error", Table::kRight},
               {"Trial", Table::kRight}});
  for (const v1::Record& record : best) {
    if (record.task_index() >= static_cast<uint32_t>(job.tasks_size())) continue;
    const v1::TaskStatus& task = job.tasks(static_cast<int>(record.task_index()));
    const double cost_s = CostOf(record.result());
    table.AddRow({fmt::format("{}", record.task_index()), TaskCell(task), LatencyCell(cost_s),
                  SpeedCell(record.flop_count(), cost_s), SpeedUp(task.reference_cost_s(), cost_s),
                  ErrorCell(record.result()), fmt::format("{}", record.trial())});
  }
  std::string variants;
  for (const std::vector<int>& group : VariantGroupsOf(job)) {
    const int fastest = Fastest(job, group);
    const std::string& preparation = job.tasks(fastest).spec().preparation();
    if (group.size() > 1)
      variants += fmt::format("task {}: {}\n", group[0], VariantText(job, group));
    if (preparation.empty()) continue;
    variants += fmt::format("task {} takes prepared inputs: {}\n", fastest, preparation);
  }
  std::string better;
  for (const v1::TaskStatus& task : job.tasks()) {
    if (task.known_cost_s() <= 0 || task.best_cost_s() <= task.known_cost_s()) continue;
    better += fmt::format("{}: {}", task.spec().description(), KnownTextOf(task, session));
  }
  return table.ToString(OutputColumns(STDOUT_FILENO)) + UncheckedLines(best) + MarkedLines(best) +
         variants + better +
         fmt::format("\none schedule:  {}\n", session.Command("show " + TrialName(best[0])));
}

}  // namespace

std::string UncheckedLines(const std::vector<v1::Record>& records) {
  std::string text;
  for (const v1::Record& record : records) {
    const std::string why = UncheckedText(record.result());
    if (!why.empty()) text += fmt::format("trial {} is not checked: {}\n", TrialName(record), why);
  }
  return text;
}

std::string MarkedLines(const std::vector<v1::Record>& records) {
  std::string text;
  for (const v1::Record& record : records) {
    const std::string why = MarkText(record);
    if (!why.empty()) text += fmt::format("trial {} is marked: {}\n", TrialName(record), why);
  }
  return text;
}

std::string RewrittenLines(const std::vector<v1::Record>& records) {
  std::string text;
  for (const v1::Record& record : records) {
    if (!HasUnsaidLayouts(record.layout_rewrite_option(), record.workload_key())) continue;
    text += fmt::format(
        "trial {} came from a log and was measured with inputs laid out for it (layout rewrite "
        "option {}): its latency is no comparison with others\n",
        TrialName(record), record.layout_rewrite_option());
  }
  return text;
}

std::string CheckText(const v1::Record& record) {
  const target::TargetKind* const kind = KindOf(record);
  if (kind != nullptr && !kind->runs_programs)
    return fmt::format("nothing was run: target {} makes its costs up", kind->name);
  const std::string unchecked = UncheckedText(record.result());
  if (!unchecked.empty()) return "NOT CHECKED: " + unchecked;
  const uint64_t sampled = record.result().sampled_outputs();
  const auto dag = dag::ParseDag(record.dag());
  const bool is_wide = dag.ok() && dag::CountWideSums(**dag) > 0;
  return fmt::format("{} the reference on random inputs; largest error {:.1e} of {}",
                     sampled == 0 ? "result matches"
                                  : fmt::format("{} of the result, drawn at random, {}",
                                                Counted(static_cast<int64_t>(sampled), "element"),
                                                sampled == 1 ? "matches" : "match"),
                     record.result().max_error(),
                     is_wide ? "its largest value, where it adds in float64" : "its largest value");
}

std::string Summary(const v1::JobStatus& job, const std::vector<v1::Record>& best,
                    const Session& session, bool with_loops) {
  std::string text;
  if (best.empty()) {
    for (const v1::TaskStatus& task : job.tasks()) text += KnownTextOf(task, session);
  } else {
    const auto groups = VariantGroupsOf(job);
    const v1::Record* fastest = nullptr;
    for (const v1::Record& record : best) {
      const auto task = static_cast<int>(record.task_index());
      if (groups.size() == 1 && task == Fastest(job, groups[0])) fastest = &record;
    }
    text = fastest != nullptr ? OneGroup(job, groups[0], *fastest, session, with_loops)
                              : ManyTasks(job, best, session);
  }
  const std::string pace = PaceText(job);
  if (!pace.empty())
    text += fmt::format("pace: {}, {}\n", Counted(job.trials_done(), "trial"), pace);
  const std::string ending = EndingText(job);
  if (!ending.empty()) text += fmt::format("ended: {}\n", ending);
  if (NumErrors(job) > 0) {
    text += fmt::format("failed trials: {}; see {}\n", ErrorCounts(job),
                        session.Command("jobs " + job.id()));
  }
  return text;
}

}  // namespace kiln::client
