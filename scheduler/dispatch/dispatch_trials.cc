#include <cmath>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_scope.h"
#include "base/text/utf8.h"
#include "rpc/trace_context.h"
#include "scheduler/dispatch/dispatch_core.h"
#include "scheduler/dispatch/worker_replies.h"
#include "scheduler/values/combined_stop.h"
#include "scheduler/values/messages.h"

namespace kiln::scheduler {
namespace {

// Follows the id of the builder that generated the source.
constexpr std::string_view kOwnBuild = ", compiled by the user";

// Tells whether the builder would answer the same again. Another builder may not: one of the two is
// mistaken.
bool IsRefusal(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kFailedPrecondition ||
         status.code() == StatusCode::kPermissionDenied;
}

// Turns an implausible result into an error. Otherwise a runner that lies, or whose clock is
// broken, would have the best record for ever. Costs of programs that are not run are made up.
void RefuseImplausible(store::Record& record) {
  const Status plausible = CheckReportedCosts(record);
  if (plausible.ok()) return;
  record.error = v1::UNKNOWN_ERROR;
  record.message = Message(plausible);
  record.costs_s.clear();
}

}  // namespace

// ---- building -------------------------------------------------------------------------------

// A build that goes on.
struct Dispatcher::Core::BuildInHand {
  BuildInHand(BuildItemPtr build, std::stop_token pool_stop, WorkerPool::Done end)
      : item(std::move(build)),
        stop(std::move(pool_stop), AbandonedOf(*item)),
        done(std::move(end)) {}

