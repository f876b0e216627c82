#include "scheduler/job_run.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "compiler/dag/sample_outputs.h"
#include "compiler/schedule/step.h"
#include "scheduler/calibrations.h"
#include "scheduler/device_keys.h"
#include "scheduler/device_tasks.h"
#include "search/final_race.h"
#include "search/policy.h"
#include "search/round_report.h"
#include "search/unscheduled_first.h"

namespace kiln::scheduler {
namespace {

// A device that can't be used is left alone so long, if there are others.
constexpr std::chrono::seconds kPauseOnBadDevice{5};
constexpr std::chrono::milliseconds kAskAgain{500};

void SleepFor(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
}

constexpr int kFinalPasses = 2;

// Of the trials with further readings.
store::Finals KnownOf(const store::Record& record) {
  store::Finals known;
  known.id = record.id;
  known.costs_s = record.final_costs_s;
  known.confidence_s = record.confidence_s;
  known.readings = record.final_readings != 0 ? record.final_readings
                                              : static_cast<uint32_t>(record.final_costs_s.size());
  known.run_s = record.final_run_s;
  known.device = record.final_device;
  return known;
}

// Would a race of these begin?
bool IsOpen(const std::vector<Finalist>& entries) {
  search::FinalRace race(static_cast<int>(entries.size()), {});
  for (size_t i = 0; i < entries.size(); ++i) {
    const store::Finals& known = entries[i].known;
    race.Restore(static_cast<int>(i), known.costs_s, static_cast<int>(known.readings));
  }
  return !race.NextRound().empty();
}

// The unscheduled loops are in the finals whatever was faster in its first reading, unless they are
// much slower: what the winner is compared with is read beside it. Costs of 0 are of those that are
// out.
void AddUnscheduled(const std::vector<const store::Record*>& able,
                    const std::vector<double>& costs_s, std::vector<int>& chosen) {
  if (chosen.empty()) return;
  const double limit_s = search::kWorthALook * costs_s[chosen[0]];
  for (size_t i = 0; i < able.size(); ++i) {
    const auto entry = static_cast<int>(i);
    if (able[i]->steps != store::kNoSteps || costs_s[i] <= 0 || costs_s[i] > limit_s) continue;
    if (std::ranges::find(chosen, entry) == chosen.end()) chosen.push_back(entry);
  }
}

// Alternatives of each other have one.
int WorkOf(const CheckedJob& job, int task) {
  const v1::TaskSpec& spec = job.spec.tasks(task);
  return spec.has_alternative_of() ? static_cast<int>(spec.alternative_of()) : task;
}

int64_t NowMs() { return absl::ToUnixMillis(Clock::Real().Now()); }

int64_t StartOf(const store::JobRow& job) { return job.started_ms != 0 ? job.started_ms : NowMs(); }

// A model that knows little but this task ranks from so many of its results on; and one that learns
// from so many tasks at once knows more.
constexpr int kOwnResults = 16;
constexpr size_t kTasksThatTeach = 4;

// Smaller rounds first: the model learns early, and many tasks leave trials for the best of them.
constexpr uint32_t kFirstRoundTrials = 16;
constexpr uint32_t kWarmUpShare = 4;  // the first rounds take one of so many trials

search::TaskSchedulerOptions ScheduleOf(const v1::JobSpec& spec) {
  const v1::TuneOptions& options = spec.options();
  search::TaskSchedulerOptions schedule;
  schedule.strategy = options.task_strategy() == kRoundRobinStrategy
                          ? search::TaskStrategy::kRoundRobin
                          : search::TaskStrategy::kGradient;
  schedule.round_trials = options.trials_per_round();
  const uint32_t share =
      options.trials() / (kWarmUpShare * static_cast<uint32_t>(spec.tasks_size()));
  schedule.first_round_trials = std::clamp(share, 1u, kFirstRoundTrials);
  schedule.task_early_stopping = options.early_stopping();
  schedule.early_stopping = options.total_early_stopping();
  schedule.seed = options.seed();
  std::vector<search::Work> works;
  for (const v1::TaskSpec& task : spec.tasks()) {
    if (!task.has_alternative_of()) works.push_back({task.weight(), task.network()});
  }
  const auto kind = search::ParseObjective(options.objective());
  schedule.objective = search::MakeObjective(kind.value_or(search::ObjectiveKind::kWeightedSum),
                                             std::move(works), options.latency_target_s());
  return schedule;
}

std::string TagOf(const dag::Dag& dag) {
  std::string tags;
  for (const dag::OpNode& node : dag.nodes()) {
    const std::string& tag = node.op->attrs().task_scheduler_tag;
    if (!tag.empty()) tags += tag + "_";
  }
  return search::SimilarityTag(tags, dag.flop_count());
}

// What the last readings of the best may take, about, of a time budget; a fifth of it at most.
double FinalsTime(const v1::JobSpec& spec) {
  constexpr double kMostOfBudget = 0.2;
  constexpr double kTurn_s = 0.25;  // two readings, checks
  constexpr int kTurns = 5;
  const v1::TuneOptions& options = spec.options();
  const int finalists = std::max(0, options.finalists());
  return std::min(kMostOfBudget * options.time_budget_s(),
                  kTurn_s * kTurns * finalists * spec.tasks_size());
}

store::JobEnding StoredEnding(search::Ending ending) {
  switch (ending) {
    case search::Ending::kTrialsUsedUp:
      return store::JobEnding::kTrialsUsedUp;
    case search::Ending::kTargetReached:
      return store::JobEnding::kTargetReached;
    case search::Ending::kNoImprovement:
      return store::JobEnding::kNoImprovement;
    case search::Ending::kSpaceExhausted:
      return store::JobEnding::kSpaceExhausted;
    case search::Ending::kTimeUsedUp:
      return store::JobEnding::kTimeUsedUp;
  }
  return store::JobEnding::kNone;
}

std::string WhyItEnded(store::JobEnding ending, const v1::TuneOptions& options) {
  switch (ending) {
    case store::JobEnding::kNone:
    case store::JobEnding::kTrialsUsedUp:
      break;
    case store::JobEnding::kTargetReached:
      return fmt::format("the latency asked for, {:.4g} ms, is reached",
                         1e3 * options.latency_target_s());
    case store::JobEnding::kNoImprovement:
      return "stopped for want of improvement";
    case store::JobEnding::kSpaceExhausted:
      return options.objective() == "max"
                 ? "no candidates are left that can make the largest latency smaller"
                 : "no candidates are left";
    case store::JobEnding::kTimeUsedUp:
      return fmt::format("its {:.4g} minutes are used up", options.time_budget_s() / 60);
  }
  return {};
}

double PlainSecondsOf(const CheckedTask& task) {
  return dag::PlainSeconds(*task.dag, task.target.is_gpu());
}

// Where its unscheduled loops surely take longer than a reference may. Nothing is run on target
// null.
std::optional<TaskSample> SampleOf(const CheckedTask& task, const v1::TuneOptions& options) {
  const bool null = task.target.kind == target::TargetKind::kNull;
  if (null || PlainSecondsOf(task) <= options.reference_limit_s()) return std::nullopt;
  auto sample = MakeTaskSample(*task.dag, options.seed());
  // Then they are waited for.
  if (!sample.ok()) LogWarn("no sample of the outputs: {}", Message(sample.status()));
  return sample.ok() ? std::optional(*std::move(sample)) : std::nullopt;
}

std::string DescriptionOf(const CheckedJob& job, size_t task) {
  const v1::TaskSpec& spec = job.spec.tasks(static_cast<int>(task));
  const std::string& name = spec.description();
  if (name.empty()) return fmt::format("task {}", task);
  return spec.has_alternative_of() ? fmt::format("{} ({})", name, spec.form()) : name;
}

std::string MostCommonError(const store::TrialCounts& counts) {
  const auto most = std::max_element(counts.by_error.begin() + 1, counts.by_error.end());
  return v1::ErrorKind_Name(
      static_cast<v1::ErrorKind>(static_cast<int>(most - counts.by_error.begin())));
}

}  // namespace

// The device of this run.
struct JobRun::Device {
  LeasedWorker lease;
  std::vector<search::Task> tasks;
  device::KnownCalibration calibration;
};

// What earlier runs learned.
struct JobRun::Knowledge {
  std::vector<std::unique_ptr<search::Policy>> policies;
  std::vector<search::TuneTask> tasks;
  std::vector<double> best_cost_s;  // of each task; 0: none
  std::vector<std::vector<Leader>> leaders;
  std::vector<std::optional<TaskSample>>
      samples;  // of each task whose reference would take too long
  search::TuneOptions options;
};

JobRun::JobRun(const RunContext& context, store::JobRow job)
    : context_(context),
      job_(std::move(job)),
      started_ms_(StartOf(job_)),
      ending_(job_.progress.ending),
      store_(*context_.store, "job " + job_.id, stop_.get_token(), context_.store_pause) {}

JobRun::~JobRun() = default;

void JobRun::Stop() {
  stopped_ = true;
  stop_.request_stop();
  std::lock_guard lock(mutex_);
  if (dispatcher_ != nullptr) dispatcher_->Stop();
}

LiveStatus JobRun::live() const {
  std::lock_guard lock(mutex_);
  LiveStatus live;
  live.database_problem = store_.problem();
  live.device = device_;
  live.phase = phase_;
  live.next_task = next_task_;
  live.known = known_;
  if (leasing_device_) {
    live.waiting_for_workers = true;
    live.obstacle = problem_.empty() ? first_.why_waiting() : problem_;
  } else if (dispatcher_ != nullptr) {
    const Dispatcher::Waiting waiting = dispatcher_->waiting();
    live.waiting_for_workers = waiting.for_builder || waiting.for_runner;
    live.busy = dispatcher_->busy();
    live.notices = dispatcher_->notices();
    if (!device_notice_.empty()) live.notices.insert(live.notices.begin(), device_notice_);
    live.obstacle = waiting.problem;
    if (live.obstacle.empty() && waiting.for_runner) live.obstacle = runners_.why_waiting();
    if (live.obstacle.empty() && waiting.for_builder) live.obstacle = builders_.why_waiting();
  }
  return live;
}

StatusOr<std::string> JobRun::Run() {
  v1::JobSpec spec;
  KILN_ASSIGN_OR_RETURN(const store::JobRow row, store_.GetJob(job_.id));
  if (!spec.ParseFromString(row.spec)) {
    return DataLoss("the spec of job {} in the database is damaged", job_.id);
  }
  KILN_ASSIGN_OR_RETURN(const CheckedJob job, CheckJobSpec(std::move(spec), stop_.get_token()));
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store_.CountTrials(job_.id));
  // A run that died between its last record and its end.
  if (ending_ == store::JobEnding::kNone && counts.total >= job.spec.options().trials()) {
    ending_ = store::JobEnding::kTrialsUsedUp;
    KILN_RETURN_IF_ERROR(store_.SetProgress(job_.id, {ending_, job_.progress.active_s}));
  }
  // A job that calibrates needs its device to the end.
  if (ending_ != store::JobEnding::kNone && !job.spec.options().calibrate()) {
    KILN_ASSIGN_OR_RETURN(const bool finalists, HasFinalists(job));
    if (!finalists) return Remark(job);
  }
  KILN_ASSIGN_OR_RETURN(Device device, LeaseDevice(job));
  auto result = Tune(job, std::move(device));
  if (!result.ok() && stopped_) return Cancelled("stopped");
  return result;
}

