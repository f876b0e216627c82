#include "scheduler/dispatch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "proto/hardware_message.h"
#include "scheduler/dispatch_core.h"
#include "scheduler/either_stop.h"
#include "scheduler/messages.h"

namespace kiln::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kDefaultBuildTimeoutMs = 15'000;  // the builder's own
constexpr uint32_t kDefaultRunTimeoutMs = 10'000;    // the runner's own
// A reference that fails so often, without one success, ends the job.
constexpr int kReferenceFailures = 3;
// Readings of leaders are of programs of which one may take such a part of the idle time.
constexpr double kPartOfIdleTime = 0.2;

std::string Describe(const LeasedWorker& lease) {
  return fmt::format("{} at {}", lease.worker().id(), lease.worker().address());
}

// A builder that says so would say it again, and so would the others.
bool IsRefusal(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kFailedPrecondition ||
         status.code() == StatusCode::kPermissionDenied;
}

// The worker had no time for it: nobody's failure.
bool IsBusy(const Status& status) { return status.code() == StatusCode::kResourceExhausted; }

LeaderBoard::Options LeadersOf(const v1::TuneOptions& options) {
  LeaderBoard::Options leaders;
  leaders.finalists = std::max(0, options.finalists());
  leaders.slowest_s = kPartOfIdleTime * 1e-3 * options.measure().idle_ms();
  return leaders;
}

std::vector<int> WorksOf(const std::vector<DispatchTask>& tasks) {
  std::vector<int> works;
  for (const DispatchTask& task : tasks) works.push_back(task.work);
  return works;
}

}  // namespace

std::string NameOf(const TrialItem& item) {
  if (item.race != nullptr) return fmt::format("the finalists of task {}", item.task);
  return item.reference ? fmt::format("the unscheduled program of task {}", item.task)
                        : fmt::format("trial {}", item.trial.number);
}

// ---- life -----------------------------------------------------------------------------------

Dispatcher::Core::Core(Job job, const DispatchOptions& options, LeaseSource& builders,
                       LeaseSource& runners, LeasedWorker first_runner, store::Store& store,
                       std::function<void()> committed)
    : job_(std::move(job)),
      options_(options),
      store_(store),
      committed_(std::move(committed)),
      calls_(options.secret),
      tasks_(job_.tasks.size()),
      leaders_(LeadersOf(job_.options), WorksOf(job_.tasks)),
      builders_(PoolOptions("builder", options.max_builders), builders,
                [this](WorkItemPtr item, const LeasedWorker& lease, std::stop_token stop) {
                  const Turns::Hold turn = TakeTurn(Turns::Kind::kWork, stop);
                  return Build(AsTrial(std::move(item)), lease, std::move(stop));
                }),
      runners_(
          RunnerOptions(), runners,
          [this](WorkItemPtr item, const LeasedWorker& lease, std::stop_token stop) {
            const Turns::Hold turn = TakeTurn(Turns::Kind::kMeasurement, stop);
            return Measure(AsTrial(std::move(item)), lease, std::move(stop));
          },
          [this](const v1::WorkerState& worker) -> std::string {
            if (job_.runner_target.empty() || worker.target() == job_.runner_target) return "";
            return fmt::format("its target is '{}', the job runs on '{}'", worker.target(),
                               job_.runner_target);
          },
          std::move(first_runner),
          [this](const LeasedWorker& lease, std::stop_token stop) {
            const Turns::Hold turn = TakeTurn(Turns::Kind::kMeasurement, stop);
            return ReadLeader(lease, std::move(stop));
          }) {
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i].facts = job_.tasks[i];
      if (tasks_[i].facts.sample.has_value()) tasks_[i].notice = NoticeOf(job_.tasks[i], false);
      leaders_.CountTrials(static_cast<int>(i), job_.tasks[i].trials);
      for (const Leader& leader : job_.tasks[i].leaders) leaders_.Add(leader);
    }
    idle_readings_ = job_.options.measure().idle_ms() > 0 && !job_.options.lock_step();
  }
  committer_ = std::thread([this] { CommitLoop(); });
}

