// The insides of the dispatcher (dispatch.h): this class joins the pools of workers with the parts
// that keep the state. Each part has its own mutex and calls no other part while it holds the
// mutex:
//
//   trial_ledger     where each trial is, from Submit to Next; what ends the job
//   task_references  by task, the program that answers are compared with, and the items that wait
//                    for it
//   idle_readings    further readings of the best while a device is idle
//   result_writer    the thread that takes results to the store
//   own_builds       candidates whose binaries the user makes
//   worker_requests  the requests to workers
//   worker_pool      the queues and the leases; it calls all of this
//
// Calls of workers hold no thread. What follows an answer runs in the thread that brought it, which
// must not be held up: references, races, readings of elites and phases of the machine have threads
// of their own (helper_threads.h).
//
// The functions of this class stand in three files:
//
//   dispatch.cc         start and end of the job, its queues, calls that failed
//   dispatch_trials.cc  building and measuring
//   dispatch_again.cc   measuring the best again: elites while a device is idle, final race
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_items.h"
#include "scheduler/dispatch/idle_readings.h"
#include "scheduler/dispatch/noise_meter.h"
#include "scheduler/dispatch/own_builds.h"
#include "scheduler/dispatch/result_writer.h"
#include "scheduler/dispatch/task_references.h"
#include "scheduler/dispatch/trial_ledger.h"
#include "scheduler/dispatch/worker_pool.h"
#include "scheduler/dispatch/worker_requests.h"
#include "scheduler/remeasure/unlike_devices.h"
#include "scheduler/values/helper_threads.h"
#include "scheduler/values/worker_calls.h"

namespace kiln::scheduler {

class Dispatcher::Core {
 public:
  Core(Job job, const DispatchOptions& options, LeaseSource& builders, LeaseSource& runners,
       LeasedWorker first_runner, store::Store& store, std::function<void()> committed);
  ~Core();

  int capacity() const {
    return builders_.usable() + job_.own_builds.at_once + runners_.usable() + options_.queued;
  }
  void Submit(search::Trial trial);
  TrialLedger& ledger() { return ledger_; }
  IdleReadings& readings() { return readings_; }
  std::vector<std::string> notices();
  Status MeasureAgain(std::vector<Finalists> lists, double until_s);
  void Stop();
  void Drain();
  // Waits until no worker is in use any more, after Stop or Drain.
  void Join();
  BusyMeter::Reading busy() const;
  Waiting waiting() const;

 private:
  // ---- dispatch.cc
  // Returns unix time for TrialInstants.
  int64_t NowMicros() const { return absl::ToUnixMicros(options_.clock->Now()); }
  using Hold = ExclusivePhases::Hold;
  // Has `work` run within a phase of the kind: here if no phases take turns, else in a helper. The
  // hold is empty if no phases take turns, or after a stop.
  void InPhase(ExclusivePhases::Kind kind, std::stop_token stop, std::function<void(Hold)> work);
  // Waits for the phase.
  Hold EnterPhase(ExclusivePhases::Kind kind, std::stop_token stop);
  WorkerPool::Options PoolOptions(std::string name, int most_leases) const;
  WorkerPool::Options RunnerOptions() const;
  // Returns what a runner without a trial does; null if the job does not use idle time.
  WorkerPool::Meanwhile RunnerMeanwhile();
  std::string ReasonUnusable(const v1::WorkerState& runner) const;
  void RequestReference(int task);
  // `not_by` names a builder. Another one builds the reference if there is another one.
  void BuildReference(int task, std::string not_by = {});
  void ToBuilders(int task, std::string steps, FinalistBuild finalist);
  // Queues the item for runners once the reference of its task is built.
  void ToRunners(RunItemPtr item);
  void NoteBusy(const LeasedWorker& runner, double run_s, BusyMeter::Use use);
  // Returns after how many attempts that failed the item is given up.
  int MostAttempts(const BuildItem& item) const;
  int MostAttempts(const RunItem& item) const;
  // Handles a call that failed: the item goes back to its queue, or is given up.
  template <typename Item>
  Attempt Failed(std::unique_ptr<Item> item, const LeasedWorker& lease, const CallResult& result,
                 const std::stop_token& stop);
  void GiveUp(BuildItemPtr item, const std::string& cause);
  void GiveUp(RunItemPtr item, const std::string& cause);

