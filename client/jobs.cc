// kiln jobs, cancel, workers: tables of what runs and where.
#include <fmt/format.h>

#include "base/terminal.h"
#include "base/units.h"
#include "client/client.h"
#include "client/commands.h"
#include "client/json.h"
#include "client/local_archive.h"
#include "client/summary.h"
#include "client/timing_table.h"
#include "client/wording.h"
#include "client/works.h"

namespace kiln::client {
namespace {

constexpr size_t kShownFailures = 20;
constexpr int kMessageColumns = 100;

std::string NameOf(const v1::JobStatus& job) {
  if (!job.spec().name().empty()) return job.spec().name();
  return job.tasks().empty() ? "-" : job.tasks(0).spec().description();
}

// "64/64"; of an import there is no number to reach.
std::string TrialsText(const v1::JobStatus& job) {
  const uint32_t wanted = job.spec().options().trials();
  return wanted == 0 ? fmt::format("{}", job.trials_done())
                     : fmt::format("{}/{}", job.trials_done(), wanted);
}

std::string StateText(const v1::JobStatus& job) {
  if (job.state() == v1::RUNNING && job.waiting_for_workers() != 0) return "waiting for workers";
  return std::string(JobStateName(job.state()));
}

void PrintField(std::string_view name, const std::string& text) {
  if (!text.empty()) fmt::print("{:<10}{}\n", name, text);
}

std::string TaskTable(const v1::JobStatus& job) {
  Table table({{"ID", Table::kRight},
               {"Task"},
               {"Target"},
               {"Trials", Table::kRight},
               {"Best", Table::kRight},
               {"Speed", Table::kRight},
               {"Speed-up", Table::kRight},
               {"Record", Table::kRight}});
  for (int i = 0; i < job.tasks_size(); ++i) {
    const v1::TaskStatus& task = job.tasks(i);
    table.AddRow({fmt::format("{}", i), TaskCell(task), task.spec().target(),
                  fmt::format("{}", task.trials()), LatencyCell(task.best_cost_s()),
                  SpeedCell(task.flop_count(), task.best_cost_s()),
                  SpeedUp(task.reference_cost_s(), task.best_cost_s()),
                  task.best_record_id() > 0 ? fmt::format("{}", task.best_record_id()) : "-"});
  }
  return table.ToString();
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

void PrintFailures(const std::vector<v1::Record>& failed, bool all, const Session& session) {
  if (failed.empty()) return;
  fmt::print("\nfailed trials\n");
  const size_t shown = all ? failed.size() : std::min(failed.size(), kShownFailures);
  for (size_t i = 0; i < shown; ++i) {
    const v1::Record& record = failed[i];
    fmt::print("  trial {}: {}: {}\n", record.trial(), ErrorName(record.result().error()),
               Elide(FirstLine(record.result().message()), kMessageColumns));
    fmt::print("    again: {}\n",
               session.Command(fmt::format("trial {}/{}", record.job_id(), record.trial())));
  }
  if (shown < failed.size()) fmt::print("  and {} more: --all\n", failed.size() - shown);
}

void PrintJob(const v1::JobStatus& job) {
  PrintField("job", job.id());
  PrintField("name", NameOf(job));
  PrintField("state", StateText(job) + (job.message().empty() ? "" : ": " + job.message()));
  PrintField("user", job.spec().user());
  PrintField("device", job.device());
  PrintField("submitted", TimeText(job.created_s()));
  PrintField("time", FormatElapsed(job.elapsed_s()));
  PrintField("trials", TrialsText(job));
  if (job.spec().tasks_size() > 0) {
    PrintField("policy", fmt::format("{}, seed {}", job.spec().options().policy(),
                                     job.spec().options().seed()));
  }
  PrintField("errors", ErrorCounts(job));
  PrintField("pace", PaceText(job));
  PrintField("phase", job.phase());
  const double objective_s = ObjectiveOf(job);
  if (objective_s > 0) {
    PrintField("objective", fmt::format("{} {}", ObjectiveWord(job), FormatSeconds(objective_s)));
  }
  if (job.tasks().empty()) return;
  fmt::print("\n{}", TaskTable(job));
  for (const std::vector<int>& forms : WorksOf(job)) {
    const std::string form = FormText(job, forms);
    if (!form.empty()) fmt::print("task {}: {}\n", forms[0], form);
  }
  for (int i = 0; i < job.tasks_size(); ++i) {
    const std::string& preparation = job.tasks(i).spec().preparation();
    if (!preparation.empty()) fmt::print("task {} takes prepared inputs: {}\n", i, preparation);
  }
}

}  // namespace

Status JobsCommand(uint32_t limit, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(limit));
  if (session.json) {
    for (const v1::JobStatus& job : jobs) fmt::print("{}\n", JsonOf(job));
    return OkStatus();
  }
  if (jobs.empty()) {
    fmt::print("no jobs in {}\n", archive->Name());
    return OkStatus();
  }
  Table table({{"Job"},
               {"Name", Table::kLeft, 48},
               {"State"},
               {"Trials", Table::kRight},
               {"Errors", Table::kRight},
               {"Best", Table::kRight},
               {"Busy", Table::kRight},
               {"Leaders", Table::kRight},
               {"Time", Table::kRight},
               {"Submitted"}});
  for (const v1::JobStatus& job : jobs) {
    const auto works = WorksOf(job);
    const double best_s = works.size() == 1 ? job.tasks(Fastest(job, works[0])).best_cost_s() : 0;
    table.AddRow({job.id(), NameOf(job), StateText(job), TrialsText(job),
                  fmt::format("{}", NumErrors(job)), LatencyCell(best_s),
                  ShareCell(job.busy_share()), ShareCell(job.leaders_share()),
                  FormatElapsed(job.elapsed_s()), TimeText(job.created_s())});
  }
  fmt::print("{}", table.ToString());
  return OkStatus();
}

Status JobCommand(const std::string& job_id, bool all_failures, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive->Job(job_id));
  KILN_ASSIGN_OR_RETURN(const auto failed, FailedTrials(*archive, job_id));
  if (session.json) {
    fmt::print("{{\"job\":{},\"failed_trials\":{}}}\n", JsonOf(job), JsonOfAll(failed));
    return OkStatus();
  }
  PrintJob(job);
  v1::BestRequest request;
  request.set_job_id(job_id);
  KILN_ASSIGN_OR_RETURN(const auto best, archive->Best(request));
  fmt::print("{}", UncheckedLines(best));
  PrintFailures(failed, all_failures, session);
  return OkStatus();
}