Dispatcher::Core::~Core() {
  Stop();
  builders_.Join();
  runners_.Join();
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  committer_.join();
}

Turns::Hold Dispatcher::Core::TakeTurn(Turns::Kind kind, std::stop_token stop) {
  const bool takes_turns = kind == Turns::Kind::kWork || job_.on_cpu;
  if (options_.turns == nullptr || !takes_turns) return {};
  return options_.turns->Enter(kind, std::move(stop));
}

WorkerPool::Options Dispatcher::Core::PoolOptions(std::string name, int lanes) const {
  return {.name = std::move(name),
          .lanes = lanes,
          .idle_release = options_.idle_release,
          .first_backoff = options_.first_backoff,
          .longest_backoff = options_.longest_backoff};
}

// A runner that uses idle time must have the next trial to know that it is not idle.
WorkerPool::Options Dispatcher::Core::RunnerOptions() const {
  WorkerPool::Options options = PoolOptions("runner", options_.max_runners);
  options.ahead = job_.options.measure().idle_ms() > 0;
  return options;
}

void Dispatcher::Core::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  builders_.Stop();
  runners_.Stop();
}

void Dispatcher::Core::Fail(Status status) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(status);
  changed_.notify_all();
}

Dispatcher::Waiting Dispatcher::Core::waiting() const {
  Waiting result;
  const auto builder = builders_.Obstacle();
  const auto runner = runners_.Obstacle();
  result.for_builder = builder.has_value();
  result.for_runner = runner.has_value();
  result.problem = runner.value_or(builder.value_or(""));
  if (result.problem.empty()) result.problem = builder.value_or("");
  return result;
}

// ---- in and out -----------------------------------------------------------------------------

void Dispatcher::Core::Submit(search::Trial trial) {
  const int task = trial.task;
  auto item = std::make_unique<TrialItem>();
  item->task = task;
  item->steps = schedule::PrintSteps(trial.candidate.steps);
  {
    std::lock_guard lock(mutex_);
    item->serial = ++serials_;
    in_hand_[item->serial] = {task, trial.number, item->abandoned};
  }
  item->trial = std::move(trial);
  RequestReference(task);
  builders_.Push(std::move(item));
}

void Dispatcher::Core::RequestReference(int task) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(tasks_[task].reference_requested, true)) return;
  }
  BuildReference(task);
}

void Dispatcher::Core::BuildReference(int task) {
  auto reference = std::make_unique<TrialItem>();
  reference->reference = true;
  reference->task = task;
  reference->steps = "[]";
  builders_.PushFirst(std::move(reference));
}

std::vector<uint32_t> Dispatcher::Core::Abandon(int task) {
  std::vector<uint32_t> numbers;
  std::vector<std::stop_source> calls;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(in_hand_, [&](const auto& entry) {
      if (entry.second.task != task) return false;
      numbers.push_back(entry.second.number);
      calls.push_back(entry.second.abandoned);
      return true;
    });
    std::erase_if(measured_, [&](const Measured& measured) {
      if (measured.trial.task != task) return false;
      numbers.push_back(measured.trial.number);
      return true;
    });
  }
  // Outside of the lock, as calls end in threads of ours.
  for (std::stop_source& call : calls) call.request_stop();
  std::ranges::sort(numbers);
  return numbers;
}

StatusOr<std::optional<search::Outcome>> Dispatcher::Core::Next(double until_s) {
  std::unique_lock lock(mutex_);
  WaitUntil(until_s, lock,
            [this] { return stopping_ || !failure_.ok() || !finished_.empty() || woken_; });
  if (!failure_.ok()) return failure_;
  if (stopping_) return Cancelled("stopped");
  if (finished_.empty()) {
    woken_ = false;
    return std::optional<search::Outcome>();
  }
  search::Outcome outcome = std::move(finished_.front());
  finished_.pop_front();
  return std::optional<search::Outcome>(std::move(outcome));
}

