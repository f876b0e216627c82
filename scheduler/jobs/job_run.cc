#include "scheduler/jobs/job_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/jobs/calibrations.h"
#include "scheduler/jobs/dispatch_job.h"
#include "scheduler/jobs/job_ending.h"
#include "scheduler/jobs/job_history.h"
#include "scheduler/jobs/job_model.h"
#include "scheduler/jobs/known_tasks.h"
#include "scheduler/remeasure/finalist_selection.h"
#include "scheduler/values/device_keys.h"
#include "search/policies/sketch_policy.h"
#include "search/space/round_report.h"
#include "search/tuning/estimate_phase.h"

namespace kiln::scheduler {
namespace {

constexpr int kFinalPasses = 2;
// A task should have at least so many trials.
constexpr uint32_t kSensibleTrials = 16;

int64_t NowMs() { return absl::ToUnixMillis(Clock::Real().Now()); }

// Time between two writes of a job's progress while its rounds end.
constexpr int64_t kKeepProgressMs = 1'000;

int64_t StartOf(const store::JobRow& job) { return job.started_ms.value_or(NowMs()); }

// Describes the device's calibration. Says nothing for a CPU that has not been measured, because
// all its rows are derived.
std::string NoticeOf(const LeasedDevice& device) {
  const device::DeviceModel& model = device.tasks.front().device;
  const bool measured = device.calibration.source == device::CalibrationSource::kMeasured;
  return model.is_gpu() || measured ? DescribeCalibration(model, device.calibration) : "";
}

// Returns the key that all runners of the job must serve: they have devices like the first one.
std::string RunnerKey(const CheckedJob& job, const v1::WorkerState& first) {
  if (!job.spec.device().empty()) return job.spec.device();
  const std::string model = ModelKey(first);
  return model.empty() ? std::string(job.tasks[0].target.kind->name) : model;
}

store::RoundRow RowOf(const search::MeasuredRound& round) {
  store::RoundRow row;
  row.task_index = static_cast<uint32_t>(round.task);
  row.trials = round.trials;
  for (int i = 0; i < round.tasks.num_tasks(); ++i) {
    const double best_s = round.tasks.latency_s(i);
    const bool none = best_s >= search::TaskScheduler::kNoResult_s;
    row.best_s.push_back(none ? std::nullopt : std::optional(best_s));
  }
  row.total_latency_s = round.tasks.Score();
  row.search_s = round.search_s;
  row.report = search::PrintRound(round.report);
  return row;
}

}  // namespace

JobRun::JobRun(const RunContext& context, store::JobRow job)
    : context_(context),
      job_(std::move(job)),
      started_ms_(StartOf(job_)),
      budget_(job_.progress.active_s),
      ending_(job_.progress.ending),
      store_(*context_.store, "job " + job_.id, stop_.get_token(), context_.store_pause) {}

void JobRun::Stop() {
  stopped_ = true;
  stop_trials_.request_stop();
  stop_.request_stop();
  EndSearch();
}

void JobRun::Pause() {
  drains_ = true;
  stopped_ = true;
  stop_.request_stop();
  EndSearch();
}

void JobRun::MakeWay() {
  makes_way_ = true;
  Pause();
}

void JobRun::EndSearch() {
  search_stopped_ = true;
  search_stop_.request_stop();
}

LiveStatus JobRun::live() const {
  LiveStatus live = status_.Read();
  live.database_problem = store_.problem();
  return live;
}

StatusOr<std::string> JobRun::Run() {
  KILN_ASSIGN_OR_RETURN(const CheckedJob job, ReadJob());
  KILN_ASSIGN_OR_RETURN(const bool needs_device, NeedsDevice(job));
  if (!needs_device) return Remark(job);
  Status begun = BeginServed(job);
  StatusOr<std::string> result = begun.ok() ? RunOnDevice(job) : begun;
  if (!result.ok() && stopped_) return Cancelled("stopped");
  if (result.ok() || served_ == nullptr || served_->failure().ok()) return result;
  lost_process_ = served_->failure().code() == StatusCode::kUnavailable;
  return served_->failure();
}

Status JobRun::BeginServed(const CheckedJob& job) {
  if (!job.spec.has_served()) return OkStatus();
  auto begun = ServedSearch::Begin(*context_.callbacks, {.job_id = job_.id,
                                                         .served = job.spec.served(),
                                                         .stop = search_stop_.get_token(),
                                                         .failed = [this] { EndSearch(); }});
  lost_process_ = begun.status().code() == StatusCode::kUnavailable;
  KILN_ASSIGN_OR_RETURN(served_, std::move(begun));
  return OkStatus();
}

StatusOr<std::string> JobRun::RunOnDevice(const CheckedJob& job) {
  KILN_ASSIGN_OR_RETURN(LeasedDevice device, WaitForDevice(job));
  return Tune(job, std::move(device));
}

StatusOr<CheckedJob> JobRun::ReadJob() {
  v1::JobSpec spec;
  KILN_ASSIGN_OR_RETURN(const store::JobRow row, store_.GetJob(job_.id));
  if (!spec.ParseFromString(row.spec)) {
    return DataLoss("the spec of job {} in the database is damaged", job_.id);
  }
  return CheckJobSpec(std::move(spec), stop_.get_token());
}

StatusOr<bool> JobRun::NeedsDevice(const CheckedJob& job) {
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store_.CountTrials(job_.id));
  // An earlier run died between its last record and its end.
  KILN_ASSIGN_OR_RETURN(const auto rows, store_.TasksOfJob(job_.id));
  const uint64_t trials = static_cast<uint64_t>(counts.total) + KnownTrials(rows);
  if (ending_ == store::JobEnding::kNone && trials >= job.spec.options().trials()) {
    ending_ = store::JobEnding::kTrialsUsedUp;
    KILN_RETURN_IF_ERROR(KeepProgress());
  }
  // A job that calibrates needs its device to its end.
  if (ending_ == store::JobEnding::kNone || job.spec.options().calibrate()) return true;
  KILN_ASSIGN_OR_RETURN(const std::vector<Finalists> finalists,
                        FinalistSelection(job, job_.id, store_).Next());
  return !finalists.empty();
}

