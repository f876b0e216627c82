#include "scheduler/dispatch.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "compiler/schedule/step.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "scheduler/device_keys.h"
#include "scheduler/messages.h"
#include "scheduler/worker_calls.h"
#include "scheduler/worker_pool.h"

namespace kiln::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kDefaultBuildTimeoutMs = 15'000;  // the builder's own
constexpr uint32_t kDefaultRunTimeoutMs = 10'000;    // the runner's own
// A reference that fails so often, without one success, ends the job.
constexpr int kReferenceFailures = 3;
constexpr std::chrono::seconds kCommitAgain{1};
// What the readings of leaders say is written so often.
constexpr std::chrono::seconds kWriteLeaders{1};
// Readings of leaders are of programs of which one may take such a part of the idle time.
constexpr double kPartOfIdleTime = 0.2;
// The best are checked again with other inputs where the reference takes no longer than this: it
// has to run for them, once.
constexpr double kCheapReference_s = 0.05;
constexpr uint64_t kOtherInputs = 1;  // stream of the job's seed

// A trial, the reference of a task, or finalists on their way.
struct TrialItem : WorkItem {
  bool reference = false;
  std::shared_ptr<Race> race;  // null: of no finalists
  int entry = -1;              // of the race: to be built; -1: all of it, to be measured
  int task = 0;
  search::Trial trial;
  std::string steps;
  int attempts = 0;  // failed ones
  std::shared_ptr<const v1::Artifact> artifact;
  double build_s = 0;
  v1::TrialTimes build_times;
  std::string builder;
};
using TrialItemPtr = std::unique_ptr<TrialItem>;

TrialItemPtr AsTrial(WorkItemPtr item) {
  return TrialItemPtr(static_cast<TrialItem*>(item.release()));
}

std::string NameOf(const TrialItem& item) {
  if (item.race != nullptr) return fmt::format("the finalists of task {}", item.task);
  return item.reference ? fmt::format("the unscheduled program of task {}", item.task)
                        : fmt::format("trial {}", item.trial.number);
}

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

struct Measured {
  search::Trial trial;
  store::Record record;
  double reference_cost_s = 0;                   // > 0: to be stored
  std::shared_ptr<const v1::Artifact> artifact;  // when it may lead
};

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

class Dispatcher::Core {
 public:
  Core(Job job, const DispatchOptions& options, LeaseSource& builders, LeaseSource& runners,
       LeasedWorker first_runner, store::Store& store, std::function<void()> committed);
  ~Core();

  int capacity() const { return builders_.usable() + runners_.usable() + options_.queued; }
  void Submit(search::Trial trial);
  StatusOr<std::optional<search::Outcome>> Next();
  void Wake();
  std::vector<search::Correction> TakeCorrections();
  Status MeasureAgain(std::vector<Finalists> lists);
  Status EndIdleReadings();
  void Stop();
  BusyMeter::Reading busy() const;
  Waiting waiting() const;

 private:
  struct TaskState {
    DispatchTask facts;
    bool reference_requested = false;
    std::shared_ptr<const v1::Artifact> reference;  // null: not built yet
    std::vector<TrialItemPtr> waiting;              // built, for want of it
    bool reference_ran = false;
    int reference_failures = 0;
    bool other_inputs_fail = false;  // of the reference
  };