void Dispatcher::Core::WaitUntil(double until_s, std::unique_lock<std::mutex>& lock,
                                 const std::function<bool()>& done) {
  if (std::isinf(until_s)) return changed_.wait(lock, done);
  const double left_s = std::max(0.0, until_s - Clock::Real().MonotonicSeconds());
  changed_.wait_for(lock, std::chrono::duration<double>(left_s), done);
}

void Dispatcher::Core::Wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

BusyMeter::Reading Dispatcher::Core::busy() const {
  std::lock_guard lock(mutex_);
  return busy_.Read(Clock::Real().MonotonicSeconds());
}

std::vector<search::Correction> Dispatcher::Core::TakeCorrections() {
  const std::vector<LeaderBoard::Correction> news = leaders_.TakeCorrections();
  std::lock_guard lock(mutex_);
  std::vector<search::Correction> all = std::exchange(early_corrections_, {});
  for (const LeaderBoard::Correction& c : news) {
    all.push_back({c.task, c.trial, c.hash, c.cost_s > 0, c.cost_s});
  }
  const auto is_early = [this](const search::Correction& correction) {
    return std::ranges::any_of(finished_, [&](const search::Outcome& outcome) {
      return outcome.trial.number == correction.trial;
    });
  };
  const auto early = std::stable_partition(all.begin(), all.end(), std::not_fn(is_early));
  early_corrections_.assign(early, all.end());
  all.erase(early, all.end());
  return all;
}

// ---- building -------------------------------------------------------------------------------

milliseconds Dispatcher::Core::BuildDeadline() const {
  const uint32_t limit = job_.options.build_timeout_ms();
  return milliseconds(limit == 0 ? kDefaultBuildTimeoutMs : limit) + options_.build_slack;
}

Attempt Dispatcher::Core::Build(TrialItemPtr item, const LeasedWorker& lease,
                                std::stop_token pool_stop) {
  const EitherStop either(std::move(pool_stop), item->abandoned.get_token());
  const std::stop_token stop = either.token();
  if (stop.stop_requested()) return {};
  v1::BuildRequest request;
  request.set_dag(job_.tasks[item->task].dag);
  if (item->reference) {
    std::lock_guard lock(mutex_);
    const std::optional<TaskSample>& sample = tasks_[item->task].facts.sample;
    if (sample.has_value()) request.set_dag(sample->dag);
  }
  request.set_target(job_.tasks[item->task].target);
  request.set_steps(item->steps);
  *request.mutable_hardware() = HardwareMessage(HardwareParamsOf(job_.tasks[item->task].hardware));
  request.set_timeout_ms(job_.options.build_timeout_ms());
  const auto fault = job_.options.faults().find(item->trial.number);
  const bool trial = !item->reference && item->race == nullptr;
  if (trial && fault != job_.options.faults().end()) {
    request.set_fault(static_cast<v1::Fault>(fault->second));
  }
  v1::BuildReply reply;
  CallResult result = calls_.Build(lease.worker().address(), request,
                                   {.connect = options_.connect,
                                    .deadline = BuildDeadline(),
                                    .lost = lease.lost_token(),
                                    .stop = stop},
                                   &reply);
  if (result.status.ok() && reply.error() == v1::NO_ERROR && !reply.has_artifact()) {
    result.status = Internal("the answer has neither an artifact nor an error");
  }
  if (!result.status.ok()) {
    if (result.reached && IsRefusal(result.status) && !stop.stop_requested()) {
      Fail(Annotate(result.status,
                    fmt::format("builder {} refuses {}", Describe(lease), NameOf(*item))));
      return {};
    }
    return Failed(std::move(item), lease, result, stop);
  }
  Built(std::move(item), lease, std::move(reply));
  return {};
}

