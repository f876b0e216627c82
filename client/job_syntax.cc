#include "client/job_syntax.h"

#include <CLI/CLI.hpp>

#include "base/grpc_server.h"
#include "client/syntax.h"
#include "client/wording.h"

namespace kiln::client {

void JobSyntax::AddTo(CLI::App& app) {
  AddTune(app);
  AddSubmit(app);
  AddJobs(app);
  AddWatch(app);
  AddCancel(app);
  AddCalibrate(app);
  AddWorkers(app);
}

// ---- tune and submit ------------------------------------------------------------------------

void JobSyntax::AddFollow(CLI::App& command) {
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

void JobSyntax::AddCluster(CLI::App& tune) {
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

StatusOr<int> JobSyntax::RunTune() const {
  StopSignal stop;  // before any thread
  InitGrpc();
  JobFlags job = options_.Job();
  job.follow = follow_;
  return Tune(job, cluster_, resume_, syntax_.session(), stop);
}

void JobSyntax::AddTune(CLI::App& app) {
  CLI::App* tune =
      syntax_.Add(app, "tune", "tune an operator and watch it; without --scheduler on this machine",
                  [this] { return RunTune(); });
  options_.AddTo(*tune);
  syntax_.AddPlace(*tune);
  AddFollow(*tune);
  tune->add_option("--resume", resume_,
                   "go on with a job that was left unfinished, cancelled or failed; alone: the "
                   "newest unfinished or cancelled one")
      ->expected(0, 1)
      ->default_str("last")
      ->type_name("JOB");
  AddCluster(*tune);
}

void JobSyntax::AddSubmit(CLI::App& app) {
  CLI::App* submit =
      syntax_.Add(app, "submit", "hand a job to a scheduler and print its id",
                  Plain([this] { return SubmitCommand(options_.Job(), syntax_.session()); }));
  options_.AddTo(*submit);
  syntax_.AddPlace(*submit);
}

// ---- calibrate ------------------------------------------------------------------------------

StatusOr<int> JobSyntax::RunCalibrate() const {
  StopSignal stop;  // before any thread
  InitGrpc();
  CalibrateFlags flags = calibrate_;
  flags.follow = follow_;
  return CalibrateCommand(flags, cluster_, syntax_.session(), stop);
}

void JobSyntax::AddCalibrate(CLI::App& app) {
  CLI::App* calibrate =
      syntax_.Add(app, "calibrate",
                  "measure a device for a minute or two and fit the analytic cost model to it",
                  [this] { return RunCalibrate(); });
  calibrate->add_option("--target", calibrate_.target, "of the device: cuda or llvm")
      ->capture_default_str();
  calibrate->add_option("--device", calibrate_.device,
                        "which of several devices, as for kiln tune [any]");
  calibrate->add_option("--trials", calibrate_.trials, "candidates to measure and fit to")
      ->check(CLI::Range(90u, kMostTrials))
      ->capture_default_str();
  calibrate->add_option("--seed", calibrate_.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  syntax_.AddPlace(*calibrate);
  AddFollow(*calibrate);
  AddCluster(*calibrate);
}

// ---- jobs that are there --------------------------------------------------------------------

Status JobSyntax::RunJobs() const {
  if (job_id_.empty()) return JobsCommand(limit_, syntax_.session());
  return timing_ ? JobTimingCommand(job_id_, syntax_.session())
                 : JobCommand(job_id_, all_, syntax_.session());
}

void JobSyntax::AddJobs(CLI::App& app) {
  CLI::App* jobs = syntax_.Add(app, "jobs", "list the jobs, or show one with its failed trials",
                               Plain([this] { return RunJobs(); }));
  jobs->add_option("job", job_id_, "id of one job");
  jobs->add_option("--limit", limit_, "the newest so many; 0 = all")->capture_default_str();
  jobs->add_flag("--all", all_, "all failed trials of the job, not the first ones");
  jobs->add_flag("--timing", timing_, "of one job: where the time of its trials went");
  syntax_.AddPlace(*jobs);
}

StatusOr<int> JobSyntax::RunWatch() const {
  StopSignal stop;  // before any thread
  InitGrpc();
  return WatchCommand(job_id_, follow_, syntax_.session(), stop);
}

void JobSyntax::AddWatch(CLI::App& app) {
  CLI::App* watch = syntax_.Add(app, "watch", "watch a job of a scheduler to its end",
                                [this] { return RunWatch(); });
  watch->add_option("job", job_id_, "id of the job")->required();
  AddFollow(*watch);
  syntax_.AddPlace(*watch);
}

void JobSyntax::AddCancel(CLI::App& app) {
  CLI::App* cancel =
      syntax_.Add(app, "cancel", "cancel a job; its records are kept",
                  Plain([this] { return CancelCommand(job_id_, syntax_.session()); }));
  cancel->add_option("job", job_id_, "id of the job")->required();
  syntax_.AddPlace(*cancel);
}

// ---- the tracker ----------------------------------------------------------------------------

Status JobSyntax::RunWorkers() const {
  std::string tracker = "127.0.0.1:9190";
  ReadVariable("KILN_TRACKER", tracker);
  return WorkersCommand(tracker_.value_or(tracker), syntax_.session());
}

void JobSyntax::AddWorkers(CLI::App& app) {
  CLI::App* workers = syntax_.Add(app, "workers", "list a tracker's workers and its queue",
                                  Plain([this] { return RunWorkers(); }));
  workers
      ->add_option_function<std::string>(
          "--tracker", [this](const std::string& value) { tracker_ = value; },
          "address of the tracker [127.0.0.1:9190]")
      ->type_name("HOST:PORT");
  syntax_.AddSecret(*workers);
  syntax_.AddJson(*workers);
}

}  // namespace kiln::client