  WorkerPool::Options PoolOptions(std::string name, int lanes) const;
  WorkerPool::Options RunnerOptions() const;
  Attempt Build(TrialItemPtr item, const LeasedWorker& lease, std::stop_token stop);
  void Built(TrialItemPtr item, const LeasedWorker& lease, v1::BuildReply reply);
  void ReferenceBuilt(const TrialItem& item, v1::BuildReply reply);
  Attempt Measure(TrialItemPtr item, const LeasedWorker& lease, std::stop_token stop);
  CallResult CallMeasure(const LeasedWorker& lease, v1::MeasureRequest& request,
                         std::shared_ptr<const v1::Artifact> reference, std::stop_token stop,
                         v1::MeasureReply* reply);
  v1::MeasureRequest RequestOf(int task, const v1::Artifact& artifact) const;  // lock held
  // As RequestOf, of one of the best; with other inputs if that is cheap; lock held.
  v1::MeasureRequest FinalRequestOf(int task, const v1::Artifact& artifact) const;
  CallResult MeasureOneAgain(const LeasedWorker& lease, int task, const v1::Artifact& artifact,
                             bool idle, std::stop_token stop, v1::MeasureReply* reply);
  void RequestReference(int task);
  void ToRunners(TrialItemPtr item);
  // A finalist is built, or not.
  void EntryBuilt(TrialItemPtr item, v1::BuildReply reply);
  Attempt RunRace(TrialItemPtr item, const LeasedWorker& lease, std::stop_token stop);
  void EndRace();
  // While the runner would be idle.
  std::optional<Attempt> ReadLeader(const LeasedWorker& lease, std::stop_token stop);
  bool MayReadLeaders() const;
  void NoteReading(const LeaderBoard::Turn& turn, const std::string& device,
                   const v1::MeasureReply& reply);
  void NoteReferenceFailure(const TrialItem& item, const Status& status);
  // The call failed: the item goes back, or is given up.
  Attempt Failed(TrialItemPtr item, const LeasedWorker& lease, const CallResult& result,
                 std::stop_token stop);
  void Finish(TrialItemPtr item, const LeasedWorker* runner, const v1::TrialResult& result,
              double reference_cost_s);
  store::Record RecordOf(const TrialItem& item) const;
  void CommitLoop();
  Status Patiently(const std::function<Status()>& write);
  Status Commit(std::vector<Measured>& batch);  // sets the records' ids
  Status WriteLeaders();
  void AddLeader(Measured& measured);  // lock held
  void Fail(Status status);
  milliseconds BuildDeadline() const;
  milliseconds MeasureDeadline(bool with_reference) const;

  const Job job_;
  const DispatchOptions options_;
  store::Store& store_;
  const std::function<void()> committed_;
  WorkerCalls calls_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TaskState> tasks_;
  std::vector<Measured> measured_;        // not yet committed
  std::deque<search::Outcome> finished_;  // committed
  Status failure_;                        // why the job can't go on
  bool stopping_ = false;                 // no outcome is wanted any more
  bool closing_ = false;                  // nothing more is measured
  bool woken_ = false;
  bool idle_readings_ = false;                         // leaders are read
  std::vector<search::Correction> early_corrections_;  // of outcomes that Next has not returned
  size_t open_races_ = 0;
  BusyMeter busy_;

  LeaderBoard leaders_;
  std::mutex writing_leaders_;  // what was taken from them is written before what is taken next

  std::thread committer_;
  WorkerPool builders_;  // these two last: their lanes use the rest
  WorkerPool runners_;
};

// ---- life -----------------------------------------------------------------------------------

Dispatcher::Core::Core(Job job, const DispatchOptions& options, LeaseSource& builders,
                       LeaseSource& runners, LeasedWorker first_runner, store::Store& store,
                       std::function<void()> committed)
    : job_(std::move(job)),
      options_(options),
      store_(store),
      committed_(std::move(committed)),
      tasks_(job_.tasks.size()),
      leaders_(LeadersOf(job_.options), WorksOf(job_.tasks)),
      builders_(PoolOptions("builder", options.max_builders), builders,
                [this](WorkItemPtr item, const LeasedWorker& lease, std::stop_token stop) {
                  return Build(AsTrial(std::move(item)), lease, std::move(stop));
                }),
      runners_(
          RunnerOptions(), runners,
          [this](WorkItemPtr item, const LeasedWorker& lease, std::stop_token stop) {
            return Measure(AsTrial(std::move(item)), lease, std::move(stop));
          },
          [this](const v1::WorkerState& worker) -> std::string {
            if (job_.runner_target.empty() || worker.target() == job_.runner_target) return "";
            return fmt::format("its target is '{}', the job runs on '{}'", worker.target(),
                               job_.runner_target);
          },
          std::move(first_runner),
          [this](const LeasedWorker& lease, std::stop_token stop) {
            return ReadLeader(lease, std::move(stop));
          }) {
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i].facts = job_.tasks[i];
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
  item->trial = std::move(trial);
  RequestReference(task);
  builders_.Push(std::move(item));
}