void Dispatcher::Core::Built(TrialItemPtr item, const LeasedWorker& lease, v1::BuildReply reply) {
  if (item->reference) return ReferenceBuilt(*item, std::move(reply));
  if (item->race != nullptr) return EntryBuilt(std::move(item), std::move(reply));
  item->build_s = reply.build_s();
  item->build_times = reply.times();
  item->builder = lease.worker().id();
  if (reply.error() != v1::NO_ERROR) {
    v1::TrialResult result;
    result.set_error(reply.error());
    result.set_message(reply.message());
    return Finish(std::move(item), nullptr, result, 0);
  }
  item->artifact = std::make_shared<const v1::Artifact>(std::move(*reply.mutable_artifact()));
  item->avoid_worker.clear();
  ToRunners(std::move(item));
}

// Once the reference of its task is built.
void Dispatcher::Core::ToRunners(TrialItemPtr item) {
  {
    std::lock_guard lock(mutex_);
    TaskState& task = tasks_[item->task];
    if (task.reference == nullptr) {
      task.waiting.push_back(std::move(item));
      return;
    }
  }
  runners_.Push(std::move(item));
}

void Dispatcher::Core::ReferenceBuilt(const TrialItem& item, v1::BuildReply reply) {
  if (reply.error() != v1::NO_ERROR) {
    return Fail(FailedPrecondition("{} does not build, so no answer can be checked: {}: {}",
                                   NameOf(item), v1::ErrorKind_Name(reply.error()),
                                   CutText(reply.message(), 512)));
  }
  std::vector<TrialItemPtr> ready;
  {
    std::lock_guard lock(mutex_);
    TaskState& task = tasks_[item.task];
    task.reference = std::make_shared<const v1::Artifact>(std::move(*reply.mutable_artifact()));
    ready.swap(task.waiting);
  }
  for (TrialItemPtr& trial : ready) runners_.Push(std::move(trial));
}

// ---- measuring ------------------------------------------------------------------------------

milliseconds Dispatcher::Core::ReferenceLimit() const {
  return milliseconds(static_cast<int64_t>(1e3 * job_.options.reference_limit_s()));
}

milliseconds Dispatcher::Core::MeasureDeadline(bool with_reference) const {
  const v1::MeasureOptions& measure = job_.options.measure();
  const uint32_t limit = measure.timeout_ms();
  return milliseconds(limit == 0 ? kDefaultRunTimeoutMs : limit) +
         milliseconds(measure.cooldown_ms()) * std::max(1u, measure.repeat()) +
         (with_reference ? options_.reference_slack + ReferenceLimit() : options_.measure_slack);
}

v1::MeasureRequest Dispatcher::Core::RequestOf(int task, const v1::Artifact& artifact) const {
  v1::MeasureRequest request;
  *request.mutable_artifact() = artifact;
  request.set_reference_digest(tasks_[task].reference->digest());
  request.set_seed(job_.options.seed());
  *request.mutable_tolerance() = job_.options.tolerance();
  if (!tasks_[task].unlimited) {
    request.set_reference_timeout_ms(static_cast<uint32_t>(ReferenceLimit().count()));
  }
  if (const auto& sample = tasks_[task].facts.sample; sample.has_value()) {
    request.mutable_samples()->Add(sample->outputs.begin(), sample->outputs.end());
  }
  v1::MeasureOptions& options = *request.mutable_options();
  options = job_.options.measure();
  options.set_hopeless_ratio(std::max(0.0, options.hopeless_ratio()));
  options.set_best_cost_s(tasks_[task].facts.best_cost_s);
  return request;
}

// A runner that does not have the reference is sent it.
CallResult Dispatcher::Core::CallMeasure(const LeasedWorker& lease, v1::MeasureRequest& request,
                                         std::shared_ptr<const v1::Artifact> reference,
                                         std::stop_token stop, v1::MeasureReply* reply) {
  CallLimits limits{.connect = options_.connect,
                    // One that was sent ahead may wait for another's reference.
                    .deadline = MeasureDeadline(job_.options.measure().idle_ms() > 0),
                    .lost = lease.lost_token(),
                    .stop = stop};
  const std::string& address = lease.worker().address();
  CallResult result = calls_.Measure(address, request, limits, reply);
  if (result.status.code() != StatusCode::kFailedPrecondition) return result;
  *request.mutable_reference() = *reference;
  limits.deadline = MeasureDeadline(true);
  reply->Clear();
  return calls_.Measure(address, request, limits, reply);
}

