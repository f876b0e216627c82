#include "client/cli/jobs/run_job.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/shell_word.h"
#include "base/text/utf8.h"
#include "client/cli/command.h"
#include "client/direct_trials.h"
#include "client/jobs/model_source.h"
#include "client/local_archive.h"
#include "client/local_cluster.h"
#include "client/local_devices.h"
#include "client/local_places.h"
#include "client/this_machine.h"
#include "client/view/json.h"
#include "client/view/printable.h"
#include "client/view/summary.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

// An odd number, so that the median is a reading.
constexpr int kBaselineTurns = 7;

Status NoTrialSucceeded(const v1::JobStatus& job, const Session& session) {
  return FailedPrecondition("no trial of job {} succeeded: {}; see {}", job.id(), ErrorCounts(job),
                            session.Command("jobs " + job.id()));
}

// Prints the end of a job, whatever it is. Returns the exit status.
StatusOr<int> ReportOutcome(const Followed& followed, SchedulerClient& client,
                            const Session& session, bool quiet) {
  const v1::JobStatus& job = followed.job;
  v1::BestRequest request;
  request.set_job_id(job.id());
  KILN_ASSIGN_OR_RETURN(auto best, client.Best(request));
  if (session.json) {
    fmt::print("{}\n", EndEvent(job, best));
  } else {
    for (v1::Record& record : best) MakePrintable(record);
    fmt::print("{}{}", quiet ? "" : "\n", Summary(job, best, session, /*with_loops=*/!quiet));
    // The user of a calibration wants its fit.
    if (job.spec().options().calibrate() && job.state() == v1::SUCCEEDED)
      fmt::print("\n{}\n", Printable(job.message()));
  }
  std::fflush(stdout);
  if (job.state() == v1::FAILED) return Internal("job {} failed: {}", job.id(), job.message());
  if (followed.interrupted || job.state() == v1::CANCELLED) {
    fmt::print(
        stderr,
        "kiln: job {} was cancelled after {}; what was measured is kept, {} goes on with it\n",
        job.id(), Counted(job.trials_done(), "trial"),
        session.Command("tune --resume " + job.id()));
    return kInterruptedExit;
  }
  const bool known = std::any_of(job.tasks().begin(), job.tasks().end(),
                                 [](const auto& task) { return task.known_record_id() != 0; });
  // No candidate was left that earlier jobs had not tried.
  if (best.empty() && known && job.trials_done() == 0) return 0;
  if (best.empty()) return NoTrialSucceeded(job, session);
  return 0;
}

// Returns a measurement of programs for the target of a job, on its cluster.
MeasureSteps MeasureOn(DirectTrials& trials, const v1::JobSpec& spec, const std::string& target) {
  DirectTrial trial;
  trial.target = target;
  trial.options = spec.options().measure();
  // Both programs are read to their end.
  trial.options.clear_early_stop_ratio();
  trial.options.clear_idle_ms();
  trial.build_timeout_ms = spec.options().build_timeout_ms();
  return [trial, &trials](const std::string& dag, const std::string& steps) -> StatusOr<double> {
    DirectTrial one = trial;
    one.dag = dag;
    one.steps = steps;
    KILN_ASSIGN_OR_RETURN(const v1::TrialResult result, trials.Run(one));
    if (result.error() == v1::NO_ERROR) return MeanCost(result);
    return FailedPrecondition("{}: {}", ErrorName(result.error()), FirstLine(result.message()));
  };
}

// Compares what the job has found with the baseline, and prints it. Returns the exit status.
// `cluster` is null if the devices are elsewhere.
StatusOr<int> ReportBaseline(const Baseline& baseline, const v1::JobStatus& job,
                             SchedulerClient& client, const LocalCluster* cluster,
                             const Session& session) {
  v1::BestRequest request;
  request.set_job_id(job.id());
  KILN_ASSIGN_OR_RETURN(const std::vector<v1::Record> best, client.Best(request));
  std::unique_ptr<DirectTrials> trials;
  MeasureSteps measure;
  if (cluster != nullptr && !best.empty()) {
    KILN_ASSIGN_OR_RETURN(trials, DirectTrials::Connect(*cluster));
    measure = MeasureOn(*trials, job.spec(), best.front().target());
  }
  const std::vector<ComparedTask> tasks = CompareWithBaseline(
      baseline, job, best, measure,
      "the times are recorded ones, since the devices are those of a scheduler", kBaselineTurns);
  if (session.json) {
    fmt::print("{}\n", ComparedJson(tasks, baseline.path));
  } else {
    fmt::print("\n{}", ComparedTable(tasks, baseline.path, OutputColumns(STDOUT_FILENO)));
  }
  std::fflush(stdout);
  return AnySlower(tasks) ? 1 : 0;
}

// Prints the end of a job, and the comparison with the baseline (null: none). Returns the exit
// status.
StatusOr<int> ReportEnd(const Followed& followed, SchedulerClient& client,
                        const LocalCluster* cluster, const Session& session, bool quiet,
                        const Baseline* baseline) {
  KILN_ASSIGN_OR_RETURN(const int status, ReportOutcome(followed, client, session, quiet));
  if (status != 0 || baseline == nullptr) return status;
  return ReportBaseline(*baseline, followed.job, client, cluster, session);
}

