#include "scheduler/job_run.h"

#include <algorithm>
#include <condition_variable>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/rng.h"
#include "compiler/schedule/step.h"
#include "scheduler/device_tasks.h"
#include "search/policy.h"
#include "search/tune.h"

namespace kiln::scheduler {
namespace {

// A device that can't be used is kept so long, so that the next lease is of another one.
constexpr std::chrono::seconds kPauseOnBadDevice{5};
constexpr std::chrono::milliseconds kAskAgain{500};

void SleepFor(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
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
};

// What earlier runs learned.
struct JobRun::Knowledge {
  std::vector<std::unique_ptr<search::Policy>> policies;
  std::vector<search::TaskProgress> progress;
  search::TuneOptions options;
};

JobRun::JobRun(const RunContext& context, store::JobRow job)
    : context_(context), job_(std::move(job)) {}

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
  live.device = device_;
  if (leasing_device_) {
    live.waiting_for_workers = true;
    live.obstacle = problem_.empty() ? first_.why_waiting() : problem_;
  } else if (dispatcher_ != nullptr) {
    const Dispatcher::Waiting waiting = dispatcher_->waiting();
    live.waiting_for_workers = waiting.for_builder || waiting.for_runner;
    live.obstacle = waiting.problem;
    if (live.obstacle.empty() && waiting.for_runner) live.obstacle = runners_.why_waiting();
    if (live.obstacle.empty() && waiting.for_builder) live.obstacle = builders_.why_waiting();
  }
  return live;
}

StatusOr<std::string> JobRun::Run() {
  v1::JobSpec spec;
  if (!spec.ParseFromString(job_.spec)) {
    return DataLoss("the spec of job {} in the database is damaged", job_.id);
  }
  KILN_ASSIGN_OR_RETURN(const CheckedJob job, CheckJobSpec(std::move(spec)));
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, context_.store->CountTrials(job_.id));
  // A run that died between its last record and its end.
  if (counts.total >= job.spec.options().trials()) return Remark(job);
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
  LeaseWish wish = Wish(v1::RUNNER, std::string(target::TargetKindName(job.tasks[0].target.kind)));
  wish.max_leases = 1;
  {
    std::lock_guard lock(mutex_);
    first_ = context_.leases(wish);
    leasing_device_ = true;
  }
  while (true) {
    auto lease = first_.source->Acquire(absl::InfiniteDuration(), stop_.get_token());
    if (stopped_) return Cancelled("stopped");
    if (!lease.ok()) {
      SetProblem(std::string(Message(lease.status())));
      SleepFor(kAskAgain, stop_.get_token());
      continue;
    }
    auto tasks = TasksOnDevice(job, lease->worker());
    if (!tasks.ok()) {
      LogWarn("job {}: {}", job_.id, Message(tasks.status()));
      SetProblem(std::string(Message(tasks.status())));
      // The lease is kept meanwhile, so that another device may come next.
      SleepFor(kPauseOnBadDevice, stop_.get_token());
      continue;
    }
    std::lock_guard lock(mutex_);
    leasing_device_ = false;
    problem_.clear();
    device_ = lease->worker().device();
    return Device{*std::move(lease), *std::move(tasks)};
  }
}

// ---- the search -----------------------------------------------------------------------------