Attempt Dispatcher::Core::Measure(TrialItemPtr item, const LeasedWorker& lease,
                                  std::stop_token pool_stop) {
  if (item->race != nullptr) return RunRace(std::move(item), lease, std::move(pool_stop));
  const EitherStop either(std::move(pool_stop), item->abandoned.get_token());
  const std::stop_token stop = either.token();
  if (stop.stop_requested()) return {};
  v1::MeasureRequest request;
  std::shared_ptr<const v1::Artifact> reference;
  {
    std::lock_guard lock(mutex_);
    reference = tasks_[item->task].reference;
    if (reference != nullptr) request = RequestOf(item->task, *item->artifact);
  }
  // Another one takes its place.
  if (reference == nullptr) {
    ToRunners(std::move(item));
    return {};
  }
  // Another job's trials wait, which the runner does not see.
  if (lease.wanted()) request.mutable_options()->set_idle_ms(0);
  v1::MeasureReply reply;
  CallResult result = CallMeasure(lease, request, reference, stop, &reply);
  if (result.status.ok() && !reply.has_result()) {
    result.status = Unavailable("the answer has no result");
  }
  if (!result.status.ok()) {
    if (result.status.code() == StatusCode::kInternal) NoteReferenceFailure(*item, result.status);
    if (result.status.code() == StatusCode::kOutOfRange && request.samples().empty()) {
      return SampleInstead(std::move(item), lease, result, stop);
    }
    return Failed(std::move(item), lease, result, stop);
  }
  Finish(std::move(item), &lease, reply.result(), reply.reference_cost_s());
  return {};
}

std::string Dispatcher::Core::NoticeOf(const DispatchTask& task, bool too_long) const {
  const double limit_s = job_.options.reference_limit_s();
  const std::string why =
      too_long ? fmt::format("take more than {:.4g} s", limit_s)
               : fmt::format("would take about {:.0f} s, more than {:.4g}", task.plain_s, limit_s);
  if (!task.sample.has_value()) {
    return fmt::format(
        "{}: the unscheduled loops {}, and no sample of the outputs is cheaper, so "
        "they are waited for",
        task.description, why);
  }
  return fmt::format(
      "{}: answers are compared at {} of {} elements, drawn at random with all dimensions' ends: "
      "the unscheduled loops {} (--reference-limit)",
      task.description, task.sample->elements, task.sample->all, why);
}

std::vector<std::string> Dispatcher::Core::notices() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> notices;
  for (const TaskState& task : tasks_) {
    if (!task.notice.empty()) notices.push_back(task.notice);
  }
  return notices;
}

Attempt Dispatcher::Core::SampleInstead(TrialItemPtr item, const LeasedWorker& lease,
                                        const CallResult& result, std::stop_token stop) {
  if (stop.stop_requested()) return {};
  const auto dag = dag::ParseDag(job_.tasks[item->task].dag);
  StatusOr<TaskSample> sample =
      dag.ok() ? MakeTaskSample(**dag, job_.options.seed()) : StatusOr<TaskSample>(dag.status());
  bool begun = false;
  {
    std::lock_guard lock(mutex_);
    TaskState& task = tasks_[item->task];
    // Others of the task may have come here before.
    begun = !task.facts.sample.has_value() && !task.unlimited;
    if (begun && sample.ok()) {
      task.facts.sample = *std::move(sample);
      task.reference = nullptr;
    } else if (begun) {
      task.unlimited = true;
    }
    if (begun) task.notice = NoticeOf(task.facts, true);
    if (task.unlimited) return {.again = std::move(item), .complaint = ""};
  }
  LogInfo("job {}: {}: {}", job_.id, NameOf(*item), Message(result.status));
  if (begun) BuildReference(item->task);
  if (item->steps != store::kNoSteps) {
    ToRunners(std::move(item));
    return {};
  }
  v1::TrialResult slow;
  slow.set_error(v1::RUN_TIMEOUT_ERROR);
  slow.set_message(fmt::format("the unscheduled loops take more than {:.4g} s (--reference-limit)",
                               job_.options.reference_limit_s()));
  Finish(std::move(item), &lease, slow, 0);
  return {};
}