void Dispatcher::Core::RequestReference(int task) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(tasks_[task].reference_requested, true)) return;
  }
  auto reference = std::make_unique<TrialItem>();
  reference->reference = true;
  reference->task = task;
  reference->steps = "[]";
  builders_.PushFirst(std::move(reference));
}

StatusOr<std::optional<search::Outcome>> Dispatcher::Core::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
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

// ---- the best, again ------------------------------------------------------------------------

v1::MeasureRequest Dispatcher::Core::FinalRequestOf(int task, const v1::Artifact& artifact) const {
  v1::MeasureRequest request = RequestOf(task, artifact);
  const double reference_s = tasks_[task].facts.reference_cost_s;
  if (reference_s > 0 && reference_s <= kCheapReference_s && !tasks_[task].other_inputs_fail) {
    request.set_seed(SplitSeed(job_.options.seed(), kOtherInputs));
  }
  SetFinalReading(*request.mutable_options());
  return request;
}

// `idle`: as long as no trial comes.
CallResult Dispatcher::Core::MeasureOneAgain(const LeasedWorker& lease, int task,
                                             const v1::Artifact& artifact, bool idle,
                                             std::stop_token stop, v1::MeasureReply* reply) {
  while (true) {
    v1::MeasureRequest request;
    std::shared_ptr<const v1::Artifact> reference;
    {
      std::lock_guard lock(mutex_);
      reference = tasks_[task].reference;
      request = FinalRequestOf(task, artifact);
    }
    if (idle) {
      request.mutable_options()->set_repeat(1);
      request.mutable_options()->set_idle_ms(job_.options.measure().idle_ms());
    }
    CallResult result = CallMeasure(lease, request, reference, stop, reply);
    if (result.status.ok() && !reply->has_result()) {
      result.status = Unavailable("the answer has no result");
    }
    std::lock_guard lock(mutex_);
    if (result.status.ok()) {
      busy_.Add(lease.worker().id(), Clock::Real().MonotonicSeconds(), reply->result().run_s(),
                BusyMeter::Use::kLeader);
      return result;
    }
    // The reference fails, which it did not with the inputs of the trials.
    const bool other_inputs = request.seed() != job_.options.seed();
    if (result.status.code() != StatusCode::kInternal || !other_inputs) return result;
    LogWarn("job {}: task {} is checked with the same inputs only: {}", job_.id, task,
            Message(result.status));
    tasks_[task].other_inputs_fail = true;
    reply->Clear();
  }
}

// ---- leaders --------------------------------------------------------------------------------

bool Dispatcher::Core::MayReadLeaders() const {
  std::lock_guard lock(mutex_);
  return idle_readings_ && !stopping_ && failure_.ok();
}

std::optional<Attempt> Dispatcher::Core::ReadLeader(const LeasedWorker& lease,
                                                    std::stop_token stop) {
  if (!MayReadLeaders()) return std::nullopt;
  const std::string device = DeviceIdentity(lease.worker());
  const std::optional<LeaderBoard::Turn> turn = leaders_.Next(device);
  if (!turn.has_value()) return std::nullopt;
  v1::MeasureReply reply;
  const CallResult call =
      MeasureOneAgain(lease, turn->task, *turn->artifact, /*idle=*/true, stop, &reply);
  Attempt attempt;
  if (call.status.ok()) {
    NoteReading(*turn, device, reply);
  } else if (!stop.stop_requested() && !lease.lost()) {
    attempt.complaint = Message(call.status);
  }
  return attempt;
}

void Dispatcher::Core::NoteReading(const LeaderBoard::Turn& turn, const std::string& device,
                                   const v1::MeasureReply& reply) {
  store::Record reading;
  SetResult(reply.result(), reading);
  std::lock_guard lock(mutex_);
  if (!idle_readings_) return;
  if (reading.error == store::kNoError) {
    leaders_.Read(turn, device, reading.costs_s, reading.run_s);
  } else if (leaders_.Fail(turn, reading.error, reading.message, reading.run_s)) {
    LogInfo("job {}: record {} fails when it is measured again: {}", job_.id, turn.record_id,
            reading.message);
  }
  changed_.notify_all();
}