  // ---- dispatch_trials.cc
  struct BuildInHand;
  struct RunInHand;
  void Build(BuildItemPtr item, const LeasedWorker& lease, std::stop_token pool_stop,
             WorkerPool::Done done);
  void CallBuild(const std::shared_ptr<BuildInHand>& in_hand, const LeasedWorker& lease);
  // Handles the end of a call of Build.
  Attempt BuildEnded(BuildInHand& in_hand, const LeasedWorker& lease, CallResult result,
                     v1::BuildReply reply);
  // Returns OK if the reply can be what was asked for.
  Status CheckReply(const BuildItem& item, const std::string& builder, const v1::BuildReply& reply);
  v1::BuildRequest RequestOf(const BuildItem& item) const;
  // Checks that the builder made what it was asked for, and signed it for this item.
  Status CheckBuilt(const BuildItem& item, const std::string& builder,
                    const v1::Artifact& artifact);
  // Handles a builder's refusal of the item: another builder is asked, if there is one.
  Attempt Refused(BuildItemPtr item, const LeasedWorker& lease, const Status& why);
  // Tells whether the user makes the item's binary.
  bool IsOwnBuild(const BuildItem& item) const;
  void BuildOwn(OwnBuildItem item, const std::stop_token& queue_stop);
  void Built(BuildItem& item, const std::string& builder, v1::BuildReply reply);
  void TrialBuilt(BuildItem& item, InFlightTrial trial, const std::string& builder,
                  v1::BuildReply reply);
  void ReferenceBuilt(const BuildItem& item, const std::string& builder, v1::BuildReply reply);
  void Measure(RunItemPtr item, const LeasedWorker& lease, std::stop_token pool_stop,
               WorkerPool::Done done);
  void MeasureTrial(RunItemPtr item, const LeasedWorker& lease, const std::stop_token& stop,
                    WorkerPool::Done done);
  // Handles the end of a trial's call of Measure.
  struct TrialInHand;
  Attempt TrialEnded(TrialInHand& in_hand, const LeasedWorker& lease, CallResult result,
                     v1::MeasureReply& reply);
  // Tells whether the builder signed the trial's program wrongly, which a runner has refused.
  bool IsForged(const RunItem& item);
  // Has another builder build the trial anew.
  void BuildElsewhere(RunItemPtr item, const Status& why);
  // Sends the reference along if the runner does not have it.
  void CallMeasure(const LeasedWorker& lease, std::shared_ptr<v1::MeasureRequest> request,
                   std::shared_ptr<const v1::Artifact> reference, const std::stop_token& stop,
                   WorkerCalls::Done<v1::MeasureReply> done);
  Attempt ReferenceTookTooLong(RunItemPtr item, const LeasedWorker& lease, const CallResult& result,
                               const std::stop_token& stop);
  void NoteReferenceFailure(int task, const v1::Artifact& reference, const Status& status);
  store::Record RecordOf(int task, const BuiltTrial& trial) const;
  // `runner` is null if the trial failed before it reached a runner.
  void Finish(int task, BuiltTrial trial, const LeasedWorker* runner, const v1::TrialResult& result,
              std::optional<double> reference_cost_s);

  // ---- dispatch_again.cc
  // Does what CallMeasure does, and waits for the end.
  CallResult AwaitMeasure(const LeasedWorker& lease, std::shared_ptr<v1::MeasureRequest> request,
                          std::shared_ptr<const v1::Artifact> reference,
                          const std::stop_token& stop, v1::MeasureReply* reply);
  CallResult MeasureOneAgain(const LeasedWorker& lease, int task, const v1::Artifact& artifact,
                             RemeasureReason why, const std::stop_token& stop,
                             v1::MeasureReply* reply);
  void BoundReading(int task, v1::TrialResult& result) const;
  // Returns the reading of an elite that the runner takes next, while it would be idle.
  WorkerPool::Piece NextReading(const LeasedWorker& lease, const std::stop_token& stop);
  Attempt ReadElite(const EliteSet::Turn& turn, const std::string& device,
                    const LeasedWorker& lease, const std::stop_token& stop);
  std::shared_ptr<Race> RaceOf(Finalists list, double until_s) const;
  void ToRace(int task, std::shared_ptr<Race> race);
  // Notes that a finalist was built or failed to build.
  void EntryBuilt(int task, FinalistBuild& finalist, v1::BuildReply reply);
  Attempt RunRace(RunItemPtr item, const LeasedWorker& lease, const std::stop_token& stop);
  void EndRace();

  const Job job_;
  const DispatchOptions options_;
  store::Store& store_;
  const std::function<void()> committed_;
  WorkerCalls calls_;

  // Ends races, which take longer than a trial.
  std::stop_source drain_;
  TrialLedger ledger_;
  TaskReferences references_;
  NoiseMeter noise_;
  std::mutex notices_mutex_;
  std::vector<std::string> notices_;  // in the order in which they were first reported
  IdleReadings readings_;
  DeviceDrifts drifts_;
  UnlikeDevices unlike_;
  mutable std::mutex busy_mutex_;
  BusyMeter busy_;

  HelperThreads helpers_;
  WorkerPool builders_;  // the work of the pools uses the members above
  WorkerPool runners_;
  OwnBuildQueue own_builds_;
  ResultWriter writer_;
  // Shows the queues of the pools.
  std::shared_ptr<void> shown_;
};

}  // namespace kiln::scheduler
