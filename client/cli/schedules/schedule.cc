// kiln schedule chooses a schedule at once, by the declaration alone, without records.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/text/counted.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "base/thread_pool.h"
#include "client/cli/compilation_target.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/session_flags.h"
#include "client/cli/workload_flags.h"
#include "client/compile/compile_operator.h"
#include "client/jobs/workload_source.h"
#include "client/network.h"
#include "client/view/json.h"
#include "client/view/render.h"
#include "client/view/sketches.h"
#include "compiler/dag/workload_key.h"
#include "device/calibration.h"
#include "scheduler/words/format.h"
#include "search/choice/choice.h"
#include "search/choice/heuristic_choice.h"
#include "search/policies/expected_speed.h"
#include "search/space/operator_class.h"

namespace kiln::client {
namespace {

struct ScheduleFlags {
  WorkloadArguments arguments;
  std::string target;
  // A form of kiln show.
  std::string form = "schedule";
  // A file that runs, as kiln compile writes it; "": none.
  std::string output;
  uint64_t seed = 1;
};

// Share of the speed after tuning.
constexpr double kHardlySlower = 0.95;

struct HeuristicResult {
  Workload workload;
  target::Target target;
  search::HeuristicChoice choice;
  std::string_view operator_class;
  std::optional<search::ExpectedSpeed> expected;
  // Blanks of the sketch with their values.
  std::string blanks;
};

StatusOr<HeuristicResult> Choose(const ScheduleFlags& flags, const Session& session) {
  HeuristicResult chosen;
  if (IsNetwork(flags.arguments.op)) {
    return InvalidArgument(
        "{} is a network, and kiln schedule is of one computation: kiln compile {} makes a file of "
        "all of its kernels, and where there are no records it chooses their schedules without "
        "measuring",
        flags.arguments.op, ShellWord(flags.arguments.op));
  }
  KILN_ASSIGN_OR_RETURN(chosen.workload, LoadWorkload(flags.arguments));
  KILN_ASSIGN_OR_RETURN(const std::string target, TargetOrDefault(flags.target, session));
  KILN_ASSIGN_OR_RETURN(chosen.target, CompilationTarget(target, session));
  const dag::DagPtr& dag = chosen.workload.dag;
  const search::Task task(dag, chosen.target,
                          target::DefaultHardware(chosen.target, AvailableCpus()),
                          dag::WorkloadKey(*dag));
  KILN_ASSIGN_OR_RETURN(
      chosen.choice,
      search::ChooseHeuristic(task, device::CalibrationOf(task.device).row, flags.seed));
  const search::OperatorClass kind = search::ClassOf(*dag);
  chosen.operator_class = search::OperatorClassName(kind);
  chosen.expected = search::ExpectedSpeedOf(chosen.target, kind);
  KILN_ASSIGN_OR_RETURN(chosen.blanks,
                        FilledBlanks(task, chosen.choice.steps, chosen.choice.origin));
  return chosen;
}

std::string ExpectedLine(const HeuristicResult& chosen) {
  if (!chosen.expected) return "How much faster tuning makes it was not measured on such devices.";
  const search::ExpectedSpeed& e = *chosen.expected;
  return fmt::format(
      "Tuning with {} makes it {}, seldom more than {:.1f} times as fast (so it was with {} of "
      "this "
      "kind on {}).",
      Counted(e.trials, "trial"),
      e.middle > kHardlySlower ? "hardly faster in most cases"
                               : fmt::format("about {:.1f} times as fast", 1 / e.middle),
      1 / e.low, Counted(e.workloads, "workload"), e.device);
}

std::string Heading(const HeuristicResult& chosen) {
  const search::HeuristicChoice& choice = chosen.choice;
  return fmt::format(
      "{}, {}, for {}\n"
      "Nothing was measured: of {} this one is the fastest by the analytic model, {} predicted "
      "({}; chosen in {:.0f} ms).\n{}\n{}\n",
      OneLine(chosen.workload.description), chosen.operator_class,
      target::PrintTarget(chosen.target), Counted(choice.looked_at, "schedule"),
      FormatSeconds(choice.predicted_s), choice.origin, 1e3 * choice.cpu_s, ExpectedLine(chosen),
      chosen.blanks);
}

std::string ToJson(const HeuristicResult& chosen, const std::string& form,
                   const std::string& text) {
  const search::HeuristicChoice& choice = chosen.choice;
  std::string expected = "null";
  if (chosen.expected) {
    expected =
        fmt::format("{{\"low\":{},\"middle\":{},\"workloads\":{},\"device\":{}}}",
                    chosen.expected->low, chosen.expected->middle, chosen.expected->workloads,
                    JsonString(std::string(chosen.expected->device)));
  }
  return fmt::format(
      "{{\"workload\":{},\"target\":{},\"class\":{},\"steps\":{},\"origin\":{},\"predicted_s\":{},"
      "\"looked_at\":{},\"cpu_s\":{},\"share_of_tuned_speed\":{},\"form\":{},\"text\":{}}}",
      JsonString(chosen.workload.description), JsonString(target::PrintTarget(chosen.target)),
      JsonString(std::string(chosen.operator_class)), choice.steps, JsonString(choice.origin),
      choice.predicted_s, choice.looked_at, choice.cpu_s, expected, JsonString(form),
      JsonString(text));
}

// Writes a network of one kernel, like kiln compile.
StatusOr<int64_t> WriteProgram(const HeuristicResult& chosen, const ScheduleFlags& flags) {
  const OperatorToCompile what{.dag = chosen.workload.dag,
                               .description = OneLine(chosen.workload.description),
                               .ranges = chosen.workload.ranges};
  const ProgramOptions options{.target = chosen.target, .seed = flags.seed};
  search::Choice choice;
  choice.source = search::ChoiceSource::kSample;
  choice.steps = chosen.choice.steps;
  choice.hardware = target::DefaultHardware(chosen.target, AvailableCpus());
  KILN_ASSIGN_OR_RETURN(const CompiledNetwork compiled, CompileOperator(what, options, choice));
  return WriteCompiled(flags.output, compiled);
}

Status PrintSchedule(const ScheduleFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const HeuristicResult chosen, Choose(flags, session));
  KILN_ASSIGN_OR_RETURN(const std::string text,
                        Render({.dag = chosen.workload.dag,
                                .steps = chosen.choice.steps,
                                .target = target::PrintTarget(chosen.target)},
                               flags.form));
  int64_t bytes = 0;
  if (!flags.output.empty()) {
    KILN_ASSIGN_OR_RETURN(bytes, WriteProgram(chosen, flags));
  }
  if (session.json) {
    fmt::print("{}\n", ToJson(chosen, flags.form, text));
    return OkStatus();
  }
  if (flags.form == "schedule") fmt::print("{}", Heading(chosen));
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  if (!flags.output.empty()) fmt::print(stderr, "{}: {}\n", flags.output, FormatBytes(bytes));
  return OkStatus();
}

}  // namespace

Run AddSchedule(CLI::App& schedule, SessionFlags& session) {
  const auto flags = std::make_shared<ScheduleFlags>();
  schedule.description("a good schedule from the declaration alone, at once: nothing is measured");
  schedule.add_option("what", flags->arguments.op, "an operator (with --args) or a text file")
      ->required();
  AddWorkloadArguments(schedule, flags->arguments);
  schedule.add_option("--target", flags->target,
                      "the target: llvm, llvm -mcpu=..., cuda -arch=sm_90 [as for kiln tune]");
  AddMath(schedule, flags->target);
  schedule.add_option("--as", flags->form, "the form to print, as those of kiln show")
      ->check(CLI::IsMember(RenderForms()))
      ->capture_default_str();
  schedule.add_option("-o,--output", flags->output, "also a file that runs, as kiln compile's")
      ->type_name("FILE");
  schedule.add_option("--seed", flags->seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  session.AddScheduler(schedule);
  return Plain([flags](const Session& session) { return PrintSchedule(*flags, session); });
}

}  // namespace kiln::client