Status Dispatcher::Core::WriteLeaders() {
  std::lock_guard writing(writing_leaders_);
  const std::vector<store::Finals> finals = leaders_.TakeUnwritten();
  if (finals.empty()) return OkStatus();
  return Patiently([&] { return store_.SetFinals(finals); });
}

Status Dispatcher::Core::EndIdleReadings() {
  {
    std::lock_guard lock(mutex_);
    idle_readings_ = false;
  }
  return WriteLeaders();
}

void Dispatcher::Core::AddLeader(Measured& measured) {
  leaders_.CountTrials(measured.trial.task, 1);
  if (measured.artifact == nullptr) return;
  leaders_.Add({.task = measured.trial.task,
                .trial = measured.trial.number,
                .record_id = measured.record.id,
                .hash = measured.trial.candidate.hash,
                .cost_s = store::MeanCost(measured.record),
                .artifact = std::move(measured.artifact)});
}

// ---- finalists ------------------------------------------------------------------------------

Status Dispatcher::Core::MeasureAgain(std::vector<Finalists> lists) {
  std::vector<TrialItemPtr> builds, whole;
  for (Finalists& list : lists) {
    if (list.entries.empty()) continue;
    const auto race = std::make_shared<Race>();
    for (Finalist& finalist : list.entries) {
      auto artifact = leaders_.ArtifactOf(finalist.record_id);
      race->entries.push_back({std::move(finalist), std::move(artifact), {}});
    }
    const auto item_of = [&](int entry) {
      auto item = std::make_unique<TrialItem>();
      item->race = race;
      item->entry = entry;
      item->task = list.task;
      return item;
    };
    for (size_t i = 0; i < race->entries.size(); ++i) {
      if (race->entries[i].artifact != nullptr) continue;
      ++race->to_build;
      builds.push_back(item_of(static_cast<int>(i)));
      builds.back()->steps = race->entries[i].finalist.steps;
    }
    if (race->to_build == 0) whole.push_back(item_of(-1));
    std::lock_guard lock(mutex_);
    ++open_races_;
  }
  for (TrialItemPtr& build : builds) {
    RequestReference(build->task);
    builders_.Push(std::move(build));
  }
  for (TrialItemPtr& race : whole) {
    RequestReference(race->task);
    ToRunners(std::move(race));
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !failure_.ok() || open_races_ == 0; });
  if (!failure_.ok()) return failure_;
  return stopping_ && open_races_ > 0 ? Cancelled("stopped") : OkStatus();
}

void Dispatcher::Core::EntryBuilt(TrialItemPtr item, v1::BuildReply reply) {
  {
    std::lock_guard lock(mutex_);
    Race::Entry& entry = item->race->entries[item->entry];
    if (reply.has_artifact()) {
      entry.artifact = std::make_shared<const v1::Artifact>(std::move(*reply.mutable_artifact()));
    } else {
      entry.failure.set_error(reply.error());
      entry.failure.set_message(reply.message());
    }
    if (--item->race->to_build > 0) return;
  }
  item->entry = -1;
  item->attempts = 0;
  item->avoid_worker.clear();
  ToRunners(std::move(item));
}

Attempt Dispatcher::Core::RunRace(TrialItemPtr item, const LeasedWorker& lease,
                                  std::stop_token stop) {
  const std::string device = DeviceIdentity(lease.worker());
  for (Race::Entry& entry : item->race->entries) {
    store::Finals& known = entry.finalist.known;
    if (known.device == device) continue;
    // Of several devices the record has the readings of one.
    store::Finals own = leaders_.KnownOn(entry.finalist.record_id, device);
    own.run_s = known.run_s;
    if (!own.costs_s.empty()) known = std::move(own);
  }
  const MeasureOnce measure = [&](const v1::Artifact& artifact, v1::MeasureReply* reply) {
    return MeasureOneAgain(lease, item->task, artifact, /*idle=*/false, stop, reply);
  };
  std::vector<store::Finals> finals;
  const CallResult call = scheduler::RunRace(*item->race, device, measure, &finals);
  if (!call.status.ok()) return Failed(std::move(item), lease, call, stop);
  const Status kept = store_.SetFinals(finals);
  if (!kept.ok()) Fail(Annotate(kept, "results cannot be kept"));
  EndRace();
  return {};
}