LeaseSpec JobRun::SpecOf(v1::WorkerKind kind, std::string key) const {
  LeaseSpec spec;
  spec.kind = kind;
  spec.key = std::move(key);
  spec.job_id = job_.id;
  spec.user = job_.user;
  spec.priority = job_.priority;
  spec.max_leases =
      kind == v1::BUILDER ? context_.dispatch.max_builders : context_.dispatch.max_runners;
  return spec;
}

StatusOr<LeasedDevice> JobRun::WaitForDevice(const CheckedJob& job) {
  const std::string& device = job.spec.device();
  const std::string kind(job.tasks[0].target.kind->name);
  LeaseSpec spec = SpecOf(v1::RUNNER, device.empty() ? kind : device);
  spec.max_leases = 1;
  first_ = context_.leases(spec);
  status_.WaitForDevice(first_.why_waiting);
  KILN_ASSIGN_OR_RETURN(
      LeasedDevice leased,
      LeaseDevice(job, job_.id, *first_.source, store_, search_stop_.get_token(),
                  [this](std::string problem) { status_.SetProblem(std::move(problem)); }));
  status_.SetDevice(leased.lease.worker().device(), NoticeOf(leased));
  tuners_.SetDevice(leased.lease.worker().device());
  if (context_.has_device != nullptr) context_.has_device();
  return leased;
}

