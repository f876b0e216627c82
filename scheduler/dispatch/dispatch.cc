#include "scheduler/dispatch/dispatch.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "compiler/schedule/step.h"
#include "rpc/yield_reply.h"
#include "scheduler/dispatch/dispatch_core.h"
#include "scheduler/values/queue_figures.h"

namespace kiln::scheduler {
namespace {

std::string Describe(const LeasedWorker& lease) {
  return fmt::format("{} at {}", lease.worker().id(), lease.worker().address());
}

// Tells whether the worker had no time for the call, which is nobody's failure.
bool IsBusy(const Status& status) { return status.code() == StatusCode::kResourceExhausted; }

std::set<int> ReferencesKnown(const std::vector<DispatchTask>& tasks) {
  std::set<int> known;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].reference_cost_s.has_value()) known.insert(static_cast<int>(i));
  }
  return known;
}

}  // namespace

// ---- life -----------------------------------------------------------------------------------

Dispatcher::Core::Core(Job job, const DispatchOptions& options, LeaseSource& builders,
                       LeaseSource& runners, LeasedWorker first_runner, store::Store& store,
                       std::function<void()> committed)
    : job_(std::move(job)),
      options_(options),
      store_(store),
      committed_(std::move(committed)),
      calls_(options.access, options.channels),
      references_(job_.options, job_.tasks),
      readings_(job_, store),
      builders_(PoolOptions("builder", options.max_builders), builders,
                [this](WorkItemPtr item, const LeasedWorker& lease, std::stop_token stop,
                       WorkerPool::Done done) {
                  Build(As<BuildItem>(std::move(item)), lease, std::move(stop), std::move(done));
                }),
      runners_(
          RunnerOptions(), runners,
          [this](WorkItemPtr item, const LeasedWorker& lease, std::stop_token stop,
                 WorkerPool::Done done) {
            Measure(As<RunItem>(std::move(item)), lease, std::move(stop), std::move(done));
          },
          [this](const v1::WorkerState& runner) {
            std::string reason = ReasonUnusable(runner);
            if (reason.empty()) unlike_.Note(options_.known_runners->Of(runner), runner.canary_s());
            return reason;
          },
          std::move(first_runner), RunnerMeanwhile()),
      own_builds_(job_.own_builds.at_once,
                  [this](OwnBuildItem item, const std::stop_token& stop) {
                    BuildOwn(std::move(item), stop);
                  }),
      writer_(job_.id, ReferencesKnown(job_.tasks), *options_.clock, ledger_, readings_, store_,
              committed_, options_.traced, [this] { runners_.Poke(); }) {
  if (options_.queues == nullptr || job_.tasks.empty()) return;
  shown_ = options_.queues->Add([this] {
    return QueueFigures::Sizes{
        .target = job_.tasks.front().target, .build = builders_.queued(), .run = runners_.queued()};
  });
}

Dispatcher::Core::~Core() {
  Stop();
  Join();
  ledger_.Close();
}

ExclusivePhases::Hold Dispatcher::Core::EnterPhase(ExclusivePhases::Kind kind,
                                                   std::stop_token stop) {
  const bool takes_part = kind == ExclusivePhases::Kind::kWork || job_.on_cpu;
  if (options_.phases == nullptr || !takes_part) return {};
  return options_.phases->Enter(kind, std::move(stop));
}

void Dispatcher::Core::InPhase(ExclusivePhases::Kind kind, std::stop_token stop,
                               std::function<void(Hold)> work) {
  const bool takes_part = kind == ExclusivePhases::Kind::kWork || job_.on_cpu;
  if (options_.phases == nullptr || !takes_part) return work({});
  helpers_.Run([this, kind, stop = std::move(stop), work = std::move(work)] {
    work(options_.phases->Enter(kind, stop));
  });
}

WorkerPool::Options Dispatcher::Core::PoolOptions(std::string name, int most_leases) const {
  return {.name = std::move(name),
          .most_leases = most_leases,
          .idle_release = options_.idle_release,
          .first_backoff = options_.first_backoff,
          .longest_backoff = options_.longest_backoff};
}