void Dispatcher::Core::EndRace() {
  committed_();
  std::lock_guard lock(mutex_);
  --open_races_;
  changed_.notify_all();
}

// ---- building -------------------------------------------------------------------------------

milliseconds Dispatcher::Core::BuildDeadline() const {
  const uint32_t limit = job_.options.build_timeout_ms();
  return milliseconds(limit == 0 ? kDefaultBuildTimeoutMs : limit) + options_.build_slack;
}

Attempt Dispatcher::Core::Build(TrialItemPtr item, const LeasedWorker& lease,
                                std::stop_token stop) {
  v1::BuildRequest request;
  request.set_dag(job_.tasks[item->task].dag);
  request.set_target(job_.tasks[item->task].target);
  request.set_steps(item->steps);
  *request.mutable_hardware() = HardwareMessage(job_.tasks[item->task].hardware);
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

milliseconds Dispatcher::Core::MeasureDeadline(bool with_reference) const {
  const v1::MeasureOptions& measure = job_.options.measure();
  const uint32_t limit = measure.timeout_ms();
  return milliseconds(limit == 0 ? kDefaultRunTimeoutMs : limit) +
         milliseconds(measure.cooldown_ms()) * std::max(1u, measure.repeat()) +
         (with_reference ? options_.reference_slack : options_.measure_slack);
}

v1::MeasureRequest Dispatcher::Core::RequestOf(int task, const v1::Artifact& artifact) const {
  v1::MeasureRequest request;
  *request.mutable_artifact() = artifact;
  request.set_reference_digest(tasks_[task].reference->digest());
  request.set_seed(job_.options.seed());
  *request.mutable_tolerance() = job_.options.tolerance();
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
                                  std::stop_token stop) {
  if (item->race != nullptr) return RunRace(std::move(item), lease, std::move(stop));
  v1::MeasureRequest request;
  std::shared_ptr<const v1::Artifact> reference;
  {
    std::lock_guard lock(mutex_);
    reference = tasks_[item->task].reference;
    request = RequestOf(item->task, *item->artifact);
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
    return Failed(std::move(item), lease, result, stop);
  }
  Finish(std::move(item), &lease, reply.result(), reply.reference_cost_s());
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

// ---- results --------------------------------------------------------------------------------

store::Record Dispatcher::Core::RecordOf(const TrialItem& item) const {
  const DispatchTask& task = job_.tasks[item.task];
  store::Record record;
  record.job_id = job_.id;
  record.task_index = static_cast<uint32_t>(item.task);
  record.trial = item.trial.number;
  record.workload_key = task.workload_key;
  record.dag = task.dag;
  record.target = task.target;
  record.hardware = task.hardware;
  record.steps = item.steps;
  record.flop_count = task.flop_count;
  record.build_s = item.build_s;
  record.builder = item.builder;
  record.timestamp_s = std::time(nullptr);
  record.origin = item.trial.candidate.origin;
  if (std::isfinite(item.trial.candidate.score)) record.score = item.trial.candidate.score;
  return record;
}

// `runner` is null when the trial did not get so far.
void Dispatcher::Core::Finish(TrialItemPtr item, const LeasedWorker* runner,
                              const v1::TrialResult& result, double reference_cost_s) {
  Measured measured;
  measured.record = RecordOf(*item);
  if (runner != nullptr) {
    measured.record.device = runner->worker().device();
    measured.record.runner = runner->worker().id();
  }
  SetResult(result, measured.record);
  v1::TrialTimes times = item->build_times;
  times.MergeFrom(result.times());
  measured.record.times = times.SerializeAsString();
  measured.trial = std::move(item->trial);
  std::lock_guard lock(mutex_);
  TaskState& task = tasks_[item->task];
  if (runner != nullptr) {
    task.reference_ran = true;
    busy_.Add(runner->worker().id(), Clock::Real().MonotonicSeconds(), measured.record.run_s);
  }
  if (reference_cost_s > 0 && task.facts.reference_cost_s == 0) {
    task.facts.reference_cost_s = measured.reference_cost_s = reference_cost_s;
  }
  const double cost_s = store::MeanCost(measured.record);
  if (measured.record.error == store::kNoError && !measured.record.stopped_early &&
      (task.facts.best_cost_s == 0 || cost_s < task.facts.best_cost_s)) {
    task.facts.best_cost_s = cost_s;
  }
  const bool whole = measured.record.error == store::kNoError && !measured.record.stopped_early;
  if (whole && idle_readings_ && leaders_.MayLead(item->task, cost_s)) {
    measured.artifact = std::move(item->artifact);
  }
  measured_.push_back(std::move(measured));
  changed_.notify_all();
}

void Dispatcher::Core::CommitLoop() {
  std::unique_lock lock(mutex_);
  auto write_leaders = std::chrono::steady_clock::now() + kWriteLeaders;
  while (true) {
    const auto due = [this] { return closing_ || !measured_.empty() || leaders_.has_failures(); };
    changed_.wait(lock, [&] { return due() || leaders_.has_unwritten(); });
    changed_.wait_until(lock, write_leaders, due);
    const bool ends = closing_ && measured_.empty();
    const auto now = std::chrono::steady_clock::now();
    const bool with_leaders = ends || leaders_.has_failures() || now >= write_leaders;
    std::vector<Measured> batch = std::exchange(measured_, {});
    lock.unlock();
    Status status = batch.empty() ? OkStatus() : Patiently([&] { return Commit(batch); });
    if (status.ok() && with_leaders) {
      status = WriteLeaders();
      write_leaders = now + kWriteLeaders;
    }
    if (!status.ok()) {
      Fail(Annotate(status, "results cannot be kept"));
      return;
    }
    if (ends) return;
    committed_();
    lock.lock();
    for (Measured& m : batch) {
      const bool valid = m.record.error == store::kNoError;
      if (idle_readings_) AddLeader(m);
      finished_.push_back({std::move(m.trial), valid, valid ? store::MeanCost(m.record) : 0});
    }
    changed_.notify_all();
    lock.unlock();
    if (!batch.empty()) runners_.Poke();
    lock.lock();
  }
}

// A full disk or a locked file is waited out: what was measured is worth more than the time.
Status Dispatcher::Core::Patiently(const std::function<Status()>& write) {
  while (true) {
    Status status = write();
    if (status.code() != StatusCode::kUnavailable &&
        status.code() != StatusCode::kResourceExhausted) {
      return status;
    }
    LogError("job {}: results wait: {}", job_.id, Message(status));
    std::unique_lock lock(mutex_);
    const bool stop = changed_.wait_for(lock, kCommitAgain, [this] { return stopping_; });
    if (stop) return status;
  }
}

Status Dispatcher::Core::Commit(std::vector<Measured>& batch) {
  std::vector<store::Record> records;
  for (const Measured& m : batch) records.push_back(m.record);
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, store_.AddRecords(records));
  for (size_t i = 0; i < batch.size(); ++i) batch[i].record.id = ids[i];
  for (const Measured& m : batch) {
    if (m.reference_cost_s == 0) continue;
    KILN_RETURN_IF_ERROR(store_.SetReferenceCost(job_.id, m.record.task_index, m.reference_cost_s));
  }
  return OkStatus();
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
StatusOr<std::optional<search::Outcome>> Dispatcher::Next() { return core_->Next(); }
void Dispatcher::Wake() { core_->Wake(); }
Status Dispatcher::MeasureAgain(std::vector<Finalists> lists) {
  return core_->MeasureAgain(std::move(lists));
}
std::vector<search::Correction> Dispatcher::TakeCorrections() { return core_->TakeCorrections(); }
Status Dispatcher::EndIdleReadings() { return core_->EndIdleReadings(); }
BusyMeter::Reading Dispatcher::busy() const { return core_->busy(); }
void Dispatcher::Stop() { core_->Stop(); }
Dispatcher::Waiting Dispatcher::waiting() const { return core_->waiting(); }

}  // namespace kiln::scheduler