  BuildItemPtr item;
  const CombinedStop stop;
  const WorkerPool::Done done;
  Hold turn;
  int64_t sent_us = 0;
  std::string trial, traceparent;
};

void Dispatcher::Core::Build(BuildItemPtr item, const LeasedWorker& lease,
                             std::stop_token pool_stop, WorkerPool::Done done) {
  const auto in_hand =
      std::make_shared<BuildInHand>(std::move(item), std::move(pool_stop), std::move(done));
  const auto begin = [this, in_hand, &lease] {
    InPhase(ExclusivePhases::Kind::kWork, in_hand->stop.token(),
            [this, in_hand, &lease](Hold turn) {
              in_hand->turn = std::move(turn);
              CallBuild(in_hand, lease);
            });
  };
  // The program of a reference is made first, which may take a while.
  if (!std::holds_alternative<ReferenceBuild>(in_hand->item->work)) return begin();
  helpers_.Run(begin);
}

void Dispatcher::Core::CallBuild(const std::shared_ptr<BuildInHand>& in_hand,
                                 const LeasedWorker& lease) {
  const std::stop_token stop = in_hand->stop.token();
  if (stop.stop_requested()) {
    in_hand->turn = Hold();
    return in_hand->done({});
  }
  const auto end = [this, in_hand, &lease](CallResult result, v1::BuildReply& reply) {
    in_hand->turn = Hold();
    in_hand->done(BuildEnded(*in_hand, lease, std::move(result), std::move(reply)));
  };
  v1::BuildRequest request = RequestOf(*in_hand->item);
  in_hand->trial = request.trial();
  in_hand->traceparent = request.traceparent();
  in_hand->sent_us = NowMicros();
  const bool is_reference = std::holds_alternative<ReferenceBuild>(in_hand->item->work);
  calls_.Build(lease.worker().address(), std::move(request),
               {.connect = options_.connect,
                .deadline = BuildDeadline(job_, options_),
                .lost = lease.lost_token(),
                .stop = stop},
               [this, end, is_reference](CallResult result, v1::BuildReply& reply) {
                 if (!is_reference) return end(std::move(result), reply);
                 // The known elements of the outputs are computed, which may take a while, too.
                 helpers_.Run([end, result, reply = std::move(reply)]() mutable {
                   end(std::move(result), reply);
                 });
               });
}

Status Dispatcher::Core::CheckReply(const BuildItem& item, const std::string& builder,
                                    const v1::BuildReply& reply) {
  if (!reply.has_artifact()) {
    if (reply.error() != v1::NO_ERROR) return OkStatus();
    return Internal("the answer has neither an artifact nor an error");
  }
  if (IsOwnBuild(item) && reply.source().empty()) {
    return Internal("the answer has no source of the program, which the user compiles");
  }
  return CheckBuilt(item, builder, reply.artifact());
}

Attempt Dispatcher::Core::BuildEnded(BuildInHand& in_hand, const LeasedWorker& lease,
                                     CallResult result, v1::BuildReply reply) {
  const LogScope log_ids(LogIdsOf(in_hand.trial, in_hand.traceparent));
  BuildItemPtr item = std::move(in_hand.item);
  const std::stop_token stop = in_hand.stop.token();
  if (result.status.ok()) result.status = CheckReply(*item, lease.worker().id(), reply);
  if (result.status.ok()) {
    if (auto* trial = std::get_if<InFlightTrial>(&item->work)) {
      trial->instants.set_build_sent_us(in_hand.sent_us);
      trial->instants.set_build_received_us(NowMicros());
    }
    if (!item->refused_by.empty()) {
      LogWarn("job {}: builder {} refused {}, which builder {} has built", job_.id,
              item->refused_by, NameOf(*item), lease.worker().id());
    }
    if (reply.has_artifact() && IsOwnBuild(*item)) {
      own_builds_.Push({std::move(item), lease.worker().id(), std::move(reply)});
    } else {
      Built(*item, lease.worker().id(), std::move(reply));
    }
    return {};
  }
  if (result.reached && IsRefusal(result.status) && !stop.stop_requested()) {
    return Refused(std::move(item), lease, result.status);
  }
  return Failed(std::move(item), lease, result, stop);
}

// Internal: the builder is at fault, so another one is asked.
Status Dispatcher::Core::CheckBuilt(const BuildItem& item, const std::string& builder,
                                    const v1::Artifact& artifact) {
  const bool is_reference = std::holds_alternative<ReferenceBuild>(item.work);
  const Status same = references_.CheckProgram(item.task, is_reference, artifact);
  if (!same.ok()) {
    return Internal("it made another program than {}: {}", NameOf(item), Message(same));
  }
  const std::string trial = TrialIdOf(job_, item);
  if (!artifact.signature().empty() && artifact.trial() != trial) {
    return Internal("it signed {} for trial '{}', expected trial '{}'", NameOf(item),
                    OneLine(artifact.trial()), trial);
  }
  // A builder's artifact without a binary has nothing to sign.
  if (options_.signatures == nullptr || IsOwnBuild(item)) return OkStatus();
  // Only a trial is built again after a runner has refused its program.
  const bool is_trial = std::holds_alternative<InFlightTrial>(item.work);
  if (is_trial && !options_.trust->IsDue(builder)) return OkStatus();
  const Status signature = options_.signatures->Check(artifact, trial, "program");
  return signature.ok() ? OkStatus() : Internal("{}: {}", NameOf(item), Message(signature));
}

Attempt Dispatcher::Core::Refused(BuildItemPtr item, const LeasedWorker& lease, const Status& why) {
  const std::string& builder = lease.worker().id();
  if (item->refused_by.empty()) item->refused_by = builder;
  const bool by_two = item->refused_by != builder;
  const bool is_asked_again = ++item->refusals > 1;
  if (!by_two && item->refusals < options_.max_attempts) {
    Attempt attempt{.again = std::move(item), .complaint = ""};
    // If nobody else took the item, this builder is left alone for a moment, because another one
    // may be about to come.
    if (is_asked_again || !builders_.HasOther(builder)) attempt.complaint = Message(why);
    return attempt;
  }
  const bool is_of_the_item = why.code() == StatusCode::kInvalidArgument &&
                              !std::holds_alternative<ReferenceBuild>(item->work);
  if (!by_two || !is_of_the_item) {
    ledger_.Fail(Annotate(why, fmt::format("builder {} at {} refuses {}", builder,
                                           lease.worker().address(), NameOf(*item))));
    return {};
  }
  v1::BuildReply reply;
  reply.set_error(v1::INSTANTIATION_ERROR);
  reply.set_message(
      fmt::format("builders {} and {} refuse it: {}", item->refused_by, builder, Message(why)));
  Built(*item, builder, std::move(reply));
  return {};
}

bool Dispatcher::Core::IsOwnBuild(const BuildItem& item) const {
  return job_.own_builds.at_once > 0 && !std::holds_alternative<ReferenceBuild>(item.work);
}

void Dispatcher::Core::BuildOwn(OwnBuildItem item, const std::stop_token& queue_stop) {
  const CombinedStop either(queue_stop, AbandonedOf(*item.build));
  const std::stop_token stop = either.token();
  const ExclusivePhases::Hold turn = EnterPhase(ExclusivePhases::Kind::kWork, stop);
  if (stop.stop_requested()) return;
  const double start_s = Clock::Real().MonotonicSeconds();
  auto answer = job_.own_builds.build(BuildCallOf(job_, item), OwnBuildLimit(job_), stop);
  // After a stop nobody waits for the item, and another error has ended the job.
  if (!answer.ok() && answer.status().code() != StatusCode::kDeadlineExceeded) return;
  BoundReply(BuildDeadline(job_, options_), item.reply);
  SetOwnBinary(job_, std::move(answer), Clock::Real().MonotonicSeconds() - start_s, item.reply);
  Built(*item.build, item.builder, std::move(item.reply));
}

v1::BuildRequest Dispatcher::Core::RequestOf(const BuildItem& item) const {
  const bool reference = std::holds_alternative<ReferenceBuild>(item.work);
  v1::BuildRequest request = BuildRequestOf(
      job_, item, reference ? references_.DagOf(item.task) : job_.tasks[item.task].dag);
  request.set_source_only(IsOwnBuild(item));
  return request;
}

void Dispatcher::Core::Built(BuildItem& item, const std::string& builder, v1::BuildReply reply) {
  if (auto* trial = std::get_if<InFlightTrial>(&item.work)) {
    TrialBuilt(item, std::move(*trial), builder, std::move(reply));
  } else if (auto* finalist = std::get_if<FinalistBuild>(&item.work)) {
    EntryBuilt(item.task, *finalist, std::move(reply));
  } else {
    ReferenceBuilt(item, builder, std::move(reply));
  }
}

void Dispatcher::Core::TrialBuilt(BuildItem& item, InFlightTrial trial, const std::string& builder,
                                  v1::BuildReply reply) {
  BuiltTrial built;
  built.in_hand = std::move(trial);
  built.steps = std::move(item.steps);
  BoundReply(BuildDeadline(job_, options_), reply);
  built.build_s = reply.build_s();
  built.build_times = reply.times();
  built.builder = builder;
  if (reply.error() != v1::NO_ERROR) {
    v1::TrialResult result;
    result.set_error(reply.error());
    result.set_message(reply.message());
    return Finish(item.task, std::move(built), nullptr, result, std::nullopt);
  }
  built.artifact = std::make_shared<const v1::Artifact>(std::move(*reply.mutable_artifact()));
  auto run = std::make_unique<RunItem>();
  run->task = item.task;
  run->attempts = item.attempts;
  run->work = std::move(built);
  if (builders_.HasOther(builder) && references_.NeedsOther(item.task, builder)) {
    BuildReference(item.task, builder);
  }
  ToRunners(std::move(run));
}

void Dispatcher::Core::ReferenceBuilt(const BuildItem& item, const std::string& builder,
                                      v1::BuildReply reply) {
  if (reply.error() != v1::NO_ERROR) {
    return ledger_.Fail(FailedPrecondition("{} does not build, so no answer can be checked: {}: {}",
                                           NameOf(item), v1::ErrorKind_Name(reply.error()),
                                           CutText(reply.message(), 512)));
  }
  if (job_.own_builds.at_once > 0 && !reply.artifact().signature().empty()) {
    return ledger_.Fail(FailedPrecondition(
        "builder {} signs programs, so this farm's runners take no others, and those that a build "
        "function of the user makes have no signature; measure them on a farm without keys",
        builder));
  }
  for (RunItemPtr& ready :
       references_.SetBuilt(item.task, std::move(*reply.mutable_artifact()), builder)) {
    runners_.Push(std::move(ready));
  }
}

// ---- measuring ------------------------------------------------------------------------------

// A measurement that goes on.
struct Dispatcher::Core::RunInHand {
  RunInHand(RunItemPtr run, std::stop_token pool_stop, WorkerPool::Done end)
      : item(std::move(run)),
        stop(std::move(pool_stop), AbandonedOf(*item)),
        done(std::move(end)) {}