// Sends items ahead if idle time is used: a runner must have the next trial to know that it is not
// idle.
WorkerPool::Options Dispatcher::Core::RunnerOptions() const {
  WorkerPool::Options options = PoolOptions("runner", options_.max_runners);
  options.ahead = job_.options.measure().idle_ms() > 0;
  return options;
}

WorkerPool::Meanwhile Dispatcher::Core::RunnerMeanwhile() {
  if (job_.options.measure().idle_ms() == 0) return nullptr;
  return [this](const LeasedWorker& lease, const std::stop_token& stop) {
    return NextReading(lease, stop);
  };
}

std::string Dispatcher::Core::ReasonUnusable(const v1::WorkerState& runner) const {
  if (job_.runner_target.empty() || runner.target() == job_.runner_target) return "";
  return fmt::format("its target is '{}', the job runs on '{}'", runner.target(),
                     job_.runner_target);
}

void Dispatcher::Core::Stop() {
  ledger_.Stop();
  builders_.Stop();
  own_builds_.Stop();
  runners_.Stop();
}

// Builds are worth less than the wait for them.
void Dispatcher::Core::Drain() {
  drain_.request_stop();
  ledger_.Stop();
  builders_.Stop();
  own_builds_.Stop();
  runners_.Drain();
}

void Dispatcher::Core::Join() {
  builders_.Join();
  own_builds_.Join();
  runners_.Join();
  helpers_.Join();
}

// ---- queues and reports -----------------------------------------------------------------------

void Dispatcher::Core::Submit(search::Trial trial) {
  auto item = std::make_unique<BuildItem>();
  item->task = trial.task;
  item->steps = search::PrintCandidate(trial.candidate);
  InFlightTrial begun = ledger_.Begin(std::move(trial));
  begun.instants.set_chosen_us(NowMicros());
  item->work = std::move(begun);
  RequestReference(item->task);
  builders_.Push(std::move(item));
}

void Dispatcher::Core::RequestReference(int task) {
  if (references_.Request(task)) BuildReference(task);
}

void Dispatcher::Core::BuildReference(int task, std::string not_by) {
  auto item = std::make_unique<BuildItem>();
  item->task = task;
  item->avoid_worker = std::move(not_by);
  item->steps = store::kNoSteps;
  item->work = ReferenceBuild();
  builders_.PushFirst(std::move(item));
}

void Dispatcher::Core::ToBuilders(int task, std::string steps, FinalistBuild finalist) {
  auto item = std::make_unique<BuildItem>();
  item->task = task;
  item->steps = std::move(steps);
  item->work = std::move(finalist);
  builders_.Push(std::move(item));
}

void Dispatcher::Core::ToRunners(RunItemPtr item) {
  RunItemPtr ready = references_.Await(std::move(item));
  if (ready != nullptr) runners_.Push(std::move(ready));
}

BusyMeter::Reading Dispatcher::Core::busy() const {
  std::lock_guard lock(busy_mutex_);
  return busy_.Read(Clock::Real().MonotonicSeconds());
}

// Puts new notices behind the ones that were seen before.
std::vector<std::string> Dispatcher::Core::notices() {
  std::vector<std::string> now = references_.notices();
  if (const std::string noise = noise_.notice(); !noise.empty()) now.push_back(noise);
  const std::vector<std::string> of_devices = unlike_.notices();
  now.insert(now.end(), of_devices.begin(), of_devices.end());
  std::lock_guard lock(notices_mutex_);
  for (std::string& notice : now) {
    if (std::ranges::find(notices_, notice) == notices_.end())
      notices_.push_back(std::move(notice));
  }
  return notices_;
}

void Dispatcher::Core::NoteBusy(const LeasedWorker& runner, double run_s, BusyMeter::Use use) {
  const int number = options_.known_runners->Of(runner.worker())->number;
  std::lock_guard lock(busy_mutex_);
  busy_.Add(number, Clock::Real().MonotonicSeconds(), run_s, use);
}

Dispatcher::Waiting Dispatcher::Core::waiting() const {
  Waiting result;
  const auto builder = builders_.BlockedReason();
  const auto runner = runners_.BlockedReason();
  result.for_builder = builder.has_value();
  result.for_runner = runner.has_value();
  result.problem = runner.value_or(builder.value_or(""));
  if (result.problem.empty()) result.problem = builder.value_or("");
  return result;
}

