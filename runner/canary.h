// Times a device's canary program when the runner joins and every so often, and says when the
// device drifts (device/drift_watch.h) or cannot run it at all.
//
// One thread does so for as long as the object lives. It reads a few times at once to learn what is
// usual, then once a period. A reading that is too long is repeated at once. While the device is
// not well it is probed after two seconds, then less and less often, down to once a period.
// Thread-safe, except that Stop and the destructor belong to the owner.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "device/drift_watch.h"
#include "proto/tracker.pb.h"

namespace kiln::runner {

struct CanaryOptions {
  // Time from one reading to the next; positive.
  absl::Duration period = absl::Seconds(60);
  // The same while the watch learns, and when it wants a reading to be repeated.
  absl::Duration repeat = absl::Milliseconds(100);
  // Time to the first probe of a device that is not well. The next ones take twice as long each.
  absl::Duration first_probe = absl::Seconds(2);
  // Number of readings in a row that fail, after which the device is not well.
  int failures = 3;
  device::DriftOptions drift = {};
};

class Canary {
 public:
  // Takes a reading between two trials: waits for the device, runs the canary and returns its
  // seconds. Gives up when `cancelled` returns true. ResourceExhausted and FailedPrecondition mean
  // that no reading can be taken now; other errors speak against the device.
  using TakeReading = std::function<StatusOr<double>(const std::function<bool()>& cancelled)>;
  // Told when the device is not well, with the reason, again when the reason changes, and with ""
  // when the device is well again. Called by the canary's thread.
  using OnChange = std::function<void(const std::string& reason)>;

  // Begins at once. `clock` outlives the object.
  Canary(CanaryOptions options, TakeReading take_reading, OnChange on_change, Clock& clock);
  ~Canary() { Stop(); }
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  void Stop();

  // Takes a reading now, because a trial failed by no fault of its own.
  void ProbeNow();

  // Sets the time of the newest reading and the spans of drift. The state's id and device are set
  // already.
  void Fill(v1::WorkerState& state) const;

 private:
  void Run();
  // Waits until the next reading is due. False: the object stops.
  bool WaitUntilDue();
  absl::Duration Pause() const;
  void Read();
  void Note(const StatusOr<double>& reading);
  // Tells the owner if the reason has changed.
  void Tell();

  const CanaryOptions options_;
  const TakeReading take_reading_;
  const OnChange on_change_;
  Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool now_ = false;
  mutable device::DriftWatch watch_;
  // Readings in a row that failed, and the last one's error.
  int failures_ = 0;
  std::string failure_;
  // Reason that the owner was told last.
  std::string told_;
  absl::Duration probe_pause_;
  std::thread thread_;
};

}  // namespace kiln::runner
