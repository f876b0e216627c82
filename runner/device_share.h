// The share of its device's time that a runner may use: "25%". After a trial of t seconds the
// device rests until the trial is at most that share of the time since it began, so that a box
// that serves others is never busy with trials for long. In a minute the trials take their share,
// and at most one trial more.
//
// The device's owner makes each trial a Use. Thread-safe; one Use at a time. Cost: a lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"

namespace kiln::runner {

// Reads "25%" as 0.25. InvalidArgument unless it is from 1% to 100%.
StatusOr<double> ParseShare(std::string_view text);

class DeviceShare {
 public:
  // A caller waits at most so long for the device to rest. Calls have time limits.
  static constexpr absl::Duration kLongestWait = absl::Seconds(5);

  // `share` is above 0 and at most 1. `clock` outlives the object.
  DeviceShare(double share, Clock& clock) : share_(share), clock_(clock) {}

  // A trial on the device, from Begin until the object is destroyed.
  class Use {
   public:
    // `share` may be null: nothing limits the device then.
    explicit Use(DeviceShare* share) : share_(share) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Waits until the device has rested. ResourceExhausted: that takes longer than kLongestWait.
    // Cancelled: `cancelled`, which is asked about 20 times a second, returned true.
    Status Begin(const std::function<bool()>& cancelled);

   private:
    DeviceShare* const share_;
    bool has_begun_ = false;
    int64_t begin_ns_ = 0;
  };

  // Returns "takes at most 25% of the device's time".
  std::string Sentence() const;

 private:
  Status Rest(const std::function<bool()>& cancelled);
  // Notes that the device was used since `begin_ns`.
  void Note(int64_t begin_ns);

  const double share_;
  Clock& clock_;
  std::mutex mutex_;
  // Nobody notifies it: waits end by their time.
  std::condition_variable never_;
  // Monotonic time from which on the device has rested.
  int64_t rested_ns_ = 0;
};

}  // namespace kiln::runner