// ---- the device -----------------------------------------------------------------------------

LeaseWish JobRun::Wish(v1::WorkerKind kind, std::string key) const {
  LeaseWish wish;
  wish.kind = kind;
  wish.key = std::move(key);
  wish.job_id = job_.id;
  wish.user = job_.user;
  wish.priority = job_.priority;
  wish.max_leases =
      kind == v1::BUILDER ? context_.dispatch.max_builders : context_.dispatch.max_runners;
  return wish;
}

void JobRun::SetProblem(std::string problem) {
  std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

StatusOr<JobRun::Device> JobRun::LeaseDevice(const CheckedJob& job) {
  const std::string& device = job.spec.device();
  const std::string kind(target::TargetKindName(job.tasks[0].target.kind));
  LeaseWish wish = Wish(v1::RUNNER, device.empty() ? kind : device);
  wish.max_leases = 1;
  {
    std::lock_guard lock(mutex_);
    first_ = context_.leases(wish);
    leasing_device_ = true;
  }
  std::vector<std::string> avoid;
  while (true) {
    const absl::Duration patience =
        avoid.empty() ? absl::InfiniteDuration() : absl::FromChrono(kPauseOnBadDevice);
    auto lease = first_.source->Acquire(patience, stop_.get_token(), avoid);
    if (stopped_) return Cancelled("stopped");
    if (lease.status().code() == StatusCode::kDeadlineExceeded) {
      avoid.clear();  // there is no other
      continue;
    }
    if (!lease.ok()) {
      SetProblem(std::string(Message(lease.status())));
      SleepFor(kAskAgain, stop_.get_token());
      continue;
    }
    auto tasks = TasksOnDevice(job, lease->worker());
    if (!tasks.ok()) {
      LogWarn("job {}: {}", job_.id, Message(tasks.status()));
      SetProblem(std::string(Message(tasks.status())));
      avoid.push_back(lease->worker().id());
      continue;
    }
    for (search::Task& task : *tasks) task.stop = stop_.get_token();
    const device::DeviceModel& model = tasks->front().device;
    KILN_ASSIGN_OR_RETURN(const device::KnownCalibration calibration,
                          FindCalibration(store_, model));
    std::lock_guard lock(mutex_);
    // Of a CPU all rows are derived until somebody measures.
    if (model.is_gpu() || calibration.source == device::CalibrationSource::kMeasured)
      device_notice_ = DescribeCalibration(model, calibration);
    leasing_device_ = false;
    problem_.clear();
    device_ = lease->worker().device();
    return Device{*std::move(lease), *std::move(tasks), calibration};
  }
}

// ---- the search -----------------------------------------------------------------------------

Status JobRun::Learn(const CheckedJob& job, const Device& device, Knowledge& knowledge) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records, store_.RecordsOfJob(job_.id, 0));
  const v1::TuneOptions& options = job.spec.options();
  const size_t num_tasks = device.tasks.size();
  knowledge.tasks.resize(num_tasks);
  knowledge.best_cost_s.resize(num_tasks);
  knowledge.leaders.resize(num_tasks);
  std::vector<std::vector<search::Observation>> observations(num_tasks);
  uint32_t next = 0;  // records come by trial
  int unreadable = 0;
  for (const store::Record& record : records) {
    while (next < record.trial) knowledge.options.missing.push_back(next++);
    next = record.trial + 1;
    if (record.task_index >= num_tasks) continue;
    // Of another device: its costs say nothing here, and its candidates may be tried again.
    if (record.target != target::PrintTarget(device.tasks[record.task_index].target)) continue;
    auto steps = schedule::ParseSteps(record.steps);
    if (!steps.ok()) {
      if (++unreadable == 1) {
        LogWarn(
            "job {}: the steps of trial {} do not parse and are left out, as are others like "
            "it: {}",
            job_.id, record.trial, Message(steps.status()));
      }
      continue;
    }
    search::Observation o;
    o.candidate.hash = schedule::HashSteps(*steps);
    o.candidate.steps = *std::move(steps);
    o.valid = record.error == store::kNoError;
    o.cost_s = o.valid ? store::Cost(record) : 0;
    o.trial = record.trial;
    knowledge.tasks[record.task_index].earlier_costs_s.push_back(o.cost_s);
    double& best_cost_s = knowledge.best_cost_s[record.task_index];
    if (o.valid && !record.stopped_early && (best_cost_s == 0 || o.cost_s < best_cost_s)) {
      best_cost_s = o.cost_s;
    }
    if (o.valid && !record.stopped_early) {
      knowledge.leaders[record.task_index].push_back({.task = static_cast<int>(record.task_index),
                                                      .trial = record.trial,
                                                      .record_id = record.id,
                                                      .hash = o.candidate.hash,
                                                      .cost_s = store::MeanCost(record),
                                                      .known = KnownOf(record)});
    }
    observations[record.task_index].push_back(std::move(o));
  }
  const std::map<std::string, double> parameters(options.policy_parameters().begin(),
                                                 options.policy_parameters().end());
  // One model learns from all tasks.
  KILN_ASSIGN_OR_RETURN(const search::Models models,
                        search::MakeModels(options.policy(), options.seed(), device.calibration.row,
                                           stop_.get_token()));
  KILN_ASSIGN_OR_RETURN(const Start start, WarmStart(job, device, models));
  // Many tasks teach it about each other.
  const bool knows_others = start.knows_others || num_tasks >= kTasksThatTeach;
  for (size_t i = 0; i < num_tasks; ++i) {
    const TaskExperience& known = start.of_tasks[i];
    // Another seed for each run: the same one would draw what has been drawn, and take that for the
    // end of the space.
    const uint64_t seed =
        SplitSeed(SplitSeed(options.seed(), i),
                  records.size() + known.observations.size() + known.avoid.size());
    KILN_ASSIGN_OR_RETURN(auto policy,
                          search::MakePolicy(options.policy(), device.tasks[i], seed,
                                             {.parameters = parameters,
                                              .models = models,
                                              .min_own_results = knows_others ? 0 : kOwnResults}));
    // What takes too long as a reference takes too long as a candidate.
    knowledge.samples.push_back(SampleOf(job.tasks[i], options));
    if (!knowledge.samples[i].has_value()) {
      policy = std::make_unique<search::UnscheduledFirst>(device.tasks[i], std::move(policy));
    }
    policy->Avoid(known.avoid);
    policy->Observe(known.observations);
    policy->Observe(observations[i]);
    double& best_cost_s = knowledge.best_cost_s[i];
    if (known.best_cost_s > 0 && (best_cost_s == 0 || known.best_cost_s < best_cost_s)) {
      best_cost_s = known.best_cost_s;
    }
    search::TuneTask& task = knowledge.tasks[i];
    task.policy = policy.get();
    const v1::TaskSpec& spec = job.spec.tasks(static_cast<int>(i));
    task.facts.weight = spec.weight();
    if (spec.has_alternative_of()) {
      task.facts.alternative_of = static_cast<int>(spec.alternative_of());
    }
    task.facts.flop_count = job.tasks[i].flop_count;
    task.facts.similarity_tag = TagOf(*job.tasks[i].dag);
    knowledge.policies.push_back(std::move(policy));
  }
  knowledge.options.trials = options.trials();
  knowledge.options.first_trial = next;
  knowledge.options.schedule = ScheduleOf(job.spec);
  knowledge.options.lock_step = options.lock_step();
  knowledge.options.turns = context_.dispatch.turns;
  knowledge.options.on_proposed = [this](const search::ProposedRound& round) {
    std::lock_guard lock(mutex_);
    next_task_ = static_cast<uint32_t>(round.task) + 1;
  };
  knowledge.options.on_measured = [this](const search::MeasuredRound& round) {
    return KeepRound(round);
  };
  if (!records.empty()) {
    LogInfo("job {} goes on after {} of {} trials", job_.id, records.size(), options.trials());
  }
  return OkStatus();
}

