// kiln model predict prints a cost model's prediction for a schedule.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/console/terminal.h"
#include "base/file/file.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/compilation_target.h"
#include "client/cli/models/commands.h"
#include "client/cli/models/model_records.h"
#include "client/cli/models/model_text.h"
#include "client/cli/resolve.h"
#include "client/cli/schedule_source.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/cli/workload_flags.h"
#include "client/jobs/model_source.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "scheduler/words/format.h"
#include "training/wire/model_calls.h"

namespace kiln::client {
namespace {

struct PredictFlags {
  std::string model;
  SubjectFlags subject;
  // A file with steps as JSON; "none": the unscheduled loops.
  std::string steps_path;
  // A schedule as primitives; "-": stdin.
  std::string schedule_path;
};

// A schedule, with its record if it has one.
struct ScheduledSubject {
  v1::ScheduledProgram program;
  std::optional<v1::Record> record;
};

// Returns the steps that the flags give instead of a record's; nullopt: none.
StatusOr<std::optional<std::string>> GivenSteps(const PredictFlags& flags, const dag::DagPtr& dag) {
  if (flags.steps_path == "none") return "[]";
  if (!flags.steps_path.empty()) return ReadFile(flags.steps_path);
  if (flags.schedule_path.empty()) return std::nullopt;
  KILN_ASSIGN_OR_RETURN(const schedule::State state, ReadSchedule(flags.schedule_path, dag));
  return schedule::PrintSteps(state.steps());
}

StatusOr<ScheduledSubject> SubjectOf(const PredictFlags& flags, const costmodel::ModelInfo& info,
                                     const Session& session) {
  const bool given = !flags.steps_path.empty() || !flags.schedule_path.empty();
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags.subject));
  ScheduledSubject subject;
  if (given && workload.has_value()) {
    const bool learned = flags.subject.target.empty() && !info.tasks.empty();
    KILN_ASSIGN_OR_RETURN(
        const std::string target,
        TargetOrDefault(learned ? info.tasks[0].target : flags.subject.target, session));
    KILN_ASSIGN_OR_RETURN(const target::Target completed, CompilationTarget(target, session));
    subject.program.set_dag(dag::PrintDag(*workload->dag));
    subject.program.set_target(target::PrintTarget(completed));
    KILN_ASSIGN_OR_RETURN(const auto steps, GivenSteps(flags, workload->dag));
    subject.program.set_steps(steps.value_or("[]"));
    return subject;
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const Subject resolved, Resolve(flags.subject, *archive));
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(resolved, flags.subject, *archive));
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, DagOfRecord(record, resolved, *archive));
  KILN_ASSIGN_OR_RETURN(const auto steps, GivenSteps(flags, dag));
  subject.program.set_dag(dag::PrintDag(*dag));
  subject.program.set_target(record.target());
  *subject.program.mutable_hardware() = record.hardware();
  subject.program.set_device_model(record.device_model());
  subject.program.set_steps(steps.value_or(record.steps()));
  if (!steps.has_value()) subject.record = record;
  return subject;
}

std::string ScoreText(const v1::Prediction& prediction) {
  if (prediction.has_seconds()) return FormatSeconds(prediction.seconds());
  return fmt::format("{:.3f} of the best speed of its task", prediction.score());
}

