// One device of a runner: its queue, its warm child and the standby behind it, and its references.
//
// A program that goes wrong costs its own trial and at most one child. Thread-safe: concurrent
// Measure calls wait in order of arrival.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/keys/live_keys.h"
#include "device/device_model.h"
#include "device/device_state.h"
#include "proto/runner.pb.h"
#include "rpc/artifact_signature.h"
#include "runner/child_process.h"
#include "runner/device_share.h"
#include "runner/reference_store.h"
#include "runner/yield_flag.h"

namespace kiln::runner {

// The kind of device that runs nothing.
inline constexpr std::string_view kNullDevice = "null";

struct DeviceSlotOptions {
  // kNullDevice has no children.
  std::string device = "cpu";
  // argv of a child, the device's flags included.
  std::vector<std::string> child_command;
  // The device's name in results.
  std::string device_name;
  // The device's figures, for the floor of times (runner/time_floor.h); without them there is none.
  device::DeviceModel model = {};
  absl::Duration prepare_limit = absl::Seconds(60);
  // The unscheduled loops of a large workload are slow, and run once.
  absl::Duration reference_limit = absl::Seconds(180);
  int64_t reference_bytes = int64_t{2} << 30;
  size_t max_waiting = 256;
  // Programs that no builder of the farm signed for their trial are refused; null: nothing is
  // asked.
  std::shared_ptr<LiveKeys> keys = nullptr;
  // The keys that the worker announces, among them the kinds of targets ("llvm") whose signed
  // programs it runs.
  std::vector<std::string> announced = {};
  // Reads the device's state, which is asked right after the timing, while the child checks the
  // program once more; null: results have no state. Outlives the slot.
  device::DeviceStateReader* state = nullptr;
  // The part of the device's time that trials may take; null: all of it. Outlives the slot.
  DeviceShare* share = nullptr;
  // File that slows the canary of the null device (null_program.h).
  std::string null_canary_file = {};
};

class DeviceSlot {
 public:
  explicit DeviceSlot(DeviceSlotOptions options);
  ~DeviceSlot();

  // Measures a trial. A trial that failed is an OK reply with an error kind. Errors are the
  // infrastructure's:
  //   FailedPrecondition  "reference ... is not known ...": the caller must send the request again
  //                       with `reference` set. No other error has this code
  //   InvalidArgument     no artifact, no reference digest, a digest that is not of the content
  //   PermissionDenied    no builder of the farm signed the program for this trial and for a
  //                       target of this device (rpc/artifact_signature.h)
  //   Internal            the reference itself failed; the message says how
  //   ResourceExhausted   too many calls wait, or the device's share is used up for a while
  //   OutOfRange          the reference took longer than the request allows
  //   Unavailable         no child can be started
  //   Cancelled           `cancelled` returned true
  StatusOr<v1::MeasureReply> Measure(const v1::MeasureRequest& request,
                                     const std::function<bool()>& cancelled);

  // Times the device's canary program between two trials. Errors: ResourceExhausted, Unavailable
  // and Cancelled as above; Internal if the canary itself failed.
  StatusOr<double> TimeCanary(const std::function<bool()>& cancelled);

  // Ends the children, so that the memory that they have of the device is free for others. The next
  // trial starts new ones. Does nothing while a trial is in hand.
  void LetGo();

  struct Stats {
    uint64_t trials_done = 0;
    uint64_t children_started = 0;
    // Children that ended, but were not closed by the slot.
    uint64_t children_lost = 0;
    uint64_t references_run = 0;
  };
  Stats stats() const;

 private:
  class Turn;
  // Turns readings that the device cannot have reached into an error.
  void RefuseBelowFloor(const v1::MeasureRequest& request, v1::TrialResult& result) const;
  Status CheckSignatures(const v1::MeasureRequest& request) const;
  StatusOr<v1::MeasureReply> MeasureNull(const v1::MeasureRequest& request);
  StatusOr<v1::MeasureReply> MeasureInChild(const v1::MeasureRequest& request,
                                            const std::function<bool()>& cancelled);
  StatusOr<const Reference*> FindReference(const v1::MeasureRequest& request,
                                           const std::function<bool()>& cancelled);
  absl::Duration ReferenceLimit(const v1::MeasureRequest& request) const;
  StatusOr<const Reference*> RunReference(const v1::MeasureRequest& request, std::string key,
                                          const std::function<bool()>& cancelled);
  StatusOr<ChildOutcome> RunInChild(const wire::ChildRequest& request, const UniqueFd& outputs,
                                    const ChildLimits& limits,
                                    const std::function<bool()>& cancelled,
                                    const OnPhase& on_phase = nullptr);
  void ReadState(v1::TrialResult& result) const;
  Status WarmUp();
  // Tells the children whether a trial waits. The caller holds the lock.
  void TellChildren();

  const DeviceSlotOptions options_;
  // Null: nobody asks for signatures.
  const std::unique_ptr<ArtifactCheck> signatures_;

  // Set while a trial waits behind the front of the queue.
  const StatusOr<std::unique_ptr<YieldFlag>> wanted_;
  // Guards the queue. The front of the queue owns the other members.
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::deque<const Turn*> queue_;

  std::unique_ptr<ChildProcess> active_;
  std::unique_ptr<ChildProcess> standby_;
  ReferenceStore references_;

  std::atomic<uint64_t> trials_done_{0};
  std::atomic<uint64_t> children_started_{0};
  std::atomic<uint64_t> children_lost_{0};
  std::atomic<uint64_t> references_run_{0};
};

}  // namespace kiln::runner
