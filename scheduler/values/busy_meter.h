// Measures which part of the devices' time was spent on trials, and on further readings of the best
// candidates, in the last minute. A device counts from its first trial on, also while its lease is
// given back. A number stands for each device (known_runners.h).
//
// Times are seconds of one monotonic clock. Memory: the uses that ended in the last minute, and a
// number for each device. Not thread-safe.
#pragma once

#include <deque>

#include "absl/container/flat_hash_map.h"

namespace kiln::scheduler {

class BusyMeter {
 public:
  static constexpr double kWindow_s = 60;

  // Notes a trial, or a reading of one of the best candidates, that ended at `now_s` and occupied
  // the device for `run_s`. `now_s` never decreases.
  enum class Use { kTrial, kElite };
  void Add(int runner, double now_s, double run_s, Use use = Use::kTrial);

  struct Reading {
    double busy_share = 0;    // 0 to 1: of all devices, in the last minute
    double elites_share = 0;  // the part of busy_share that was readings of elites
    double trials_per_s = 0;
    int devices = 0;
  };
  Reading Read(double now_s) const;

 private:
  struct Trial {
    double end_s, run_s;
    Use use;
  };
  std::deque<Trial> trials_;
  absl::flat_hash_map<int, double> since_s_;  // begin of each runner's first trial
};

}  // namespace kiln::scheduler
