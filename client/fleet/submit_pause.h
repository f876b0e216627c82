// The pauses of a fleet between two submissions, after Slurm has refused a job or a job has ended
// before its worker announced itself: 10 s, then twice as long each time, at most five minutes.
#pragma once

#include <algorithm>

namespace kiln::client {

// A value for one thread. Times are monotonic seconds.
class SubmitPause {
 public:
  static constexpr double kFirst_s = 10;
  static constexpr double kLongest_s = 300;

  // Begins a pause, unless one lasts. Returns the seconds that are left of it.
  double Begin(double now_s) {
    if (Lasts(now_s)) return until_s_ - now_s;
    const double pause_s = next_s_;
    until_s_ = now_s + pause_s;
    next_s_ = std::min(2 * pause_s, kLongest_s);
    return pause_s;
  }
  // A worker has announced itself: the next pause is a short one again.
  void Reset() {
    next_s_ = kFirst_s;
    until_s_ = 0;
  }
  bool Lasts(double now_s) const { return now_s < until_s_; }

 private:
  double next_s_ = kFirst_s;
  double until_s_ = 0;
};

}  // namespace kiln::client