StatusOr<std::string> JobRun::Tune(const CheckedJob& job, LeasedDevice device) {
  budget_.Begin();
  const v1::TuneOptions& options = job.spec.options();
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records, store_.RecordsOfJob(job_.id, 0));
  JobHistory history = HistoryOf(job_.id, records, device.tasks);
  std::vector<std::string> tuners_before = tuners_.Get();
  KILN_ASSIGN_OR_RETURN(const std::vector<store::TaskRow> rows, TakeKnown(job, device));
  const auto known = static_cast<uint32_t>(std::min<uint64_t>(KnownTrials(rows), options.trials()));
  if (history.trials == 0 && known > 0 && known == options.trials()) {
    ending_ = store::JobEnding::kTrialsUsedUp;
    KILN_RETURN_IF_ERROR(KeepProgress());
    return Remark(job);
  }
  KILN_ASSIGN_OR_RETURN(const search::Models models, ModelsOf(job, device));
  NoteFewTrials(job);
  KILN_ASSIGN_OR_RETURN(const WarmStart start, StartWarm(job, device, models));
  std::vector<std::optional<SampledReference>> samples = SamplesOf(job);
  KILN_ASSIGN_OR_RETURN(
      JobSearch search,
      MakeJobSearch(job, device, history, start, models,
                    context_.allowances ? &context_.allowances->schedules : nullptr, served_.get(),
                    samples, rows));
  search.options.trials = options.trials() - known;
  SharedSearch shared = ShareSearch(job, device, start, rows, std::move(tuners_before));
  search.options.others = &shared;
  if (history.trials > 0) {
    LogInfo("job {} goes on after {} of {} trials", job_.id, history.trials, options.trials());
  }
  Dispatcher::Job dispatch =
      DispatchJobOf(job_.id, job, device, std::move(history), start, std::move(samples), rows);
  dispatch.own_builds = OwnBuildsOfJob();
  KILN_RETURN_IF_ERROR(Measure(job, search, std::move(dispatch), std::move(device.lease)));
  if (awaits_others_) {
    left_to_others_ = shared.held();
    return Cancelled("other jobs tune the tasks that are left");
  }
  if (!options.calibrate()) return Remark(job);
  SetPhase("fitting the constants of the device");
  return Calibrate(store_, job_.id, device.tasks, NowMs() / 1000, stop_.get_token());
}

OwnBuilds JobRun::OwnBuildsOfJob() {
  if (served_ == nullptr || served_->served().builds() == 0) return {};
  return {.at_once = static_cast<int>(served_->served().builds()),
          .build = [this](v1::BuildCall call, absl::Duration timeout, const std::stop_token& stop) {
            return served_->Build(std::move(call), timeout, stop);
          }};
}

// The job has one model, which learns from all its tasks. If the user's process serves the model,
// only the analytic model is made.
StatusOr<search::Models> JobRun::ModelsOf(const CheckedJob& job, const LeasedDevice& device) {
  const v1::TuneOptions& options = job.spec.options();
  const std::stop_token stop = search_stop_.get_token();
  if (served_ != nullptr && served_->has_model()) {
    return search::MakeModels(search::kSketchAnalytic.name, options.seed(), device.calibration.row,
                              stop);
  }
  KILN_ASSIGN_OR_RETURN(const auto trained, ModelOfJob(store_, options));
  return search::MakeModels(
      options.policy(), options.seed(), device.calibration.row, stop,
      {.trained = trained.has_value() ? &*trained : nullptr,
       .parameters = {options.model_parameters().begin(), options.model_parameters().end()},
       .samples = context_.allowances ? &context_.allowances->samples : nullptr});
}

StatusOr<std::vector<store::TaskRow>> JobRun::TakeKnown(const CheckedJob& job,
                                                        const LeasedDevice& device) {
  KILN_ASSIGN_OR_RETURN(std::vector<store::TaskRow> rows, store_.TasksOfJob(job_.id));
  KILN_ASSIGN_OR_RETURN(
      const std::vector<KnownTask> known,
      FindKnownTasks(job_.id, job, device.tasks, device.lease.worker().device(), store_));
  KILN_RETURN_IF_ERROR(KeepKnownTasks(known, rows, store_));
  if (const std::string remark = KnownRemark(rows); !remark.empty())
    LogInfo("job {}: {}", job_.id, remark);
  return rows;
}

