#include <future>
#include <utility>

#include "base/log.h"
#include "rpc/yield_reply.h"
#include "scheduler/dispatch/dispatch_core.h"
#include "scheduler/dispatch/worker_replies.h"
#include "scheduler/dispatch/yield_watch.h"
#include "scheduler/values/combined_stop.h"
#include "scheduler/values/device_keys.h"

namespace kiln::scheduler {

CallResult Dispatcher::Core::AwaitMeasure(const LeasedWorker& lease,
                                          std::shared_ptr<v1::MeasureRequest> request,
                                          std::shared_ptr<const v1::Artifact> reference,
                                          const std::stop_token& stop, v1::MeasureReply* reply) {
  // The thread that sets the value may still be about it when this one goes on.
  const auto ended = std::make_shared<std::promise<CallResult>>();
  std::future<CallResult> result = ended->get_future();
  CallMeasure(lease, std::move(request), std::move(reference), stop,
              [ended, reply](CallResult end, v1::MeasureReply& answer) {
                *reply = std::move(answer);
                ended->set_value(std::move(end));
              });
  return result.get();
}

CallResult Dispatcher::Core::MeasureOneAgain(const LeasedWorker& lease, int task,
                                             const v1::Artifact& artifact, RemeasureReason why,
                                             const std::stop_token& stop, v1::MeasureReply* reply) {
  while (true) {
    const std::optional<AnswerCheck> check = references_.CheckOf(task, "");
    if (!check.has_value()) return {Unavailable("its reference is being made again"), false};
    const auto request =
        std::make_shared<v1::MeasureRequest>(RemeasureRequest(job_, task, *check, artifact, why));
    CallResult result = AwaitMeasure(lease, request, check->reference, stop, reply);
    if (result.status.ok() && !reply->has_result()) {
      result.status = Unavailable("the answer has no result");
    }
    if (result.status.ok()) {
      BoundReading(task, *reply->mutable_result());
      NoteBusy(lease, reply->result().run_s(), BusyMeter::Use::kElite);
      return result;
    }
    // The reference fails now, but did not fail with the inputs of the trials.
    const bool other_inputs = request->seed() != job_.options.seed();
    if (result.status.code() != StatusCode::kInternal || !other_inputs) return result;
    LogWarn("job {}: task {} is checked with the same inputs only: {}", job_.id, task,
            Message(result.status));
    references_.AvoidOtherInputs(task);
    reply->Clear();
  }
}

// Refuses costs that no device can have, as for trials.
void Dispatcher::Core::BoundReading(int task, v1::TrialResult& result) const {
  if (result.error() != v1::NO_ERROR) return;
  store::Record reading;
  reading.workload_key = job_.tasks[task].workload_key;
  reading.target = job_.tasks[task].target;
  reading.flop_count = job_.tasks[task].flop_count;
  reading.costs_s.assign(result.costs_s().begin(), result.costs_s().end());
  const Status plausible = CheckReportedCosts(reading);
  if (plausible.ok()) return;
  result.set_error(v1::UNKNOWN_ERROR);
  result.set_message(std::string(Message(plausible)));
  result.clear_costs_s();
}

// ---- elites --------------------------------------------------------------------------------

WorkerPool::Piece Dispatcher::Core::NextReading(const LeasedWorker& lease,
                                                const std::stop_token& stop) {
  if (!ledger_.IsOpen()) return nullptr;
  std::string device = DeviceIdentity(lease.worker());
  const std::optional<EliteSet::Turn> turn = readings_.Next(device);
  if (!turn.has_value()) return nullptr;
  return [this, turn = *turn, device = std::move(device), stop, &lease] {
    return ReadElite(turn, device, lease, stop);
  };
}

Attempt Dispatcher::Core::ReadElite(const EliteSet::Turn& turn, const std::string& device,
                                    const LeasedWorker& lease, const std::stop_token& stop) {
  const Hold phase = EnterPhase(ExclusivePhases::Kind::kMeasurement, stop);
  v1::MeasureReply reply;
  const CallResult call =
      MeasureOneAgain(lease, turn.task, *turn.artifact, RemeasureReason::kIdle, stop, &reply);
  Attempt attempt;
  if (call.status.ok()) {
    readings_.Note(turn, device, reply.result());
    ledger_.PokeWriter();
  } else if (IsYield(call.status)) {
    attempt.rest = Message(call.status);
  } else if (!stop.stop_requested() && !lease.lost()) {
    attempt.complaint = Message(call.status);
  }
  return attempt;
}

// ---- finalists ------------------------------------------------------------------------------

std::shared_ptr<Race> Dispatcher::Core::RaceOf(Finalists list, double until_s) const {
  auto race = std::make_shared<Race>();
  race->until_s = until_s;
  for (Finalist& finalist : list.entries) {
    auto artifact = readings_.ArtifactOf(finalist.record_id);
    race->Add(std::move(finalist), std::move(artifact));
  }
  return race;
}

Status Dispatcher::Core::MeasureAgain(std::vector<Finalists> lists, double until_s) {
  std::erase_if(lists, [](const Finalists& list) { return list.entries.empty(); });
  ledger_.BeginRaces(lists.size());
  for (Finalists& list : lists) {
    const int task = list.task;
    const std::shared_ptr<Race> race = RaceOf(std::move(list), until_s);
    RequestReference(task);
    // Missing() is called before the first item goes to a builder: from then on the builders own
    // the race.
    const std::vector<size_t> missing = race->Missing();
    if (missing.empty()) ToRace(task, race);
    for (const size_t entry : missing) {
      ToBuilders(task, race->entries[entry].finalist.steps, {race, entry});
    }
  }
  return ledger_.WaitForRaces();
}

void Dispatcher::Core::ToRace(int task, std::shared_ptr<Race> race) {
  auto item = std::make_unique<RunItem>();
  item->task = task;
  item->work = std::move(race);
  // A race beside another one on a device would keep it from the next device that is free.
  item->in_turn = true;
  item->last_choices = unlike_.Runners();
  ToRunners(std::move(item));
}

void Dispatcher::Core::EntryBuilt(int task, FinalistBuild& finalist, v1::BuildReply reply) {
  if (finalist.race->SetBuilt(finalist.entry, std::move(reply))) ToRace(task, finalist.race);
}

Attempt Dispatcher::Core::RunRace(RunItemPtr item, const LeasedWorker& lease,
                                  const std::stop_token& stop) {
  Race& race = *std::get<std::shared_ptr<Race>>(item->work);
  const std::string device = DeviceIdentity(lease.worker());
  for (Race::Entry& entry : race.entries) {
    store::Remeasurement& known = entry.finalist.known;
    if (known.device == device) continue;
    // A record has the readings of one device only; readings_ may have those of this device.
    store::Remeasurement own = readings_.KnownOn(entry.finalist.record_id, device);
    own.run_s = known.run_s;
    if (!own.costs_s.empty()) known = std::move(own);
  }
  const YieldWatch watch(lease);
  const CombinedStop call_stop(stop, watch.token());
  const MeasureOnce measure = [&](const v1::Artifact& artifact, v1::MeasureReply* reply) {
    return MeasureOneAgain(lease, item->task, artifact, RemeasureReason::kFinals, call_stop.token(),
                           reply);
  };
  std::vector<store::Remeasurement> remeasured;
  const CallResult call = scheduler::RunRace(
      race, device, measure, [&lease] { return lease.wanted(); }, drifts_.Of(device), &remeasured);
  // The race goes on with its readings so far when the job has a runner again.
  if (call.status.code() == StatusCode::kAborted && !stop.stop_requested())
    return {.again = std::move(item), .complaint = ""};
  if (!call.status.ok()) return Failed(std::move(item), lease, call, stop);
  const Status kept = store_.SetRemeasurements(remeasured);
  if (!kept.ok()) ledger_.Fail(Annotate(kept, "results cannot be stored"));
  EndRace();
  return {};
}

void Dispatcher::Core::EndRace() {
  committed_();
  ledger_.EndRace();
}

}  // namespace kiln::scheduler