StatusOr<JobRun::Start> JobRun::WarmStart(const CheckedJob& job, const Device& device,
                                          const search::Models& models) {
  // Without a model nothing is made of it, and chance alone should decide.
  if (job.spec.options().no_warm_start() || models.draft == nullptr) {
    return Start{.of_tasks = std::vector<TaskExperience>(device.tasks.size())};
  }
  const double start_s = Clock::Real().MonotonicSeconds();
  ThreadPool pool(0);
  ExperienceOptions options;
  options.stop = stop_.get_token();
  if (models.learned == nullptr) options.samples = 0;
  KILN_ASSIGN_OR_RETURN(Experience experience,
                        GatherExperience(store_, job_.id, device.tasks,
                                         device.lease.worker().device(), pool, options));
  const bool knows_others = TeachesOthers(experience);
  const size_t samples = experience.of_others.size();
  if (samples > 0) {
    const Status trained = models.learned->Update(std::move(experience.of_others));
    if (stopped_) return Cancelled("stopped");
    // Then it learns from this job alone.
    if (!trained.ok()) LogWarn("job {}: no warm start: {}", job_.id, Message(trained));
  }
  std::vector<LiveStatus::Known> all_known;
  size_t states = 0;
  for (const TaskExperience& task : experience.of_tasks) {
    const size_t known = task.observations.size() + task.avoid.size();
    states += known;
    all_known.push_back({static_cast<uint32_t>(known), task.best_record_id, task.best_cost_s});
  }
  {
    std::lock_guard lock(mutex_);
    known_ = std::move(all_known);
  }
  if (states + samples > 0) {
    LogInfo("job {}: knows {} states of earlier jobs, model begins with {} samples; took {:.2f} s",
            job_.id, states, samples, Clock::Real().MonotonicSeconds() - start_s);
  }
  context_.changed(job_.id);
  return Start{std::move(experience.of_tasks), knows_others};
}