  RunItemPtr item;
  const CombinedStop stop;
  const WorkerPool::Done done;
  Hold turn;
};

void Dispatcher::Core::Measure(RunItemPtr item, const LeasedWorker& lease,
                               std::stop_token pool_stop, WorkerPool::Done done) {
  const auto in_hand =
      std::make_shared<RunInHand>(std::move(item), std::move(pool_stop), std::move(done));
  const std::stop_token stop = in_hand->stop.token();
  InPhase(ExclusivePhases::Kind::kMeasurement, stop, [this, in_hand, stop, &lease](Hold turn) {
    in_hand->turn = std::move(turn);
    const auto end = [in_hand](Attempt attempt) {
      in_hand->turn = Hold();
      in_hand->done(std::move(attempt));
    };
    if (stop.stop_requested()) return end({});
    if (std::holds_alternative<BuiltTrial>(in_hand->item->work)) {
      return MeasureTrial(std::move(in_hand->item), lease, stop, end);
    }
    helpers_.Run([this, in_hand, stop, end, &lease] {
      const CombinedStop any(stop, drain_.get_token());
      end(RunRace(std::move(in_hand->item), lease, any.token()));
    });
  });
}

// A trial whose call of Measure goes on.
struct Dispatcher::Core::TrialInHand {
  RunItemPtr item;
  const AnswerCheck check;
  const std::stop_token stop;
  const int64_t sent_us;
  const std::shared_ptr<v1::MeasureRequest> request;
};

void Dispatcher::Core::MeasureTrial(RunItemPtr item, const LeasedWorker& lease,
                                    const std::stop_token& stop, WorkerPool::Done done) {
  const auto& trial = std::get<BuiltTrial>(item->work);
  std::optional<AnswerCheck> check = references_.CheckOf(item->task, trial.builder);
  // The reference is being replaced, so the item waits for the new one.
  if (!check.has_value()) {
    ToRunners(std::move(item));
    return done({});
  }
  const auto request =
      std::make_shared<v1::MeasureRequest>(TrialRequest(job_, item->task, *check, *trial.artifact));
  request->set_traceparent(
      PrintTraceparent(TraceOfTrial(job_.id, trial.in_hand.trial.number, TrialSpan::kRun)));
  // Another job's trials wait for the runner, which the runner itself does not see.
  if (lease.wanted()) request->mutable_options()->set_idle_ms(0);
  const std::shared_ptr<TrialInHand> in_hand(
      new TrialInHand{std::move(item), *std::move(check), stop, NowMicros(), request});
  const auto end = [this, in_hand, &lease, done](CallResult result, v1::MeasureReply& reply) {
    done(TrialEnded(*in_hand, lease, std::move(result), reply));
  };
  CallMeasure(lease, request, in_hand->check.reference, stop,
              [this, end](CallResult result, v1::MeasureReply& reply) {
                if (result.status.code() != StatusCode::kOutOfRange) {
                  return end(std::move(result), reply);
                }
                // Another reference is sought, which may take a while.
                helpers_.Run([end, result, reply = std::move(reply)]() mutable {
                  end(std::move(result), reply);
                });
              });
}

Attempt Dispatcher::Core::TrialEnded(TrialInHand& in_hand, const LeasedWorker& lease,
                                     CallResult result, v1::MeasureReply& reply) {
  const LogScope log_ids(LogIdsOf(in_hand.request->trial(), in_hand.request->traceparent()));
  RunItemPtr item = std::move(in_hand.item);
  const AnswerCheck& check = in_hand.check;
  if (result.status.ok() && !reply.has_result()) {
    result.status = Unavailable("the answer has no result");
  }
  if (!result.status.ok()) {
    // A runner answers INTERNAL if the reference fails, and OUT_OF_RANGE if it takes too long.
    if (result.status.code() == StatusCode::kInternal) {
      NoteReferenceFailure(item->task, *check.reference, result.status);
    }
    if (result.status.code() == StatusCode::kPermissionDenied && IsForged(*item)) {
      options_.trust->Doubt(std::get<BuiltTrial>(item->work).builder);
      BuildElsewhere(std::move(item), result.status);
      return {};
    }
    if (result.status.code() == StatusCode::kOutOfRange && check.samples.empty()) {
      return ReferenceTookTooLong(std::move(item), lease, result, in_hand.stop);
    }
    return Failed(std::move(item), lease, result, in_hand.stop);
  }
  auto& trial = std::get<BuiltTrial>(item->work);
  trial.in_hand.instants.set_run_sent_us(in_hand.sent_us);
  trial.in_hand.instants.set_run_received_us(NowMicros());
  std::optional<double> reference_cost_s;
  if (reply.reference_cost_s() > 0) reference_cost_s = reply.reference_cost_s();
  Finish(item->task, std::move(trial), &lease, reply.result(), reference_cost_s);
  return {};
}

bool Dispatcher::Core::IsForged(const RunItem& item) {
  if (options_.signatures == nullptr) return false;
  const auto& trial = std::get<BuiltTrial>(item.work);
  const v1::Artifact& artifact = *trial.artifact;
  return !options_.signatures->Check(artifact, artifact.trial(), "program").ok();
}

void Dispatcher::Core::BuildElsewhere(RunItemPtr item, const Status& why) {
  auto& trial = std::get<BuiltTrial>(item->work);
  LogWarn("job {}: builder {} forged the program of {}: {}", job_.id, trial.builder, NameOf(*item),
          Message(why));
  if (++item->attempts >= options_.max_attempts) {
    const std::string cause =
        fmt::format("given up after {} attempts, the last one at builder {}: {}", item->attempts,
                    trial.builder, Message(why));
    return GiveUp(std::move(item), cause);
  }
  auto again = std::make_unique<BuildItem>();
  again->task = item->task;
  again->attempts = item->attempts;
  again->avoid_worker = trial.builder;
  again->steps = std::move(trial.steps);
  again->work = std::move(trial.in_hand);
  builders_.PushFirst(std::move(again));
}

void Dispatcher::Core::CallMeasure(const LeasedWorker& lease,
                                   std::shared_ptr<v1::MeasureRequest> request,
                                   std::shared_ptr<const v1::Artifact> reference,
                                   const std::stop_token& stop,
                                   WorkerCalls::Done<v1::MeasureReply> done) {
  // A request that was sent ahead may have to wait until the runner has run another trial's
  // reference.
  const bool ahead = job_.options.measure().idle_ms() > 0;
  const bool has_reference = request->has_reference();
  const CallLimits limits{.connect = options_.connect,
                          .deadline = MeasureDeadline(job_, options_, ahead || has_reference),
                          .lost = lease.lost_token(),
                          .stop = stop};
  calls_.Measure(lease.worker().address(), request, limits,
                 [this, &lease, request, reference, stop, done, has_reference,
                  deadline = limits.deadline](CallResult result, v1::MeasureReply& reply) {
                   if (result.status.code() == StatusCode::kFailedPrecondition && !has_reference) {
                     *request->mutable_reference() = *reference;
                     return CallMeasure(lease, request, reference, stop, done);
                   }
                   if (result.status.ok()) result.status = BoundReply(*request, deadline, reply);
                   done(std::move(result), reply);
                 });
}

Attempt Dispatcher::Core::ReferenceTookTooLong(RunItemPtr item, const LeasedWorker& lease,
                                               const CallResult& result,
                                               const std::stop_token& stop) {
  if (stop.stop_requested()) return {};
  const TaskReferences::SlowReferenceAction instead = references_.GiveUp(item->task);
  if (instead == TaskReferences::SlowReferenceAction::kWait) {
    return {.again = std::move(item), .complaint = ""};
  }
  LogInfo("job {}: {}: {}", job_.id, NameOf(*item), Message(result.status));
  if (instead == TaskReferences::SlowReferenceAction::kBuildSample) BuildReference(item->task);
  auto& trial = std::get<BuiltTrial>(item->work);
  if (trial.steps != store::kNoSteps) {
    ToRunners(std::move(item));
    return {};
  }
  v1::TrialResult slow;
  slow.set_error(v1::RUN_TIMEOUT_ERROR);
  slow.set_message(fmt::format("the unscheduled loops take more than {:.4g} s (--reference-limit)",
                               job_.options.reference_limit_s()));
  Finish(item->task, std::move(trial), &lease, slow, std::nullopt);
  return {};
}

void Dispatcher::Core::NoteReferenceFailure(int task, const v1::Artifact& reference,
                                            const Status& status) {
  LogInfo("job {}: reference of task {}: {}", job_.id, task, Message(status));
  if (!references_.NoteFailure(task, reference)) return;
  ledger_.Fail(
      FailedPrecondition("the unscheduled program of task {} fails on the device, so no answer "
                         "can be checked: {}",
                         task, Message(status)));
}

// ---- results --------------------------------------------------------------------------------

store::Record Dispatcher::Core::RecordOf(int task_index, const BuiltTrial& trial) const {
  const DispatchTask& task = job_.tasks[task_index];
  const search::Trial& tried = trial.in_hand.trial;
  store::Record record;
  record.job_id = job_.id;
  record.task_index = static_cast<uint32_t>(task_index);
  record.trial = tried.number;
  record.workload_id = task.workload_id;
  record.workload_key = task.workload_key;
  record.dag = task.dag;
  record.target = task.target;
  record.hardware = task.hardware;
  record.steps = trial.steps;
  record.flop_count = task.flop_count;
  record.build_s = trial.build_s;
  record.builder = trial.builder;
  if (job_.own_builds.at_once > 0) record.builder += kOwnBuild;
  record.timestamp_s = std::time(nullptr);
  record.origin = tried.candidate.origin;
  if (std::isfinite(tried.candidate.score)) record.score = tried.candidate.score;
  return record;
}

void Dispatcher::Core::Finish(int task, BuiltTrial trial, const LeasedWorker* runner,
                              const v1::TrialResult& result,
                              std::optional<double> reference_cost_s) {
  const uint64_t serial = trial.in_hand.serial;
  if (!ledger_.IsInFlight(serial)) return;  // the trial was abandoned
  MeasuredTrial measured;
  measured.record = RecordOf(task, trial);
  if (runner != nullptr) {
    measured.record.device = runner->worker().device();
    measured.record.runner = runner->worker().id();
    measured.record.device_model = options_.known_runners->Of(runner->worker())->device_model;
  }
  SetResult(result, measured.record);
  RefuseImplausible(measured.record);
  v1::TrialTimes times = trial.build_times;
  times.MergeFrom(result.times());
  measured.record.times = times.SerializeAsString();
  measured.instants = trial.in_hand.instants;
  measured.trial = std::move(trial.in_hand.trial);
  measured.reference_cost_s = reference_cost_s;
  if (runner != nullptr) {
    references_.NoteResult(task, measured.record, reference_cost_s);
    noise_.Add(measured.record);
    NoteBusy(*runner, measured.record.run_s, BusyMeter::Use::kTrial);
  }
  if (readings_.MayBeElite(task, measured.record)) measured.artifact = std::move(trial.artifact);
  ledger_.AddResult(serial, std::move(measured));
}

}  // namespace kiln::scheduler