// `followed` was interrupted and keeps running, since it does not belong to this process.
int ReportStillRunning(const Followed& followed, const std::string& job_id,
                       const Session& session) {
  fmt::print(stderr, "kiln: job {} goes on ({} done); {} shows it, {} ends it\n", job_id,
             Counted(followed.job.trials_done(), "trial"), session.Command("watch " + job_id),
             session.Command("cancel " + job_id));
  return kInterruptedExit;
}

void PrintStart(const std::string& job_id, const v1::JobSpec& spec, const Session& session,
                const FollowOptions& follow, const std::string& place) {
  if (follow.quiet) return;
  if (session.json) {
    fmt::print("{}\n", StartEvent(job_id, spec, place));
  } else {
    int groups = 0;
    for (const v1::TaskSpec& task : spec.tasks()) groups += task.has_alternative_of() ? 0 : 1;
    std::string more = groups > 1 ? fmt::format(" and {}", Counted(groups - 1, "more task")) : "";
    if (groups > 1 && spec.tasks_size() > groups)
      more += fmt::format(" ({})", RowsText(groups, spec.tasks_size()));
    if (groups == 1) {
      for (int i = 1; i < spec.tasks_size(); ++i) more += " or " + spec.tasks(i).variant();
    }
    fmt::print("job {}: {}{}, {}, target {}, records in {}\n", job_id, spec.tasks(0).description(),
               more, LimitsText(spec.options()), ShortTarget(spec.tasks(0).target()), place);
  }
  std::fflush(stdout);
}

// Chooses the device of this machine that the job means.
Status ChooseDeviceHere(v1::JobSpec& spec) {
  if (spec.device().empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const std::string device, DeviceOfTarget(spec.tasks(0).target()));
  KILN_ASSIGN_OR_RETURN(const v1::ListReply there, LocalDevices(device));
  const std::string& target = spec.tasks(0).target();
  KILN_ASSIGN_OR_RETURN(
      *spec.mutable_device(),
      ChooseLocalDevice(spec.device(), target.substr(0, target.find(' ')), there));
  return OkStatus();
}

// The cluster serves one target, whose device its runners have.
StatusOr<LocalCluster::Options> OptionsOfJob(const v1::JobSpec& spec, const ClusterFlags& flags,
                                             const Session& session) {
  std::string device = DeviceOfTarget(spec.tasks(0).target()).value_or("cpu");
  // A job for one GPU gets a cluster with that GPU alone.
  if (spec.device().starts_with("GPU-")) device += ":" + spec.device();
  KILN_ASSIGN_OR_RETURN(LocalCluster::Options options, ClusterOptions(device, flags, session));
  options.allow_faults = !spec.options().faults().empty();
  return options;
}

// Returns the id of the job: a new one, or the resumed one.
StatusOr<std::string> Begin(SchedulerClient& client, const v1::JobSpec& spec,
                            const std::string& resumed_id) {
  if (resumed_id.empty()) {
    v1::JobSpec settled = spec;
    KILN_RETURN_IF_ERROR(KeepModelOf(client, settled));
    return client.Submit(settled);
  }
  KILN_RETURN_IF_ERROR(client.Resume(resumed_id));
  return resumed_id;
}

StatusOr<int> TuneThrough(SchedulerClient& client, const v1::JobSpec& spec,
                          const std::string& resumed_id, const FollowOptions& follow,
                          const Session& session, StopSignal& stop, const Baseline* baseline) {
  KILN_ASSIGN_OR_RETURN(const std::string job_id, Begin(client, spec, resumed_id));
  PrintStart(job_id, spec, session, follow, client.Name());
  KILN_ASSIGN_OR_RETURN(const Followed followed,
                        Follow(client, job_id, session, stop, nullptr, follow));
  if (followed.interrupted) return ReportStillRunning(followed, job_id, session);
  return ReportEnd(followed, client, nullptr, session, follow.quiet, baseline);
}

StatusOr<int> TuneOnThisMachine(v1::JobSpec spec, const std::string& resumed_id,
                                const ClusterFlags& flags, const FollowOptions& follow,
                                const Session& session, StopSignal& stop,
                                const Baseline* baseline) {
  KILN_RETURN_IF_ERROR(CheckDatabase(session.db));
  KILN_ASSIGN_OR_RETURN(const LocalCluster::Options options, OptionsOfJob(spec, flags, session));
  bool interrupted = false;
  auto cluster = LocalCluster::Start(options, [&] {
    return interrupted = interrupted || stop.WaitFor(absl::ZeroDuration()).has_value();
  });
  if (interrupted) return kInterruptedExit;
  KILN_RETURN_IF_ERROR(cluster.status());
  if (!follow.quiet) SayPlaces(options, **cluster, session);
  KILN_ASSIGN_OR_RETURN(const auto client, SchedulerClient::Connect((*cluster)->scheduler_address(),
                                                                    (*cluster)->secret()));
  KILN_ASSIGN_OR_RETURN(const std::string job_id, Begin(*client, spec, resumed_id));
  KILN_ASSIGN_OR_RETURN(std::set<std::string> others, SayUnfinishedJobs(job_id, *client, session));
  (*cluster)->LeaveAlone(std::move(others));
  PrintStart(job_id, spec, session, follow, session.db);
  KILN_ASSIGN_OR_RETURN(const Followed followed,
                        Follow(*client, job_id, session, stop, cluster->get(), follow));
  return ReportEnd(followed, *client, cluster->get(), session, follow.quiet, baseline);
}