JobRun::Deadlines JobRun::DeadlinesOf(const CheckedJob& job) const {
  const v1::TuneOptions& options = job.spec.options();
  if (options.time_budget_s() <= 0) return {};
  const double finals_s = active_since_s_ + options.time_budget_s() - job_.progress.active_s;
  return {finals_s - FinalsTime(job.spec), finals_s};
}

Status JobRun::KeepProgress() {
  const double active_s =
      job_.progress.active_s + Clock::Real().MonotonicSeconds() - active_since_s_;
  return store_.SetProgress(job_.id, {ending_, active_s});
}

Status JobRun::Search(const CheckedJob& job, Knowledge& knowledge, Dispatcher& dispatcher) {
  if (ending_ != store::JobEnding::kNone) return OkStatus();
  knowledge.options.until_s = DeadlinesOf(job).search_s;
  KILN_ASSIGN_OR_RETURN(const search::Ending ending,
                        search::Tune(knowledge.tasks, knowledge.options, dispatcher, stopped_));
  ending_ = StoredEnding(ending);
  return KeepProgress();
}

StatusOr<std::string> JobRun::Tune(const CheckedJob& job, Device device) {
  active_since_s_ = Clock::Real().MonotonicSeconds();
  Knowledge knowledge;
  KILN_RETURN_IF_ERROR(Learn(job, device, knowledge));
  KILN_ASSIGN_OR_RETURN(const auto rows, store_.TasksOfJob(job_.id));

  const v1::WorkerState worker = device.lease.worker();
  Dispatcher::Job dispatch;
  dispatch.id = job_.id;
  dispatch.options = job.spec.options();
  dispatch.runner_target = worker.target();
  dispatch.on_cpu = job.tasks[0].target.kind == target::TargetKind::kLlvm;
  for (size_t i = 0; i < device.tasks.size(); ++i) {
    const search::Task& task = device.tasks[i];
    dispatch.tasks.push_back({.workload_id = job.tasks[i].workload_id,
                              .workload_key = job.tasks[i].workload_key,
                              .dag = job.spec.tasks(static_cast<int>(i)).dag(),
                              .target = target::PrintTarget(task.target),
                              .hardware = HardwareRowOf(task.hardware),
                              .flop_count = job.tasks[i].flop_count,
                              .best_cost_s = knowledge.best_cost_s[i],
                              .reference_cost_s = i < rows.size() ? rows[i].reference_cost_s : 0,
                              .description = DescriptionOf(job, i),
                              .plain_s = PlainSecondsOf(job.tasks[i]),
                              .sample = std::move(knowledge.samples[i]),
                              .work = WorkOf(job, static_cast<int>(i)),
                              .trials = static_cast<int>(knowledge.tasks[i].earlier_costs_s.size()),
                              .leaders = std::move(knowledge.leaders[i])});
  }

  // From now on devices like this one.
  const std::string general(target::TargetKindName(job.tasks[0].target.kind));
  const std::string& asked = job.spec.device();
  const std::string model = asked.empty() ? ModelKey(worker) : asked;
  {
    std::lock_guard lock(mutex_);
    builders_ = context_.leases(Wish(v1::BUILDER, general));
    runners_ = context_.leases(Wish(v1::RUNNER, model.empty() ? general : model));
  }
  Dispatcher dispatcher(std::move(dispatch), context_.dispatch, *builders_.source, *runners_.source,
                        std::move(device.lease), store_, [this] {
                          has_result_ = true;
                          context_.changed(job_.id);
                        });
  {
    std::lock_guard lock(mutex_);
    dispatcher_ = &dispatcher;
  }
  if (stopped_) dispatcher.Stop();
  Status tuned = Search(job, knowledge, dispatcher);
  if (tuned.ok()) tuned = dispatcher.EndIdleReadings();
  if (tuned.ok()) tuned = MeasureFinalists(job, dispatcher);
  {
    std::lock_guard lock(mutex_);
    dispatcher_ = nullptr;
  }
  if (stopped_) {
    const Status kept = KeepProgress();  // the next run has what is left of the time
    if (!kept.ok()) LogWarn("job {}: {}", job_.id, Message(kept));
  }
  KILN_RETURN_IF_ERROR(tuned);
  if (job.spec.options().calibrate()) {
    SetPhase("fitting the constants of the device");
    return Calibrate(store_, job_.id, device.tasks, NowMs() / 1000, stop_.get_token());
  }
  return Remark(job);
}