Status JobTimingCommand(const std::string& job_id, const Session& session) {
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

Status CancelCommand(const std::string& job_id, const Session& session) {
  if (session.scheduler.empty()) {
    KILN_RETURN_IF_ERROR(CancelInDatabase(session.db, job_id));
  } else {
    KILN_ASSIGN_OR_RETURN(const auto client, SchedulerClient::Connect(session.scheduler));
    KILN_RETURN_IF_ERROR(client->Cancel(job_id));
  }
  if (!session.json) fmt::print("job {} cancelled; its records are kept\n", job_id);
  return OkStatus();
}

Status WorkersCommand(const std::string& tracker, bool json) {
  KILN_ASSIGN_OR_RETURN(const v1::ListReply reply, ListWorkers(tracker));
  if (json) {
    fmt::print("{}\n", JsonOf(reply));
    return OkStatus();
  }
  Table workers({{"Address"},
                 {"Kind"},
                 {"Device", Table::kLeft, 40},
                 {"Keys"},
                 {"Busy", Table::kRight},
                 {"Slots", Table::kRight},
                 {"Trials", Table::kRight}});
  for (int i = 0; i < reply.workers_size(); ++i) {
    const v1::WorkerState& worker = reply.workers(i);
    std::string keys;
    for (const std::string& key : worker.keys()) keys += (keys.empty() ? "" : ", ") + key;
    const uint32_t busy = i < reply.busy_slots_size() ? reply.busy_slots(i) : 0;
    workers.AddRow({worker.address(), std::string(WorkerKindName(worker.kind())), worker.device(),
                    keys, fmt::format("{}", busy), fmt::format("{}", worker.slots()),
                    fmt::format("{}", worker.trials_done())});
  }
  Table queue({{"Key"},
               {"Kind"},
               {"Total", Table::kRight},
               {"Free", Table::kRight},
               {"Pending", Table::kRight}});
  for (const v1::KeyState& key : reply.keys()) {
    queue.AddRow({key.key(), std::string(WorkerKindName(key.kind())),
                  fmt::format("{}", key.total()), fmt::format("{}", key.free()),
                  fmt::format("{}", key.pending())});
  }
  fmt::print("tracker {}\n\nservers\n{}\nqueue\n{}", tracker, workers.ToString(), queue.ToString());
  return OkStatus();
}

}  // namespace kiln::client
