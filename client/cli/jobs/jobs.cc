// kiln jobs lists the jobs, or shows one, pauses one, or goes on with one.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/farm_answers.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/view/json.h"
#include "client/view/kernel_values.h"
#include "client/view/printable.h"
#include "client/view/summary.h"
#include "client/view/timing_table.h"
#include "scheduler/words/format.h"
#include "scheduler/words/job_queue.h"
#include "scheduler/words/variant_groups.h"
#include "scheduler/words/why.h"

namespace kiln::client {
namespace {

struct JobsFlags {
  // "": all jobs.
  std::string job_id;
  // 0: no limit.
  uint32_t limit = 20;
  // True: all failed trials of the job are shown.
  bool all = false;
  // True: how the time of the job's trials was spent is shown.
  bool timing = false;
  // Job to pause and to resume; "": none.
  std::string pause, resume;
};

constexpr size_t kShownFailures = 20;
// Least columns of a cell that may be cut.
constexpr int kMinColumns = 8;
// Least columns of a state: "succeeded,".
constexpr int kMinStateColumns = 10;
constexpr int kMaxLines = 4;

std::string NameOf(const v1::JobStatus& job) {
  if (!job.spec().name().empty()) return job.spec().name();
  return job.tasks().empty() ? "-" : job.tasks(0).spec().description();
}

std::string StateText(const v1::JobStatus& job) {
  if (job.state() == v1::RUNNING && job.waiting_for_workers() != 0) return "waiting for workers";
  return std::string(JobStateName(job.state()));
}

// Returns what the estimates of these jobs are made of; empty if none has one. A database does not
// tell whether its jobs go on, so jobs have estimates only if a scheduler is asked.
StatusOr<FarmAnswers> AskForEstimates(const std::vector<v1::JobStatus>& jobs,
                                      const Session& session) {
  const bool some = std::ranges::any_of(jobs, [](const v1::JobStatus& job) {
    return job.state() == v1::QUEUED || job.state() == v1::RUNNING;
  });
  if (session.scheduler.empty() || !some) return FarmAnswers();
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return AskFarm(session, *client);
}

// Returns the estimate of a job; "" without the answers of a scheduler.
std::string EstimateCell(const v1::JobStatus& job, const FarmAnswers& farm) {
  return farm.jobs.empty() ? "" : EstimateText(job, farm);
}

void PrintField(std::string_view name, const std::string& text) {
  if (!text.empty()) fmt::print("{:<10}{}\n", name, text);
}

// `best` has the best records of the tasks that have one.
std::string TaskTable(const v1::JobStatus& job, const std::vector<v1::Record>& best) {
  Table table({{"ID", Table::kRight},
               {"Task", Table::kLeft, kMinColumns},
               {"Trials", Table::kRight},
               {"Best", Table::kRight},
               {"Speed", Table::kRight},
               {"Speed-up", Table::kRight},
               {"Best trial", Table::kRight}});
  for (int i = 0; i < job.tasks_size(); ++i) {
    const v1::TaskStatus& task = job.tasks(i);
    const auto record = std::find_if(best.begin(), best.end(), [&](const v1::Record& one) {
      return one.task_index() == static_cast<uint32_t>(i);
    });
    table.AddRow({fmt::format("{}", i), TaskCell(task), fmt::format("{}", task.trials()),
                  LatencyCell(task.best_cost_s()), SpeedCell(task.flop_count(), task.best_cost_s()),
                  SpeedUp(task.reference_cost_s(), task.best_cost_s()),
                  record == best.end() ? "-" : fmt::format("{}", record->trial())});
  }
  return table.ToString(OutputColumns(STDOUT_FILENO));
}

StatusOr<std::vector<v1::Record>> FailedTrials(Archive& archive, const std::string& job_id) {
  v1::ListRecordsRequest request;
  request.set_job_id(job_id);
  request.set_include_errors(true);
  std::vector<v1::Record> failed;
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    if (record.result().error() != v1::NO_ERROR) failed.push_back(record);
    return OkStatus();
  }));
  return failed;
}

// Returns the parameters of a kernel or the knobs of a template, "TILE_I=8 TILE_J=32: "; "" for
// other records.
std::string OfPoint(const v1::Record& record) {
  const std::string configuration = ConfigurationOf(record);
  return configuration.empty() ? configuration : configuration + ": ";
}