Status JobRun::KeepRound(const search::MeasuredRound& round) {
  store::RoundRow row;
  row.job_id = job_.id;
  row.task_index = static_cast<uint32_t>(round.task);
  row.elapsed_s = 1e-3 * static_cast<double>(NowMs() - started_ms_);
  row.trials = round.trials;
  for (int i = 0; i < round.tasks.num_tasks(); ++i) {
    const double best_s = round.tasks.latency_s(i);
    row.best_s.push_back(best_s < search::TaskScheduler::kNoResult_s ? best_s : 0);
  }
  if (const auto score_s = round.tasks.Score()) row.total_latency_s = *score_s;
  row.search_s = round.search_s;
  row.report = search::PrintRound(round.report);
  KILN_RETURN_IF_ERROR(store_.AddRound(row).status());
  KILN_RETURN_IF_ERROR(KeepProgress());
  context_.changed(job_.id);
  return OkStatus();
}

// ---- the finals -----------------------------------------------------------------------------

void JobRun::SetPhase(std::string phase) {
  {
    std::lock_guard lock(mutex_);
    phase_ = std::move(phase);
  }
  context_.changed(job_.id);
}

// The best cost of the task and its alternatives.
StatusOr<double> JobRun::BestOfWork(const CheckedJob& job, uint32_t task) {
  double best_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < job.spec.tasks_size(); ++i) {
    if (WorkOf(job, i) != WorkOf(job, static_cast<int>(task))) continue;
    KILN_ASSIGN_OR_RETURN(const auto best, store_.BestOfJob(job_.id, static_cast<uint32_t>(i)));
    if (best.has_value()) best_s = std::min(best_s, store::Cost(*best));
  }
  return best_s;
}

