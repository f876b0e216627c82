#include "runner/device_slot.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "base/process/machine_load.h"
#include "device/gpu_load.h"
#include "device/noise_mark.h"
#include "rpc/artifact_digest.h"
#include "rpc/device_state_message.h"
#include "runner/arguments.h"
#include "runner/measure_options.h"
#include "runner/null_program.h"
#include "runner/time_floor.h"

namespace kiln::runner {
namespace {

constexpr int kMaxStarts = 3;
// A first run is given up as far too slow after the ratio of the trial's options. This slack is
// added for cold pages and checks.
constexpr absl::Duration kFirstRunSlack = absl::Seconds(2);
// Programs that take this long are timed in one call when they are trials, too.
constexpr double kLongReference_s = 0.1;
// Time for a canary beside others that have the device to themselves.
constexpr absl::Duration kCanaryLimit = absl::Seconds(10);
constexpr auto kCancelPoll = std::chrono::milliseconds(50);

std::string Short(const std::string& digest) { return digest.substr(0, 12); }

// A program's given digest must be the digest of its content, because results are kept under it.
Status CheckDigest(std::string_view what, const v1::Artifact& artifact, const std::string& given) {
  const std::string computed = DigestOf(artifact);
  if (computed == given) return OkStatus();
  return InvalidArgument("the {} came with digest '{}', that of its content is {}", what,
                         Short(given), Short(computed));
}

Status CheckRequest(const v1::MeasureRequest& request) {
  if (!request.has_artifact()) return InvalidArgument("the request has no artifact");
  KILN_RETURN_IF_ERROR(CheckDigest("artifact", request.artifact(), request.artifact().digest()));
  if (!request.has_reference()) return OkStatus();
  return CheckDigest("reference", request.reference(), request.reference_digest());
}

Status ReferenceNeeded(const v1::MeasureRequest& request) {
  return FailedPrecondition(
      "reference {} is not known here for seed {}; send the request again with `reference` set",
      Short(request.reference_digest()), request.seed());
}

// Returns whether the program is the reference itself, and its run took so long that another
// reading would say the same. False if the options ask for a whole reading.
bool IsLongReference(const v1::MeasureRequest& request, const Reference& reference) {
  return request.artifact().digest() == request.reference_digest() &&
         reference.cost_s >= kLongReference_s && request.options().early_stop_ratio() > 0 &&
         !request.options().flush_cache();
}

v1::TrialResult ReadingOf(const Reference& reference, const v1::MeasureRequest& request) {
  v1::TrialResult result;
  result.set_measured_as(MeasuredAs(request.artifact().device(), request.options()));
  result.add_costs_s(reference.cost_s);
  result.set_message("timed in one call, when the reference outputs were computed");
  result.set_unchecked(reference.unchecked);
  return result;
}

absl::Duration FirstRunLimit(const v1::MeasureOptions& options) {
  const std::optional<double> early_stop_s = EarlyStopSeconds(options);
  return early_stop_s ? absl::Seconds(*early_stop_s) + kFirstRunSlack : absl::InfiniteDuration();
}

v1::TrialResult ResultOf(const ChildOutcome& outcome) {
  if (outcome.kind == ChildOutcome::kDone) return outcome.done.result();
  v1::TrialResult result;
  result.set_message(outcome.message);
  if (outcome.kind == ChildOutcome::kTimedOut && outcome.in_first_run) {
    result.set_message("far slower than the best one known: " + outcome.message);
  }
  if (outcome.kind == ChildOutcome::kTimedOut) {
    result.set_error(v1::RUN_TIMEOUT_ERROR);
  } else {
    const bool loading = outcome.phase == wire::LOADING && outcome.kind != ChildOutcome::kStopped;
    result.set_error(loading ? v1::COMPILE_DEVICE_ERROR : v1::RUNTIME_DEVICE_ERROR);
  }
  return result;
}

// Returns text to follow a noise mark: the machine's and the GPU's load.
std::string MachineLoadText() {
  std::string text;
  for (const std::string& more : {LoadText(), device::GpuLoadText()}) {
    if (!more.empty()) text += ", " + more;
  }
  return text;
}

}  // namespace

// A place in the queue. From Wait until the object is destroyed, the device belongs to its owner.
class DeviceSlot::Turn {
 public:
  explicit Turn(DeviceSlot& slot) : slot_(slot) {}
  ~Turn() {
    std::lock_guard lock(slot_.mutex_);
    std::erase(slot_.queue_, this);
    slot_.TellChildren();
    slot_.turn_changed_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Returns false if others have the device or wait for it.
  bool TakeIfFree() {
    std::lock_guard lock(slot_.mutex_);
    if (!slot_.queue_.empty()) return false;
    slot_.queue_.push_back(this);
    return true;
  }

  Status Wait(const std::function<bool()>& cancelled) {
    std::unique_lock lock(slot_.mutex_);
    if (slot_.queue_.size() > slot_.options_.max_waiting) {
      return ResourceExhausted("{} calls wait for this device already", slot_.queue_.size() - 1);
    }
    slot_.queue_.push_back(this);
    slot_.TellChildren();
    while (slot_.queue_.front() != this) {
      slot_.turn_changed_.wait_for(lock, kCancelPoll);
      lock.unlock();
      const bool stop = cancelled();
      lock.lock();
      if (stop) return Cancelled("cancelled while waiting for the device");
    }
    return OkStatus();
  }

 private:
  DeviceSlot& slot_;
};

DeviceSlot::DeviceSlot(DeviceSlotOptions options)
    : options_(std::move(options)),
      signatures_(options_.keys == nullptr ? nullptr
                                           : std::make_unique<ArtifactCheck>(
                                                 options_.keys, options_.announced, Clock::Real())),
      wanted_(YieldFlag::Make()),
      references_(options_.reference_bytes) {
  if (options_.device == kNullDevice) return;
  const Status status = WarmUp();
  if (!status.ok()) LogWarn("no child is ready yet: {}", Message(status));
}

DeviceSlot::~DeviceSlot() = default;

DeviceSlot::Stats DeviceSlot::stats() const {
  return {trials_done_, children_started_, children_lost_, references_run_};
}

Status DeviceSlot::CheckSignatures(const v1::MeasureRequest& request) const {
  if (signatures_ == nullptr) return OkStatus();
  KILN_RETURN_IF_ERROR(signatures_->Check(request.artifact(), request.trial(), "artifact"));
  if (!request.has_reference()) return OkStatus();
  return signatures_->Check(request.reference(), kReferenceTrial, "reference");
}

void DeviceSlot::RefuseBelowFloor(const v1::MeasureRequest& request,
                                  v1::TrialResult& result) const {
  const Status possible =
      CheckFloor(options_.model, request.artifact().plan(), request.operations(), result);
  if (possible.ok()) return;
  result.set_error(v1::WRONG_ANSWER_ERROR);
  result.set_message(std::string(Message(possible)));
  result.clear_costs_s();
}

void DeviceSlot::TellChildren() {
  if (wanted_.ok()) (*wanted_)->Set(queue_.size() > 1);
}

// Makes sure that there are an active child and a standby behind it.
Status DeviceSlot::WarmUp() {
  KILN_RETURN_IF_ERROR(wanted_.status());
  if (active_ == nullptr) active_ = std::move(standby_);
  for (auto* child : {&active_, &standby_}) {
    if (*child != nullptr) continue;
    KILN_ASSIGN_OR_RETURN(*child, ChildProcess::Start(options_.child_command, **wanted_));
    ++children_started_;
  }
  return OkStatus();
}

StatusOr<ChildOutcome> DeviceSlot::RunInChild(const wire::ChildRequest& request,
                                              const UniqueFd& outputs, const ChildLimits& limits,
                                              const std::function<bool()>& cancelled,
                                              const OnPhase& on_phase) {
  std::string last_message;
  for (int attempt = 0; attempt < kMaxStarts; ++attempt) {
    const Status warm = WarmUp();
    // The trial still runs without a standby.
    if (active_ == nullptr) return Unavailable("cannot start a child: {}", Message(warm));
    ChildOutcome outcome = active_->Run(request, outputs, limits, cancelled, on_phase);
    if (outcome.kind == ChildOutcome::kDone && !outcome.done.device_lost()) return outcome;
    ++children_lost_;
    if (outcome.kind == ChildOutcome::kDone) outcome.message = "it lost its device";
    LogInfo("child {} is lost: {}", active_->pid(), outcome.message);
    active_ = nullptr;
    // The children are started now, so that the next trial need not wait for them.
    const Status again = WarmUp();
    if (!again.ok()) LogWarn("cannot start a child: {}", Message(again));
    if (outcome.kind == ChildOutcome::kCancelled) return Cancelled("{}", outcome.message);
    if (outcome.kind == ChildOutcome::kStopped) {
      // Somebody else may have stopped the child, but hardly each time.
      if (attempt + 1 < kMaxStarts) continue;
      outcome.message += fmt::format(", in the last of {} attempts", kMaxStarts);
    }
    if (outcome.kind != ChildOutcome::kNotStarted) return outcome;
    last_message = outcome.message;
  }
  return Unavailable("{} children in a row ended before they began to work, the last one: {}",
                     kMaxStarts, last_message);
}

absl::Duration DeviceSlot::ReferenceLimit(const v1::MeasureRequest& request) const {
  const uint32_t asked_ms = request.reference_timeout_ms();
  return asked_ms == 0 ? options_.reference_limit : absl::Milliseconds(asked_ms);
}

StatusOr<const Reference*> DeviceSlot::RunReference(const v1::MeasureRequest& request,
                                                    std::string key,
                                                    const std::function<bool()>& cancelled) {
  Reference reference;
  reference.key = std::move(key);
  reference.plan = request.reference().plan();
  KILN_ASSIGN_OR_RETURN(reference.outputs, MakeOutputFile());
  wire::ChildRequest child_request;
  *child_request.mutable_reference()->mutable_artifact() = request.reference();
  child_request.mutable_reference()->set_seed(request.seed());
  *child_request.mutable_reference()->mutable_known() = request.known();
  *child_request.mutable_reference()->mutable_tolerance() = request.tolerance();
  reference.is_known = !request.known().empty();
  KILN_ASSIGN_OR_RETURN(ChildOutcome outcome,
                        RunInChild(child_request, reference.outputs,
                                   {options_.prepare_limit, ReferenceLimit(request)}, cancelled));
  ++references_run_;
  if (outcome.kind == ChildOutcome::kTimedOut && request.reference_timeout_ms() > 0) {
    return OutOfRange("reference program {}: {}", Short(request.reference_digest()),
                      outcome.message);
  }
  const std::string& error =
      outcome.kind == ChildOutcome::kDone ? outcome.done.reference_error() : outcome.message;
  if (!error.empty()) {
    return Internal("reference program {}: {}", Short(request.reference_digest()), error);
  }
  KILN_RETURN_IF_ERROR(SealOutputFile(reference.outputs));
  reference.cost_s = outcome.done.reference_cost_s();
  reference.unchecked = outcome.done.reference_unchecked();
  KILN_ASSIGN_OR_RETURN(const auto arguments, ParseArguments(reference.plan));
  for (const Argument& argument : arguments) {
    // The file has the outputs for both contents of the inputs.
    if (argument.role == v1::ArgSpec::OUTPUT) reference.bytes += 2 * argument.bytes;
  }
  references_.Erase(reference.key);
  return &references_.Insert(std::move(reference));
}

StatusOr<const Reference*> DeviceSlot::FindReference(const v1::MeasureRequest& request,
                                                     const std::function<bool()>& cancelled) {
  if (request.reference_digest().empty()) {
    return InvalidArgument(
        "reference_digest is empty, expected the digest of a reference to compare results with");
  }
  const std::string key = ReferenceStore::KeyOf(request.reference_digest(), request.seed());
  // A reference from a caller who knew none of its outputs runs again.
  const Reference* const kept = references_.Find(key);
  if (kept != nullptr && (kept->is_known || request.known().empty())) return kept;
  if (!request.has_reference()) return ReferenceNeeded(request);
  return RunReference(request, key, cancelled);
}

StatusOr<v1::MeasureReply> DeviceSlot::MeasureInChild(const v1::MeasureRequest& request,
                                                      const std::function<bool()>& cancelled) {
  const double start_s = Clock::Real().MonotonicSeconds();
  const uint64_t references_before = references_run_;
  KILN_ASSIGN_OR_RETURN(const Reference* reference, FindReference(request, cancelled));
  const bool ran_reference = references_run_ != references_before;
  const double reference_s = Clock::Real().MonotonicSeconds() - start_s;
  v1::MeasureReply reply;
  reply.set_reference_cost_s(reference->cost_s);
  if (IsLongReference(request, *reference)) {
    *reply.mutable_result() = ReadingOf(*reference, request);
    if (ran_reference) reply.mutable_result()->mutable_times()->set_reference_s(reference_s);
    return reply;
  }
  const v1::MeasureOptions measure_options = WithDefaults(request.options());
  wire::ChildRequest child_request;
  wire::TrialRun& trial = *child_request.mutable_trial();
  *trial.mutable_artifact() = request.artifact();
  trial.set_seed(request.seed());
  *trial.mutable_reference_plan() = reference->plan;
  trial.set_reference_key(reference->key);
  *trial.mutable_tolerance() = request.tolerance();
  *trial.mutable_options() = measure_options;
  *trial.mutable_samples() = request.samples();
  const absl::Duration pause = absl::Milliseconds(measure_options.cooldown_ms());
  const ChildLimits limits{options_.prepare_limit,
                           absl::Milliseconds(measure_options.timeout_ms()) + pause,
                           FirstRunLimit(measure_options)};
  v1::TrialResult at_the_end_of_timing;
  const auto on_phase = [&](wire::Phase phase) {
    if (phase == wire::RECHECKING) ReadState(at_the_end_of_timing);
  };
  KILN_ASSIGN_OR_RETURN(ChildOutcome outcome,
                        RunInChild(child_request, reference->outputs, limits, cancelled, on_phase));
  *reply.mutable_result() = ResultOf(outcome);
  reply.mutable_result()->MergeFrom(at_the_end_of_timing);
  // A program that is far too slow is not timed beyond its first run.
  if (!reply.result().has_device_state()) ReadState(*reply.mutable_result());
  RefuseBelowFloor(request, *reply.mutable_result());
  if (reply.result().error() == v1::NO_ERROR) {
    if (device::ParseNoiseMark(reply.result().message()).has_value())
      reply.mutable_result()->mutable_message()->append(MachineLoadText());
    reply.mutable_result()->set_unchecked(reference->unchecked);
  }
  if (ran_reference) reply.mutable_result()->mutable_times()->set_reference_s(reference_s);
  return reply;
}

void DeviceSlot::ReadState(v1::TrialResult& result) const {
  if (options_.state == nullptr) return;
  *result.mutable_device_state() = DeviceStateMessage(options_.state->Read());
}

StatusOr<double> DeviceSlot::TimeCanary(const std::function<bool()>& cancelled) {
  Turn turn(*this);
  KILN_RETURN_IF_ERROR(turn.Wait(cancelled));
  if (options_.device == kNullDevice) return NullCanary(options_.null_canary_file);
  wire::ChildRequest request;
  request.mutable_canary();
  KILN_ASSIGN_OR_RETURN(
      const ChildOutcome outcome,
      RunInChild(request, UniqueFd(), {options_.prepare_limit, kCanaryLimit}, cancelled));
  if (outcome.kind != ChildOutcome::kDone) return Internal("{}", outcome.message);
  if (!outcome.done.canary_error().empty()) return Internal("{}", outcome.done.canary_error());
  return outcome.done.canary_s();
}

void DeviceSlot::LetGo() {
  Turn turn(*this);
  if (!turn.TakeIfFree()) return;
  active_ = nullptr;
  standby_ = nullptr;
}

// Follows the same protocol without a device. If a reference is named, the caller must have sent it
// once, too.
StatusOr<v1::MeasureReply> DeviceSlot::MeasureNull(const v1::MeasureRequest& request) {
  v1::MeasureReply reply;
  if (!request.reference_digest().empty()) {
    const std::string key = ReferenceStore::KeyOf(request.reference_digest(), request.seed());
    const Reference* reference = references_.Find(key);
    if (reference == nullptr) {
      if (!request.has_reference()) return ReferenceNeeded(request);
      Reference made;
      made.key = key;
      made.cost_s = NullCost(request.reference());
      reference = &references_.Insert(std::move(made));
    }
    reply.set_reference_cost_s(reference->cost_s);
  }
  v1::TrialResult& result = *reply.mutable_result();
  if (request.artifact().device() != kNullDevice) {
    result.set_error(v1::COMPILE_DEVICE_ERROR);
    result.set_message(fmt::format("the artifact is for device '{}', expected one for null",
                                   request.artifact().device()));
    return reply;
  }
  const double cost_s = NullCost(request.artifact());
  for (uint32_t i = 0; i < WithDefaults(request.options()).repeat(); ++i)
    result.add_costs_s(cost_s);
  return reply;
}

StatusOr<v1::MeasureReply> DeviceSlot::Measure(const v1::MeasureRequest& request,
                                               const std::function<bool()>& cancelled) {
  KILN_RETURN_IF_ERROR(CheckRequest(request));
  KILN_RETURN_IF_ERROR(CheckSignatures(request));
  Clock& clock = Clock::Real();
  const double asked_s = clock.MonotonicSeconds();
  Turn turn(*this);
  KILN_RETURN_IF_ERROR(turn.Wait(cancelled));
  DeviceShare::Use use(options_.share);
  KILN_RETURN_IF_ERROR(use.Begin(cancelled));
  const double start_s = clock.MonotonicSeconds();
  const bool null = options_.device == kNullDevice || request.artifact().device() == kNullDevice;
  auto reply = null ? MeasureNull(request) : MeasureInChild(request, cancelled);
  if (!reply.ok()) return reply;
  ++trials_done_;
  v1::TrialResult& result = *reply->mutable_result();
  result.set_run_s(clock.MonotonicSeconds() - start_s);
  result.mutable_times()->set_run_wait_s(start_s - asked_s);
  result.set_timestamp_s(static_cast<int64_t>(clock.UnixSeconds()));
  result.set_device(options_.device_name);
  return reply;
}

}  // namespace kiln::runner