// Refuses what chooses among devices of this machine for a job that runs elsewhere.
Status CheckNoDevices(const ClusterFlags& flags) {
  if (flags.devices == "all") return OkStatus();
  return InvalidArgument(
      "--devices {} chooses among the GPUs of this machine, and a scheduler runs the job: leave "
      "out --devices or --scheduler; --device names a device of a farm",
      flags.devices);
}

}  // namespace

StatusOr<std::set<std::string>> SayUnfinishedJobs(const std::string& own, SchedulerClient& client,
                                                  const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto jobs, client.Jobs(std::nullopt));
  std::set<std::string> ids;
  for (const v1::JobStatus& job : jobs) {
    if (IsFinal(job.state()) || job.id() == own) continue;
    ids.insert(job.id());
    fmt::print(
        stderr,
        "kiln: job {} of an earlier run is unfinished ({} of {}) and is left alone; {} goes on "
        "with it, {} drops it\n",
        job.id(), job.trials_done(), Counted(job.spec().options().trials(), "trial"),
        session.Command("tune --resume " + job.id()), session.Command("cancel " + job.id()));
  }
  return ids;
}

void AddCluster(CLI::App& command, ClusterFlags& cluster) {
  constexpr char kGroup[] = "Without a scheduler";
  command
      .add_option("--log-dir", cluster.log_folder,
                  "keep the logs of the processes started here [in a temporary folder]")
      ->group(kGroup);
  command.add_option("--threads", cluster.threads, "cores to measure on; 0 = all")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--build-jobs", cluster.build_jobs, "builds at once; 0 = one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option(
          "--devices", cluster.devices,
          "which GPUs measure, each with a runner of its own: all, or indices and UUIDs, as "
          "in 0,1")
      ->type_name("LIST")
      ->capture_default_str()
      ->group(kGroup);
}

StatusOr<LocalCluster::Options> ClusterOptions(const std::string& device, const ClusterFlags& flags,
                                               const Session& session) {
  LocalCluster::Options options;
  options.db = session.db;
  options.device = device;
  options.runner_threads = flags.threads;
  options.builder_jobs = flags.build_jobs;
  options.log_folder = flags.log_folder;
  const bool is_gpu = device == "cuda" || device.starts_with("cuda:");
  if (is_gpu || flags.devices != "all") {
    KILN_ASSIGN_OR_RETURN(options.places, PlacesHere(device, flags.devices));
  }
  return options;
}

void SayPlaces(const LocalCluster::Options& options, const LocalCluster& cluster,
               const Session& session) {
  if (!session.json && options.places.runners.size() > 1) {
    fmt::print(stderr, "kiln: {}\n", PlacesText(options.places));
  }
  for (const std::string& note : cluster.notes()) fmt::print(stderr, "kiln: {}\n", note);
}

StatusOr<int> RunJob(v1::JobSpec spec, const ClusterFlags& cluster, const FollowOptions& follow,
                     const Session& session, StopSignal& stop, const Baseline* baseline) {
  if (session.scheduler.empty()) {
    KILN_RETURN_IF_ERROR(NameThisCpu(spec));
    KILN_RETURN_IF_ERROR(ChooseDeviceHere(spec));
    return TuneOnThisMachine(std::move(spec), "", cluster, follow, session, stop, baseline);
  }
  KILN_RETURN_IF_ERROR(CheckNoDevices(cluster));
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return TuneThrough(*client, spec, "", follow, session, stop, baseline);
}

StatusOr<int> ResumeJob(const v1::JobStatus& job, const ClusterFlags& cluster,
                        const FollowOptions& follow, const Session& session, StopSignal& stop,
                        const Baseline* baseline) {
  if (session.scheduler.empty())
    return TuneOnThisMachine(job.spec(), job.id(), cluster, follow, session, stop, baseline);
  KILN_RETURN_IF_ERROR(CheckNoDevices(cluster));
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return TuneThrough(*client, job.spec(), job.id(), follow, session, stop, baseline);
}

StatusOr<int> WatchJob(const std::string& job_id, SchedulerClient& client,
                       const FollowOptions& follow, const Session& session, StopSignal& stop) {
  KILN_RETURN_IF_ERROR(client.Job(job_id).status());
  KILN_ASSIGN_OR_RETURN(const Followed followed,
                        Follow(client, job_id, session, stop, nullptr, follow));
  if (followed.interrupted) return ReportStillRunning(followed, job_id, session);
  return ReportOutcome(followed, client, session, follow.quiet);
}

}  // namespace kiln::client