StatusOr<Finalists> JobRun::FinalistsOf(const CheckedJob& job, uint32_t task,
                                        std::set<int64_t>& raced) {
  Finalists finalists;
  finalists.task = static_cast<int>(task);
  const int asked = job.spec.options().finalists();
  if (asked <= 0) return finalists;
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records, store_.RecordsOfJob(job_.id, 0));
  KILN_ASSIGN_OR_RETURN(const auto best, store_.BestOfJob(job_.id, task));
  if (!best.has_value()) return finalists;
  KILN_ASSIGN_OR_RETURN(const double fastest_s, BestOfWork(job, task));
  // An alternative that is so much slower than the fastest one will not be used.
  if (store::Cost(*best) > search::kWorthALook * fastest_s) return finalists;
  std::vector<const store::Record*> able;
  std::vector<double> costs_s;
  int trials = 0;
  const store::Record* winner = nullptr;
  for (const store::Record& record : records) {
    if (record.task_index != task || record.target != best->target) continue;
    ++trials;
    if (record.error != store::kNoError || record.stopped_early) continue;
    able.push_back(&record);
    costs_s.push_back(store::Cost(record));
    if (!raced.contains(record.id)) continue;
    if (winner == nullptr || store::BetterThan(record, *winner)) winner = &record;
  }
  // After a race its winner, and those that a lucky reading puts before it.
  for (size_t i = 0; winner != nullptr && i < able.size(); ++i) {
    const bool before = !raced.contains(able[i]->id) && costs_s[i] < store::Cost(*winner);
    if (able[i] != winner && !before) costs_s[i] = 0;
  }
  const int most = search::MostFinalists(asked, trials) + (winner != nullptr ? 1 : 0);
  std::vector<int> chosen = search::ChooseFinalists(costs_s, most);
  AddUnscheduled(able, costs_s, chosen);
  for (const int i : chosen) {
    finalists.entries.push_back(
        {able[i]->id, able[i]->steps, KnownOf(*able[i]), store::MeanCost(*able[i])});
  }
  const bool rivals = winner == nullptr || finalists.entries.size() > 1;
  for (const Finalist& entry : finalists.entries) raced.insert(entry.record_id);
  if (!rivals || !IsOpen(finalists.entries)) finalists.entries.clear();
  return finalists;
}