SharedSearch JobRun::ShareSearch(const CheckedJob& job, const LeasedDevice& device,
                                 const WarmStart& start, const std::vector<store::TaskRow>& rows,
                                 std::vector<std::string> tuners_before) {
  return SharedSearch({.id = job_.id,
                       .job = &job,
                       .tasks = device.tasks,
                       .device = device.lease.worker().device(),
                       .tuners = &tuners_,
                       .rows = rows,
                       .tuners_before = std::move(tuners_before)},
                      start, store_,
                      [this](std::vector<LiveStatus::Known> known, std::vector<std::string> by) {
                        status_.SetShared(std::move(known), std::move(by));
                        context_.changed(job_.id);
                      });
}

StatusOr<WarmStart> JobRun::StartWarm(const CheckedJob& job, const LeasedDevice& device,
                                      const search::Models& models) {
  KILN_ASSIGN_OR_RETURN(WarmStart start, MakeWarmStart(job_.id, job, device, models, store_,
                                                       search_stop_.get_token()));
  status_.SetKnown(KnownStatesOf(start), start.of_templates.notices);
  context_.changed(job_.id);
  return start;
}

Status JobRun::Measure(const CheckedJob& job, JobSearch& search, Dispatcher::Job dispatch,
                       LeasedWorker first_runner) {
  builders_ = context_.leases(SpecOf(v1::BUILDER, std::string(job.tasks[0].target.kind->name)));
  runners_ = context_.leases(SpecOf(v1::RUNNER, RunnerKey(job, first_runner.worker())));
  Dispatcher dispatcher(std::move(dispatch), context_.dispatch, *builders_.source, *runners_.source,
                        std::move(first_runner), store_, [this] {
                          has_result_ = true;
                          context_.committed(job_.id);
                        });
  status_.SetDispatcher(dispatcher, builders_.why_waiting, runners_.why_waiting);
  const std::stop_callback on_stop(search_stop_.get_token(), [&] {
    if (drains_) {
      dispatcher.Drain();
    } else {
      dispatcher.Stop();
    }
  });
  const std::stop_callback on_stop_trials(stop_trials_.get_token(), [&] { dispatcher.Stop(); });
  tuners_.OnChange([&] { dispatcher.Wake(); });
  Status measured = Search(job, search, dispatcher);
  tuners_.OnChange(nullptr);
  if (measured.ok()) measured = dispatcher.EndIdleReadings();
  if (measured.ok() && !awaits_others_) measured = MeasureFinalists(job, dispatcher);
  status_.ClearDispatcher();
  if (drains_) dispatcher.Join();
  if (search_stopped_) {
    const Status kept = KeepProgress();  // the next run gets the time that is left
    if (!kept.ok()) LogWarn("job {}: {}", job_.id, Message(kept));
  }
  return measured;
}

Status JobRun::Search(const CheckedJob& job, JobSearch& search, Dispatcher& dispatcher) {
  if (ending_ != store::JobEnding::kNone) return OkStatus();
  search.options.until_s = budget_.DeadlinesOf(job.spec).search_s;
  search.options.phases = context_.dispatch.phases;
  // Code of the user's process may take its time, so it takes no turn from others.
  if (served_ == nullptr) search.options.turns = context_.turns;
  // A job that is timed on the cores that search keeps its searches short: it waits for each.
  const bool waits = search.options.phases != nullptr && job.tasks[0].target.kind->uses_host_cores;
  if (waits) search.options.searches = 1;
  search.options.on_proposed = [this](const search::ProposedRound& round) {
    status_.SetNextTask(static_cast<uint32_t>(round.task));
  };
  search.options.on_result = [this](const search::TaskScheduler& tasks) { ShowEstimate(tasks); };
  search.options.on_measured = [this](const search::MeasuredRound& round) {
    return KeepRound(round);
  };
  KILN_ASSIGN_OR_RETURN(const search::Ending ending,
                        search::Tune(search.tasks, search.options, dispatcher, search_stopped_));
  ending_ = StoredEnding(ending);
  awaits_others_ = ending == search::Ending::kLeftToOthers;
  status_.SetEstimate("");
  return KeepProgress();
}