// ---- calls that failed ----------------------------------------------------------------------

int Dispatcher::Core::MostAttempts(const BuildItem& item) const {
  const bool is_reference = std::holds_alternative<ReferenceBuild>(item.work);
  return is_reference ? options_.max_reference_attempts : options_.max_attempts;
}

int Dispatcher::Core::MostAttempts(const RunItem& /*item*/) const { return options_.max_attempts; }

template <typename Item>
Attempt Dispatcher::Core::Failed(std::unique_ptr<Item> item, const LeasedWorker& lease,
                                 const CallResult& result, const std::stop_token& stop) {
  if (stop.stop_requested()) return {};
  if (IsYield(result.status)) {
    return {.again = std::move(item), .rest = std::string(Message(result.status))};
  }
  Attempt attempt;
  // A worker whose lease is lost is gone, so there is nothing to leave alone.
  if (!lease.lost()) attempt.complaint = Message(result.status);
  const bool counts = result.reached && !IsBusy(result.status);
  if (counts) ++item->attempts;
  if (item->attempts < MostAttempts(*item)) {
    LogDebug("job {}: {} goes to another worker: {}: {}", job_.id, NameOf(*item), Describe(lease),
             Message(result.status));
    attempt.again = std::move(item);
    return attempt;
  }
  const std::string cause = fmt::format("given up after {} attempts, the last one on {}: {}",
                                        item->attempts, Describe(lease), Message(result.status));
  GiveUp(std::move(item), cause);
  return attempt;
}

template Attempt Dispatcher::Core::Failed(BuildItemPtr, const LeasedWorker&, const CallResult&,
                                          const std::stop_token&);
template Attempt Dispatcher::Core::Failed(RunItemPtr, const LeasedWorker&, const CallResult&,
                                          const std::stop_token&);

namespace {

v1::TrialResult AbandonedResult(const std::string& cause) {
  v1::TrialResult result;
  result.set_error(v1::UNKNOWN_ERROR);
  result.set_message(cause);
  return result;
}

}  // namespace

void Dispatcher::Core::GiveUp(BuildItemPtr item, const std::string& cause) {
  if (auto* trial = std::get_if<InFlightTrial>(&item->work)) {
    Finish(item->task, {.in_hand = std::move(*trial), .steps = std::move(item->steps)}, nullptr,
           AbandonedResult(cause), std::nullopt);
  } else if (auto* finalist = std::get_if<FinalistBuild>(&item->work)) {
    // The finalist is not at fault: it keeps its first reading, and the others race without it.
    EntryBuilt(item->task, *finalist, v1::BuildReply());
  } else {
    ledger_.Fail(Unavailable("{} could not be built: {}", NameOf(*item), cause));
  }
}

void Dispatcher::Core::GiveUp(RunItemPtr item, const std::string& cause) {
  if (auto* trial = std::get_if<BuiltTrial>(&item->work)) {
    return Finish(item->task, std::move(*trial), nullptr, AbandonedResult(cause), std::nullopt);
  }
  LogWarn("job {}: {} stay as they are: {}", job_.id, NameOf(*item), cause);
  EndRace();
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
  return core_->ledger().Next(until_s);
}
std::vector<uint32_t> Dispatcher::Abandon(int task) { return core_->ledger().Abandon(task); }
void Dispatcher::Wake() { core_->ledger().Wake(); }
std::vector<search::Correction> Dispatcher::TakeCorrections() {
  return core_->ledger().Deliverable(core_->readings().TakeCorrections());
}
Status Dispatcher::MeasureAgain(std::vector<Finalists> lists, double until_s) {
  return core_->MeasureAgain(std::move(lists), until_s);
}
Status Dispatcher::EndIdleReadings() { return core_->readings().End(); }
BusyMeter::Reading Dispatcher::busy() const { return core_->busy(); }
void Dispatcher::Stop() { core_->Stop(); }
void Dispatcher::Drain() { core_->Drain(); }
void Dispatcher::Join() { core_->Join(); }
Dispatcher::Waiting Dispatcher::waiting() const { return core_->waiting(); }
std::vector<std::string> Dispatcher::notices() const { return core_->notices(); }

}  // namespace kiln::scheduler
