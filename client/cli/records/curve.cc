// kiln records curve shows how fast jobs found their best programs.
#include "client/view/curve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/console/terminal.h"
#include "base/file/file.h"
#include "client/archive.h"
#include "client/cli/records/commands.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"
#include "client/view/printable.h"

namespace kiln::client {
namespace {

struct CurveFlags {
  std::vector<std::string> jobs;
  // Task of each job; none: the job's total latency.
  std::optional<int> task;
  // True: a line for each task of a job beside that of the total latency.
  bool each_task = false;
  // True: the axis shows time instead of trials.
  bool seconds = false;
  // File for a picture in SVG; "": text on stdout.
  std::string output;
};

std::string NameOfJob(const v1::JobStatus& job, std::optional<int> task) {
  const int only = task.value_or(job.tasks_size() == 1 ? 0 : -1);
  const std::string what = only >= 0                   ? job.tasks(only).spec().description()
                           : job.spec().name().empty() ? "total latency"
                                                       : job.spec().name();
  const std::string& policy = job.spec().options().policy();
  return fmt::format("{} {}{}", job.id(), what, policy.empty() ? "" : ", " + policy);
}

StatusOr<Curve> CurveOf(const std::string& job_id, std::optional<int> task, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(v1::JobStatus job, archive.Job(job_id));
  if (job.tasks_size() == 0) {
    return InvalidArgument("job {} has no tasks: what is imported has no order of trials", job_id);
  }
  if (task.has_value() && *task >= job.tasks_size()) {
    return InvalidArgument("job {} has the tasks 0 to {}, found {}", job_id, job.tasks_size() - 1,
                           *task);
  }
  MakePrintable(job);
  CurveBuilder builder(NameOfJob(job, task), job, task);
  v1::ListRecordsRequest request;
  request.set_job_id(job_id);
  request.set_include_errors(true);
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    builder.Add(record);
    return OkStatus();
  }));
  return builder.Finish();
}

// A line of the picture.
struct Wanted {
  std::string job;
  // No task: the total latency.
  std::optional<int> task = {};
};

// Returns the lines that the flags mean.
StatusOr<std::vector<Wanted>> LinesOf(const CurveFlags& flags, Archive& archive) {
  std::vector<Wanted> lines;
  for (const std::string& job : flags.jobs) {
    lines.push_back({job, flags.task});
    if (!flags.each_task) continue;
    KILN_ASSIGN_OR_RETURN(const v1::JobStatus status, archive.Job(job));
    // The total latency of a job of one task is that of the task.
    for (int i = 0; status.tasks_size() > 1 && i < status.tasks_size(); ++i) {
      lines.push_back({job, i});
    }
  }
  return lines;
}

void PrintJson(const std::vector<Wanted>& lines, const std::vector<Curve>& curves) {
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string task =
        lines[i].task.has_value() ? fmt::format("{}", *lines[i].task) : std::string("null");
    for (const CurvePoint& point : curves[i].points) {
      fmt::print("{{\"job\":{},\"task\":{},\"trials\":{},\"elapsed_s\":{},\"best_s\":{}}}\n",
                 JsonString(lines[i].job), task, point.trials, point.elapsed_s, point.best_s);
    }
  }
}

Status PrintCurves(const CurveFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const std::vector<Wanted> lines, LinesOf(flags, *archive));
  std::vector<Curve> curves;
  bool any = false;
  for (const Wanted& line : lines) {
    KILN_ASSIGN_OR_RETURN(curves.emplace_back(), CurveOf(line.job, line.task, *archive));
    any = any || !curves.back().points.empty();
  }
  if (!any) return NotFound("no trial of {} was right yet", fmt::join(flags.jobs, ", "));
  const CurveAxis axis = flags.seconds ? CurveAxis::kSeconds : CurveAxis::kTrials;
  if (!flags.output.empty()) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(
        flags.output, CurveSvg(curves, axis,
                               flags.seconds ? "Best latency so far by seconds"
                                             : "Best latency so far by trials")));
  }
  if (session.json) {
    PrintJson(lines, curves);
  } else if (flags.output.empty()) {
    fmt::print("{}", CurveText(curves, axis, OutputColumns(STDOUT_FILENO)));
  }
  return OkStatus();
}

}  // namespace

Run AddRecordsCurve(CLI::App& curve, SessionFlags& session) {
  const auto flags = std::make_shared<CurveFlags>();
  curve.description("how fast jobs found their best programs");
  curve.add_option("job", flags->jobs, "jobs; one line for each")->required();
  CLI::Option* const task =
      curve.add_option("--task", flags->task, "only this task of each [the total latency]")
          ->check(CLI::NonNegativeNumber);
  curve
      .add_flag("--each-task", flags->each_task,
                "a line for each task of a job, beside that of the total latency")
      ->excludes(task);
  curve.add_flag("--seconds", flags->seconds, "against the time instead of the trials");
  curve.add_option("-o,--output", flags->output,
                   "a picture instead of text, for instance curve.svg");
  session.AddPlace(curve);
  return Plain([flags](const Session& session) { return PrintCurves(*flags, session); });
}

}  // namespace kiln::client