Status JobRun::Learn(const CheckedJob& job, const Device& device, Knowledge& knowledge) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                        context_.store->RecordsOfJob(job_.id, 0));
  const v1::TuneOptions& options = job.spec.options();
  const size_t num_tasks = device.tasks.size();
  knowledge.progress.resize(num_tasks);
  std::vector<std::vector<search::Observation>> observations(num_tasks);
  uint32_t next = 0;  // records come by trial
  for (const store::Record& record : records) {
    while (next < record.trial) knowledge.options.missing.push_back(next++);
    next = record.trial + 1;
    if (record.task_index >= num_tasks) continue;
    search::TaskProgress& progress = knowledge.progress[record.task_index];
    ++progress.trials;
    // Of another device: its costs say nothing here, and its candidates may be tried again.
    if (record.target != target::PrintTarget(device.tasks[record.task_index].target)) continue;
    auto steps = schedule::ParseSteps(record.steps);
    if (!steps.ok()) {
      LogWarn("job {}: the steps of trial {} do not parse: {}", job_.id, record.trial,
              Message(steps.status()));
      continue;
    }
    search::Observation o;
    o.candidate.hash = schedule::HashSteps(*steps);
    o.candidate.steps = *std::move(steps);
    o.valid = record.error == store::kNoError;
    o.cost_s = o.valid ? store::MeanCost(record) : 0;
    if (o.valid && !record.stopped_early &&
        (progress.best_cost_s == 0 || o.cost_s < progress.best_cost_s)) {
      progress.best_cost_s = o.cost_s;
      progress.best_trial = progress.trials;
    }
    observations[record.task_index].push_back(std::move(o));
  }
  for (size_t i = 0; i < num_tasks; ++i) {
    // Another seed for each run: the same one would draw what has been drawn, and take that for the
    // end of the space.
    const uint64_t seed = SplitSeed(SplitSeed(options.seed(), i), records.size());
    KILN_ASSIGN_OR_RETURN(auto policy, search::MakePolicy(options.policy(), device.tasks[i], seed));
    policy->Observe(observations[i]);
    knowledge.progress[i].policy = policy.get();
    knowledge.progress[i].weight = job.spec.tasks(static_cast<int>(i)).weight();
    knowledge.policies.push_back(std::move(policy));
  }
  knowledge.options.trials = options.trials();
  knowledge.options.first_trial = next;
  knowledge.options.early_stopping = options.early_stopping();
  knowledge.options.proposals_per_call = options.trials_per_round();
  if (!records.empty()) {
    LogInfo("job {} goes on after {} of {} trials", job_.id, records.size(), options.trials());
  }
  return OkStatus();
}

StatusOr<std::string> JobRun::Tune(const CheckedJob& job, Device device) {
  Knowledge knowledge;
  KILN_RETURN_IF_ERROR(Learn(job, device, knowledge));
  KILN_ASSIGN_OR_RETURN(const auto rows, context_.store->TasksOfJob(job_.id));

  const v1::WorkerState worker = device.lease.worker();
  Dispatcher::Job dispatch;
  dispatch.id = job_.id;
  dispatch.options = job.spec.options();
  dispatch.runner_target = worker.target();
  for (size_t i = 0; i < device.tasks.size(); ++i) {
    const search::Task& task = device.tasks[i];
    const target::HardwareParams& h = task.hardware;
    dispatch.tasks.push_back(
        {.workload_key = task.workload_key,
         .dag = job.spec.tasks(static_cast<int>(i)).dag(),
         .target = target::PrintTarget(task.target),
         .hardware = {h.num_cores, h.vector_unit_bytes, h.cache_line_bytes,
                      h.max_shared_memory_per_block_bytes, h.max_local_memory_per_block_bytes,
                      h.max_threads_per_block, h.max_vthread_extent, h.warp_size},
         .flop_count = job.tasks[i].flop_count,
         .best_cost_s = knowledge.progress[i].best_cost_s,
         .reference_cost_s = i < rows.size() ? rows[i].reference_cost_s : 0});
  }

  // Keys go from general to exact: from now on devices like this one.
  const std::string general(target::TargetKindName(job.tasks[0].target.kind));
  const std::string exact = worker.keys().empty() ? general : worker.keys(worker.keys_size() - 1);
  {
    std::lock_guard lock(mutex_);
    builders_ = context_.leases(Wish(v1::BUILDER, general));
    runners_ = context_.leases(Wish(v1::RUNNER, exact));
  }
  Dispatcher dispatcher(std::move(dispatch), context_.dispatch, *builders_.source, *runners_.source,
                        std::move(device.lease), *context_.store,
                        [this] { context_.changed(job_.id); });
  {
    std::lock_guard lock(mutex_);
    dispatcher_ = &dispatcher;
  }
  if (stopped_) dispatcher.Stop();
  const Status tuned = search::Tune(knowledge.progress, knowledge.options, dispatcher, stopped_);
  {
    std::lock_guard lock(mutex_);
    dispatcher_ = nullptr;
  }
  KILN_RETURN_IF_ERROR(tuned);
  return Remark(job);
}

StatusOr<std::string> JobRun::Remark(const CheckedJob& job) {
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, context_.store->CountTrials(job_.id));
  if (counts.total > 0 && counts.by_error[store::kNoError] == 0) {
    return FailedPrecondition("none of the {} trials gave a correct program; most common: {}",
                              counts.total, MostCommonError(counts));
  }
  const uint32_t asked = job.spec.options().trials();
  if (counts.total >= asked) return std::string();
  return fmt::format("{} of {} trials: {}", counts.total, asked,
                     job.spec.options().early_stopping() > 0
                         ? "stopped for want of improvement, or no candidates are left"
                         : "no candidates are left");
}

}  // namespace kiln::scheduler
