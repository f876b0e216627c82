#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "scheduler/device_keys.h"
#include "scheduler/dispatch_core.h"
#include "scheduler/messages.h"

namespace kiln::scheduler {
namespace {

// The best are checked again with other inputs where the reference takes no longer than this: it
// has to run for them, once. While trials may come it holds the device up.
constexpr double kCheapReference_s = 0.05;
constexpr double kFinalReference_s = 5;
constexpr uint64_t kOtherInputs = 1;  // stream of the job's seed

}  // namespace

// ---- the best, again ------------------------------------------------------------------------

v1::MeasureRequest Dispatcher::Core::FinalRequestOf(int task, const v1::Artifact& artifact,
                                                    bool idle) const {
  v1::MeasureRequest request = RequestOf(task, artifact);
  const double reference_s = tasks_[task].facts.reference_cost_s;
  const double longest_s = idle ? kCheapReference_s : kFinalReference_s;
  if (reference_s > 0 && reference_s <= longest_s && !tasks_[task].other_inputs_fail) {
    request.set_seed(SplitSeed(job_.options.seed(), kOtherInputs));
  }
  SetFinalReading(job_.options.trials(), *request.mutable_options());
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
      if (reference == nullptr) return {Unavailable("its reference is being made again"), false};
      request = FinalRequestOf(task, artifact, idle);
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
  return store_.SetFinals(finals);
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

Status Dispatcher::Core::MeasureAgain(std::vector<Finalists> lists, double until_s) {
  std::vector<TrialItemPtr> builds, whole;
  for (Finalists& list : lists) {
    if (list.entries.empty()) continue;
    const auto race = std::make_shared<Race>();
    race->until_s = until_s;
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
  search::DeviceDrift* drift = nullptr;
  {
    std::lock_guard lock(mutex_);
    drift = &drifts_[device];
  }
  const CallResult call = scheduler::RunRace(*item->race, device, measure, *drift, &finals);
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

}  // namespace kiln::scheduler