Status JobRun::MeasureFinalists(const CheckedJob& job, Dispatcher& dispatcher) {
  FinalistSelection selection(job, job_.id, store_);
  // The second pass is for trials whose first reading is better than the winner of the first pass.
  for (int pass = 0; pass < kFinalPasses; ++pass) {
    KILN_ASSIGN_OR_RETURN(std::vector<Finalists> lists, selection.Next());
    if (lists.empty()) continue;
    size_t candidates = 0;
    for (const Finalists& list : lists) candidates += list.entries.size();
    SetPhase(fmt::format("measuring the {} best candidates again", candidates));
    KILN_RETURN_IF_ERROR(
        dispatcher.MeasureAgain(std::move(lists), budget_.DeadlinesOf(job.spec).final_race_s));
  }
  SetPhase("");
  return OkStatus();
}

StatusOr<std::string> JobRun::Remark(const CheckedJob& job) {
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store_.CountTrials(job_.id));
  KILN_ASSIGN_OR_RETURN(const auto rows, store_.TasksOfJob(job_.id));
  const std::string known = KnownRemark(rows);
  StatusOr<std::string> remark = RemarkOn(ending_, job.spec.options(), counts);
  if (known.empty()) return remark;
  // If none of its own trials is right, the known ones are its result.
  return remark.ok() && !remark->empty() ? fmt::format("{}; {}", known, *remark) : known;
}

// ---- progress and status --------------------------------------------------------------------

void JobRun::NoteFewTrials(const CheckedJob& job) {
  const auto tasks = static_cast<uint32_t>(job.tasks.size());
  const uint32_t trials = job.spec.options().trials();
  if (trials >= tasks) return;
  status_.AddNotice(
      fmt::format("{} trials are fewer than the {} tasks: the heaviest get one each, the others "
                  "keep the schedules that are chosen without measuring; {} trials, {} for each "
                  "task, would be sensible",
                  trials, tasks, kSensibleTrials * tasks, kSensibleTrials));
}

void JobRun::ShowEstimate(const search::TaskScheduler& tasks) {
  const auto expected = tasks.ExpectedScore();
  const bool is_estimate = expected.has_value() && expected->estimated > 0 && expected->groups > 1;
  status_.SetEstimate(
      is_estimate ? PrintEstimatePhase(expected->value, expected->estimated, expected->groups)
                  : std::string());
  if (is_estimate) context_.committed(job_.id);
}

Status JobRun::KeepRound(const search::MeasuredRound& round) {
  store::RoundRow row = RowOf(round);
  row.job_id = job_.id;
  row.elapsed_s = 1e-3 * static_cast<double>(NowMs() - started_ms_);
  KILN_RETURN_IF_ERROR(store_.AddRound(row).status());
  if (const int64_t now_ms = NowMs(); now_ms >= progress_due_ms_) {
    KILN_RETURN_IF_ERROR(KeepProgress());
    progress_due_ms_ = now_ms + kKeepProgressMs;
  }
  context_.committed(job_.id);
  return OkStatus();
}

Status JobRun::KeepProgress() { return store_.SetProgress(job_.id, {ending_, budget_.active_s()}); }

void JobRun::SetPhase(std::string phase) {
  status_.SetPhase(std::move(phase));
  context_.changed(job_.id);
}

}  // namespace kiln::scheduler