// INTERNAL is the runner's word for a reference that fails: no trial of the task can be checked.
void Dispatcher::Core::NoteReferenceFailure(const TrialItem& item, const Status& status) {
  {
    std::lock_guard lock(mutex_);
    TaskState& task = tasks_[item.task];
    if (task.reference_ran || ++task.reference_failures < kReferenceFailures) return;
  }
  Fail(
      FailedPrecondition("the unscheduled program of task {} fails on the device, so no answer "
                         "can be checked: {}",
                         item.task, Message(status)));
}

Attempt Dispatcher::Core::Failed(TrialItemPtr item, const LeasedWorker& lease,
                                 const CallResult& result, std::stop_token stop) {
  if (stop.stop_requested()) return {};
  Attempt attempt;
  // A lost lease is gone with its worker: nothing is left to be let alone.
  if (!lease.lost()) attempt.complaint = Message(result.status);
  const bool counts = result.reached && !IsBusy(result.status);
  if (counts) ++item->attempts;
  if (item->attempts < options_.max_attempts) {
    LogDebug("job {}: {} goes to another worker: {}: {}", job_.id, NameOf(*item), Describe(lease),
             Message(result.status));
    attempt.again = std::move(item);
    return attempt;
  }
  const std::string cause = fmt::format("given up after {} attempts, the last one on {}: {}",
                                        item->attempts, Describe(lease), Message(result.status));
  if (item->reference) {
    Fail(Unavailable("{} could not be built: {}", NameOf(*item), cause));
    return attempt;
  }
  if (item->race != nullptr && item->entry < 0) {
    LogWarn("job {}: {} stay as they are: {}", job_.id, NameOf(*item), cause);
    EndRace();
    return attempt;
  }
  if (item->race != nullptr) {
    // Not its fault: it keeps its first reading, the others race without it.
    EntryBuilt(std::move(item), v1::BuildReply());
    return attempt;
  }
  v1::TrialResult given_up;
  given_up.set_error(v1::UNKNOWN_ERROR);
  given_up.set_message(cause);
  Finish(std::move(item), nullptr, given_up, 0);
  return attempt;
}

// ---- the dispatcher -------------------------------------------------------------------------

Dispatcher::Dispatcher(Job job, const DispatchOptions& options, LeaseSource& builders,
                       LeaseSource& runners, LeasedWorker first_runner, store::Store& store,
                       std::function<void()> committed)
    : core_(std::make_unique<Core>(std::move(job), options, builders, runners,
                                   std::move(first_runner), store, std::move(committed))) {}

Dispatcher::~Dispatcher() = default;

int Dispatcher::capacity() { return core_->capacity(); }
void Dispatcher::Submit(search::Trial trial) { core_->Submit(std::move(trial)); }
StatusOr<std::optional<search::Outcome>> Dispatcher::Next(double until_s) {
  return core_->Next(until_s);
}
std::vector<uint32_t> Dispatcher::Abandon(int task) { return core_->Abandon(task); }
void Dispatcher::Wake() { core_->Wake(); }
Status Dispatcher::MeasureAgain(std::vector<Finalists> lists, double until_s) {
  return core_->MeasureAgain(std::move(lists), until_s);
}
std::vector<search::Correction> Dispatcher::TakeCorrections() { return core_->TakeCorrections(); }
Status Dispatcher::EndIdleReadings() { return core_->EndIdleReadings(); }
BusyMeter::Reading Dispatcher::busy() const { return core_->busy(); }
void Dispatcher::Stop() { core_->Stop(); }
Dispatcher::Waiting Dispatcher::waiting() const { return core_->waiting(); }
std::vector<std::string> Dispatcher::notices() const { return core_->notices(); }

}  // namespace kiln::scheduler