void Print(const v1::Prediction& prediction, const ScheduledSubject& subject,
           const costmodel::ModelInfo& info) {
  fmt::print("predicted  {}, by {} of {}\n", ScoreText(prediction), KindText(info),
             Counted(info.programs(), "program"));
  if (subject.record.has_value()) {
    const v1::Record& record = *subject.record;
    const bool worked = record.result().error() == v1::NO_ERROR;
    fmt::print("measured   {}, trial {}\n",
               worked ? LatencyCell(CostOf(record.result()))
                      : std::string(ErrorName(record.result().error())),
               TrialName(record));
  }
  Table table({{"Kernel"}, {"Stage"}, {"Predicted", Table::kRight}, {"Share", Table::kRight}});
  for (const v1::StagePrediction& stage : prediction.stages()) {
    table.AddRow({OneLine(stage.kernel()), OneLine(stage.stage()),
                  prediction.has_seconds() ? FormatSeconds(-stage.score())
                                           : fmt::format("{:.3f}", stage.score()),
                  stage.has_share() ? fmt::format("{:.1f}%", 100 * stage.share()) : "-"});
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
}

std::string ToJson(const v1::Prediction& prediction, const ScheduledSubject& subject) {
  std::string stages;
  for (const v1::StagePrediction& stage : prediction.stages()) {
    stages += fmt::format("{}{{\"kernel\":{},\"stage\":{},\"score\":{},\"share\":{}}}",
                          stages.empty() ? "" : ",", JsonString(stage.kernel()),
                          JsonString(stage.stage()), stage.score(),
                          stage.has_share() ? fmt::to_string(stage.share()) : "null");
  }
  const double measured_s = subject.record.has_value() ? CostOf(subject.record->result()) : 0;
  return fmt::format(
      "{{\"score\":{},\"predicted_s\":{},\"measured_s\":{},\"target\":{},\"steps\":{},"
      "\"stages\":[{}]}}",
      prediction.score(), prediction.has_seconds() ? fmt::to_string(prediction.seconds()) : "null",
      measured_s > 0 ? fmt::to_string(measured_s) : "null", JsonString(subject.program.target()),
      subject.program.steps(), stages);
}

Status Predict(const PredictFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file, ReadModelSource(flags.model, session));
  KILN_ASSIGN_OR_RETURN(const ScheduledSubject subject, SubjectOf(flags, file.info, session));
  v1::PredictRequest request;
  *request.add_programs() = subject.program;
  v1::PredictReply reply;
  if (session.scheduler.empty()) {
    KILN_ASSIGN_OR_RETURN(reply, training::PredictWith(file, request, {}));
  } else {
    KILN_ASSIGN_OR_RETURN(const NamedOrFile model, ParseModelSource(flags.model));
    KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
    KILN_ASSIGN_OR_RETURN(reply, models->Predict(model, request));
  }
  const v1::Prediction& prediction = reply.predictions(0);
  if (!prediction.error().empty()) return InvalidArgument("{}", prediction.error());
  if (session.json) {
    fmt::print("{}\n", ToJson(prediction, subject));
  } else {
    Print(prediction, subject, file.info);
  }
  return OkStatus();
}

}  // namespace

Run AddModelPredict(CLI::App& predict, SessionFlags& session) {
  const auto flags = std::make_shared<PredictFlags>();
  predict.description("predict the time of a schedule, and of each of its stages");
  AddModel(predict, flags->model);
  SubjectFlags& subject = flags->subject;
  predict.add_option("what", subject.what,
                     "a trial (JOB/N), a job, the number of a record, an operator (with --args), "
                     "or a text file; nothing: the best of the newest job");
  predict.add_option("--op", subject.arguments.op, "an operator or text file");
  AddWorkloadArguments(predict, subject.arguments);
  predict.add_option("--target", subject.target,
                     "of --steps and --schedule, the target [that of the model]; of "
                     "records, only targets that begin with this text");
  predict.add_option("--task", subject.task, "only this task of a job");
  CLI::Option* steps = predict.add_option("--steps", flags->steps_path,
                                          "a file with steps as JSON; none: the unscheduled loops");
  steps->type_name("FILE");
  predict
      .add_option("--schedule", flags->schedule_path,
                  "a schedule as `kiln show --as schedule` prints it; - = stdin")
      ->type_name("FILE")
      ->excludes(steps);
  session.AddPlace(predict);
  return Plain([flags](const Session& session) { return Predict(*flags, session); });
}

}  // namespace kiln::client