StatusOr<bool> JobRun::HasFinalists(const CheckedJob& job) {
  for (int i = 0; i < job.spec.tasks_size(); ++i) {
    std::set<int64_t> raced;
    KILN_ASSIGN_OR_RETURN(const Finalists finalists,
                          FinalistsOf(job, static_cast<uint32_t>(i), raced));
    if (!finalists.entries.empty()) return true;
  }
  return false;
}

Status JobRun::MeasureFinalists(const CheckedJob& job, Dispatcher& dispatcher) {
  std::set<int64_t> raced;
  // The second time for those that the first has put before its winner.
  for (int pass = 0; pass < kFinalPasses; ++pass) {
    std::vector<Finalists> lists;
    size_t candidates = 0;
    for (int i = 0; i < job.spec.tasks_size(); ++i) {
      KILN_ASSIGN_OR_RETURN(Finalists finalists, FinalistsOf(job, static_cast<uint32_t>(i), raced));
      candidates += finalists.entries.size();
      if (!finalists.entries.empty()) lists.push_back(std::move(finalists));
    }
    if (lists.empty()) continue;
    SetPhase(fmt::format("measuring the {} best candidates again", candidates));
    KILN_RETURN_IF_ERROR(dispatcher.MeasureAgain(std::move(lists), DeadlinesOf(job).finals_s));
  }
  SetPhase("");
  return OkStatus();
}

StatusOr<std::string> JobRun::Remark(const CheckedJob& job) {
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store_.CountTrials(job_.id));
  if (counts.total > 0 && counts.by_error[store::kNoError] == 0) {
    return FailedPrecondition("none of the {} trials gave a correct program; most common: {}",
                              counts.total, MostCommonError(counts));
  }
  const v1::TuneOptions& options = job.spec.options();
  if (ending_ == store::JobEnding::kTrialsUsedUp) return std::string();
  return fmt::format("{} of {} trials: {}", counts.total, options.trials(),
                     WhyItEnded(ending_, options));
}

}  // namespace kiln::scheduler