void PrintFailures(const std::vector<v1::Record>& failed, bool all, const Session& session) {
  if (failed.empty()) return;
  fmt::print("\nfailed trials\n");
  const int columns = OutputColumns(STDOUT_FILENO);
  const size_t shown = all ? failed.size() : std::min(failed.size(), kShownFailures);
  for (size_t i = 0; i < shown; ++i) {
    const v1::Record& record = failed[i];
    const std::string line =
        fmt::format("  {}  {}: {}{}", TrialName(record), ErrorName(record.result().error()),
                    OfPoint(record), FirstLine(record.result().message()));
    fmt::print("{}\n    again: {}\n", columns > 0 ? Elide(line, columns) : line,
               session.Command("trial " + TrialName(record)));
  }
  if (shown == failed.size()) return;
  fmt::print("  and {} more: {}\n", failed.size() - shown,
             session.Command(fmt::format("jobs {} --all", failed[0].job_id())));
}

void PrintJob(const v1::JobStatus& job, const std::vector<v1::Record>& best,
              const std::string& estimate) {
  PrintField("job", job.id());
  PrintField("name", NameOf(job));
  PrintField("state", StateText(job) + (job.message().empty() ? "" : ": " + job.message()));
  PrintField("user", job.spec().user());
  if (!job.tasks().empty()) PrintField("target", ShortTarget(job.tasks(0).spec().target()));
  PrintField("device", job.device());
  PrintField("submitted", TimeText(job.created_s()));
  PrintField("time", FormatElapsed(job.elapsed_s()));
  PrintField("trials", TrialsText(job));
  PrintField("ended", EndingText(job));
  if (job.spec().tasks_size() > 0) {
    PrintField("policy", fmt::format("{}, seed {}", job.spec().options().policy(),
                                     job.spec().options().seed()));
  }
  PrintField("errors", ErrorCounts(job));
  PrintField("pace", PaceText(job));
  PrintField("phase", job.phase());
  PrintField("estimate", estimate);
  if (const auto objective_s = ObjectiveOf(job); objective_s.has_value()) {
    PrintField("objective", fmt::format("{} {}", ObjectiveWord(job), FormatSeconds(*objective_s)));
  }
  if (job.tasks().empty()) return;
  fmt::print("\n{}", TaskTable(job, best));
  for (const v1::Record& record : best) {
    const std::string configuration = ConfigurationOf(record);
    if (!configuration.empty())
      fmt::print("best of task {}: {}\n", record.task_index(), configuration);
  }
  for (const std::vector<int>& variants : VariantGroupsOf(job)) {
    const std::string variant = VariantText(job, variants);
    if (!variant.empty()) fmt::print("task {}: {}\n", variants[0], variant);
  }
  for (int i = 0; i < job.tasks_size(); ++i) {
    const std::string& preparation = job.tasks(i).spec().preparation();
    if (!preparation.empty()) fmt::print("task {} takes prepared inputs: {}\n", i, preparation);
    if (const std::string tuned_by = TunedByText(job, i); !tuned_by.empty())
      fmt::print("{}\n", tuned_by);
  }
}

Status ListJobs(std::optional<uint32_t> limit, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(auto jobs, archive->Jobs(limit));
  if (session.json) {
    for (const v1::JobStatus& job : jobs) fmt::print("{}\n", JsonOf(job));
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const FarmAnswers farm, AskForEstimates(jobs, session));
  for (v1::JobStatus& job : jobs) MakePrintable(job);
  if (jobs.empty()) {
    fmt::print("no jobs in {}\n", archive->Name());
    return OkStatus();
  }
  // The table fits 80 columns, in a pipe too. kiln jobs JOB prints the rest.
  Table table({{"Job"},
               {"Name", Table::kLeft, kMinColumns, kMaxLines},
               {"State", Table::kLeft, kMinStateColumns, kMaxLines},
               {"Trials", Table::kRight},
               {"Best", Table::kRight},
               {"Time", Table::kRight},
               {"Submitted", Table::kLeft, kMinColumns, 2}});
  for (const v1::JobStatus& job : jobs) {
    const auto groups = VariantGroupsOf(job);
    const double best_s = groups.size() == 1 ? job.tasks(Fastest(job, groups[0])).best_cost_s() : 0;
    const int64_t errors = NumErrors(job);
    const std::string estimate = EstimateCell(job, farm);
    table.AddRow({job.id(), NameOf(job),
                  StateText(job) + (errors == 0 ? "" : ", " + Counted(errors, "error")) +
                      (estimate.empty() ? "" : ", " + estimate),
                  TrialsText(job), LatencyCell(best_s), FormatElapsed(job.elapsed_s()),
                  ShortTimeText(job.created_s())});
  }
  fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  return OkStatus();
}

