// How a program is timed, without a device or a clock of its own.
//
//   one untimed call (left out when an earlier call took long: there is nothing to warm up then)
//   one timed call, and a second one if it was far slower: programs that are so in both stop here
//   with min_repeat_ms, of short programs a batch of a sixteenth of it, and a second one if it was
//     clearly slower: programs that are so in both, by more than the two differ, stop here
//   repeat times: cool down; flush the caches; run `number` calls back to back, and while such a
//     batch lasts less than min_repeat_ms, again with
//     number = max(min_repeat / (batch / number) + 1, number * 1.618)
//   cost = batch / number, one per repeat; the grown number carries over to the next repeat
//   while the device would be idle: further repeats, of the same number, until the median of all is
//   known well enough, or the time for it is over. Never of programs that stopped before.
//
// Short programs get more calls than that where a reading has a cost of its own (GPUs), else the
// short ones would look slower than they are, and not all by the same.
//
// Differences from the classical time_evaluator, each to save device time on slow kernels without
// losing precision: with min_repeat_ms > 0 the batch starts from what the batches before it predict
// rather than from `number`, so one that lasts min_repeat_ms by itself runs once per repeat, and
// that first call is the first repeat's reading; repeats that no longer fit in the budget are left
// out (never the first).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"

namespace kiln::runner {

struct TimingOptions {
  int64_t number = 3;        // calls per batch, at least 1
  int repeat = 1;            // at least 1
  double min_repeat_s = 0;   // 0 = run exactly `number` calls per batch
  double cooldown_s = 0;     // sleep before each repeat
  bool flush_cache = false;  // before each repeat; then number is 1 and min_repeat_s is 0: later
                             // calls would be warm
  // Of a call: programs that take longer stop after the first one.
  std::optional<double> early_stop_s = {};
  // Programs that take longer stop after the short batch, whose reading is their cost.
  std::optional<double> clearly_slower_s = {};
  std::optional<double> budget_s = {};        // wall time for all of it
  std::optional<double> earlier_call_s = {};  // what a call before this took, if there was one
  double idle_s = 0;                          // wall time for repeats beyond `repeat`
};

// What is timed and where. now_s is monotonic.
struct TimingDevice {
  std::function<StatusOr<double>(int64_t number)>
      time_batch;  // seconds that `number` calls took together
  std::function<void()> flush_cache;
  std::function<void(double seconds)> sleep;
  std::function<double()> now_s;
  // Device::CallsPerReading; null: as many as wanted. Not asked where the caches are flushed.
  std::function<int64_t(int64_t wanted, double call_s)> calls_per_reading = nullptr;
  // Whether somebody waits for the device; asked before each repeat of the idle time. null: always.
  std::function<bool()> is_wanted = nullptr;
};

struct Timing {
  std::vector<double> costs_s;
  bool stopped_early = false;
  // How far readings of the program differ, as a share of the smallest one; 0: there is one alone.
  double spread = 0;
  int64_t number = 0;  // calls in the last batch
};

// Errors are those of time_batch.
StatusOr<Timing> TimeProgram(const TimingOptions& options, const TimingDevice& device);

}  // namespace kiln::runner
