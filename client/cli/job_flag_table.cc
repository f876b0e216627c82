#include "client/cli/job_flag_table.h"

#include <CLI/CLI.hpp>

#include "base/grpc_server.h"
#include "base/usage.h"
#include "client/cli/compilation_target.h"
#include "client/cli/flag_table.h"
#include "client/view/format.h"
#include "proto/job_defaults.h"

namespace kiln::client {

void JobFlagTable::AddTo(CLI::App& app) {
  AddTune(app);
  AddSubmit(app);
  AddJobs(app);
  AddWatch(app);
  AddCancel(app);
  AddCalibrate(app);
  AddWorkers(app);
}

// ---- tune and submit ------------------------------------------------------------------------

void JobFlagTable::AddFollow(CLI::App& command) {
  command
      .add_flag("--quiet", follow_.quiet,
                "print only what came of it; with --json only the end event")
      ->group("Output");
  command
      .add_flag("--explain", follow_.explain,
                "say of each candidate where it came from and how it scored, and of each round "
                "what was dropped and why; lines, also on a terminal")
      ->group("Output");
  command
      .add_option("--log-file", follow_.latency_log,
                  "write a line for each round: elapsed time, total latency, trials, best of each "
                  "task")
      ->type_name("FILE")
      ->group("Output");
}

void JobFlagTable::AddCluster(CLI::App& tune) {
  constexpr char kGroup[] = "Without a scheduler";
  tune.add_option("--log-dir", cluster_.log_folder,
                  "keep the logs of the processes started here [in a temporary folder]")
      ->group(kGroup);
  tune.add_option("--threads", cluster_.threads, "cores to measure on; 0 = all")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(kGroup);
  tune.add_option("--build-jobs", cluster_.build_jobs, "builds at once; 0 = one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(kGroup);
}

StatusOr<int> JobFlagTable::RunTune() const {
  // StopSignal must exist before any thread.
  StopSignal stop;
  InitGrpc();
  const Session& session = flag_table_.session();
  ChosenTarget target{options_.Target(), ""};
  // A resumed job has its own target.
  if (resume_.empty()) {
    KILN_ASSIGN_OR_RETURN(target, ChooseTarget(target.text, session));
  }
  JobFlags job = options_.Job(target.text);
  job.target_note = target.note;
  job.follow = follow_;
  return Tune(job, cluster_, resume_, session, stop);
}

// Marks the most used options: what is tuned, for which target, how long, and where the records go.
void JobFlagTable::MarkMostUsed(CLI::App& command, const char* place) {
  for (const char* name : {"--args", "--target", "--trials", "--minutes", place})
    command.get_option(name)->group(kMostUsed);
}

void JobFlagTable::AddTune(CLI::App& app) {
  CLI::App* tune = flag_table_.Add(
      app, "tune", "tune an operator and watch it; without --scheduler on this machine",
      [this] { return RunTune(); });
  options_.AddTo(*tune);
  flag_table_.AddPlace(*tune);
  AddFollow(*tune);
  tune->add_option("--resume", resume_,
                   "go on with a job that was left unfinished, cancelled or failed; alone: the "
                   "newest unfinished or cancelled one")
      ->expected(0, 1)
      ->default_str("last")
      ->type_name("JOB");
  AddCluster(*tune);
  MarkMostUsed(*tune, "--db");
}

Status JobFlagTable::RunSubmit() const {
  const Session& session = flag_table_.session();
  if (session.scheduler.empty()) {
    return InvalidArgument(
        "submit needs a scheduler: give --scheduler HOST:PORT or set KILN_SCHEDULER; `kiln tune` "
        "works without one");
  }
  KILN_ASSIGN_OR_RETURN(const ChosenTarget target, ChooseTarget(options_.Target(), session));
  JobFlags job = options_.Job(target.text);
  job.target_note = target.note;
  return SubmitCommand(job, session);
}

void JobFlagTable::AddSubmit(CLI::App& app) {
  CLI::App* submit = flag_table_.Add(app, "submit", "hand a job to a scheduler and print its id",
                                     Plain([this] { return RunSubmit(); }));
  options_.AddTo(*submit);
  flag_table_.AddPlace(*submit);
  MarkMostUsed(*submit, "--scheduler");
}

// ---- calibrate ------------------------------------------------------------------------------

StatusOr<int> JobFlagTable::RunCalibrate() const {
  // StopSignal must exist before any thread.
  StopSignal stop;
  InitGrpc();
  CalibrateFlags flags = calibrate_;
  KILN_ASSIGN_OR_RETURN(flags.target, TargetOrDefault(flags.target, flag_table_.session()));
  flags.follow = follow_;
  return CalibrateCommand(flags, cluster_, flag_table_.session(), stop);
}

void JobFlagTable::AddCalibrate(CLI::App& app) {
  CLI::App* calibrate =
      flag_table_.Add(app, "calibrate",
                      "measure a device for a minute or two and fit the analytic cost model to it",
                      [this] { return RunCalibrate(); });
  calibrate->add_option("--target", calibrate_.target,
                        "of the device: cuda or llvm [as for kiln tune]");
  calibrate->add_option("--device", calibrate_.device,
                        "which of several devices, as for kiln tune [any]");
  calibrate->add_option("--trials", calibrate_.trials, "candidates to measure and fit to")
      ->check(CLI::Range(90u, kMostTrials))
      ->capture_default_str();
  calibrate->add_option("--seed", calibrate_.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  flag_table_.AddPlace(*calibrate);
  AddFollow(*calibrate);
  AddCluster(*calibrate);
}

// ---- jobs that are there --------------------------------------------------------------------

Status JobFlagTable::RunJobs() const {
  if (job_id_.empty()) {
    const auto limit = limit_ == 0 ? std::nullopt : std::optional(limit_);
    return JobsCommand(limit, flag_table_.session());
  }
  return timing_ ? JobTimingCommand(job_id_, flag_table_.session())
                 : JobCommand(job_id_, all_, flag_table_.session());
}

void JobFlagTable::AddJobs(CLI::App& app) {
  CLI::App* jobs = flag_table_.Add(app, "jobs", "list the jobs, or show one with its failed trials",
                                   Plain([this] { return RunJobs(); }));
  jobs->add_option("job", job_id_, "id of one job");
  jobs->add_option("--limit", limit_, "the newest so many; 0 = all")->capture_default_str();
  jobs->add_flag("--all", all_, "all failed trials of the job, not the first ones");
  jobs->add_flag("--timing", timing_, "of one job: where the time of its trials went");
  flag_table_.AddPlace(*jobs);
}

StatusOr<int> JobFlagTable::RunWatch() const {
  // StopSignal must exist before any thread.
  StopSignal stop;
  InitGrpc();
  return WatchCommand(job_id_, follow_, flag_table_.session(), stop);
}

void JobFlagTable::AddWatch(CLI::App& app) {
  CLI::App* watch = flag_table_.Add(app, "watch", "watch a job of a scheduler to its end",
                                    [this] { return RunWatch(); });
  watch->add_option("job", job_id_, "id of the job")->required();
  AddFollow(*watch);
  flag_table_.AddPlace(*watch);
}

void JobFlagTable::AddCancel(CLI::App& app) {
  CLI::App* cancel =
      flag_table_.Add(app, "cancel", "cancel a job; its records are kept",
                      Plain([this] { return CancelCommand(job_id_, flag_table_.session()); }));
  cancel->add_option("job", job_id_, "id of the job")->required();
  flag_table_.AddPlace(*cancel);
}

// ---- the tracker ----------------------------------------------------------------------------

Status JobFlagTable::RunWorkers() const {
  std::string tracker = "127.0.0.1:9190";
  ReadVariable("KILN_TRACKER", tracker);
  return WorkersCommand(tracker_.value_or(tracker), flag_table_.session());
}

void JobFlagTable::AddWorkers(CLI::App& app) {
  CLI::App* workers = flag_table_.Add(app, "workers", "list a tracker's workers and its queue",
                                      Plain([this] { return RunWorkers(); }));
  workers
      ->add_option_function<std::string>(
          "--tracker", [this](const std::string& value) { tracker_ = value; },
          "address of the tracker [127.0.0.1:9190]")
      ->type_name("HOST:PORT");
  flag_table_.AddSecret(*workers);
  flag_table_.AddJson(*workers);
}

}  // namespace kiln::client