Status ShowJob(const std::string& job_id, bool all_failures, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(v1::JobStatus job, archive->Job(job_id));
  KILN_ASSIGN_OR_RETURN(auto failed, FailedTrials(*archive, job_id));
  if (session.json) {
    fmt::print("{{\"job\":{},\"failed_trials\":{}}}\n", JsonOf(job), JsonOfAll(failed));
    return OkStatus();
  }
  v1::BestRequest request;
  request.set_job_id(job_id);
  KILN_ASSIGN_OR_RETURN(auto best, archive->Best(request));
  KILN_ASSIGN_OR_RETURN(const FarmAnswers farm, AskForEstimates({job}, session));
  MakePrintable(job);
  for (v1::Record& record : failed) MakePrintable(record);
  for (v1::Record& record : best) MakePrintable(record);
  PrintJob(job, best, EstimateCell(job, farm));
  fmt::print("{}{}", UncheckedLines(best), MarkedLines(best));
  PrintFailures(failed, all_failures, session);
  return OkStatus();
}

Status ShowTiming(const std::string& job_id, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive->Job(job_id));
  v1::ListRecordsRequest request;
  request.set_job_id(job_id);
  request.set_include_errors(true);
  TimingTable table;
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
    table.Add(record.result());
    return OkStatus();
  }));
  if (session.json) {
    fmt::print("{}\n", table.ToJson());
  } else {
    fmt::print("{}", table.ToString(job.elapsed_s()));
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<SchedulerClient>> SchedulerOf(const Session& session) {
  if (!session.scheduler.empty()) return session.Connect();
  return InvalidArgument(
      "jobs are paused and resumed by their scheduler; name it by --scheduler HOST:PORT. A job of "
      "{} pauses by Ctrl-C, and {} goes on with it",
      session.db, session.Command("tune --resume JOB"));
}

Status PauseJob(const std::string& job_id, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto client, SchedulerOf(session));
  KILN_RETURN_IF_ERROR(client->Pause(job_id));
  if (session.json) return OkStatus();
  fmt::print("job {} is paused: it gives its devices back after the trials in hand; {} goes on\n",
             job_id, session.Command("jobs resume " + job_id));
  return OkStatus();
}

Status ResumeJob(const std::string& job_id, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto client, SchedulerOf(session));
  KILN_RETURN_IF_ERROR(client->Resume(job_id));
  if (session.json) return OkStatus();
  fmt::print("job {} goes on with all its results; {} follows it\n", job_id,
             session.Command("watch " + job_id));
  return OkStatus();
}

Status ShowJobs(const JobsFlags& flags, const Session& session) {
  if (!flags.pause.empty()) return PauseJob(flags.pause, session);
  if (!flags.resume.empty()) return ResumeJob(flags.resume, session);
  if (flags.job_id.empty())
    return ListJobs(flags.limit == 0 ? std::nullopt : std::optional(flags.limit), session);
  return flags.timing ? ShowTiming(flags.job_id, session)
                      : ShowJob(flags.job_id, flags.all, session);
}

}  // namespace

Run AddJobs(CLI::App& jobs, SessionFlags& session) {
  const auto flags = std::make_shared<JobsFlags>();
  jobs.description("list the jobs, show one with its failed trials, pause or resume one");
  jobs.add_option("job", flags->job_id, "id of one job");
  jobs.add_option("--limit", flags->limit, "show this many of the newest jobs; 0 = all")
      ->capture_default_str();
  jobs.add_flag("--all", flags->all, "all failed trials of the job, not the first ones");
  jobs.add_flag("--timing", flags->timing, "with a job: the time of each part of its trials");
  session.AddPlace(jobs);
  // The flags of the place may stand behind the job.
  CLI::App* const pause = jobs.add_subcommand("pause", "pause a job: its devices go to others");
  pause->add_option("job", flags->pause, "id of the job")->required();
  pause->fallthrough();
  CLI::App* const resume =
      jobs.add_subcommand("resume", "go on with a job that was paused, cancelled or failed");
  resume->add_option("job", flags->resume, "id of the job")->required();
  resume->fallthrough();
  return Plain([flags](const Session& session) { return ShowJobs(*flags, session); });
}

}  // namespace kiln::client
