// The timing of a program, without a device or a clock of its own.
//
//   The pause, if one is asked for.
//   One untimed call. It is left out if an earlier call took long, because nothing is to be warmed
//     up then.
//   One timed call. If it was far slower than the best cost, up to two more; a program whose calls
//     are all that slow stops here.
//   With min_repeat_ms, a batch of a sixteenth of it for short programs, and a second one if the
//     batch was clearly slower; while another trial waits, slower by less is enough. A program that
//     is so in both, by more than the two differ, stops here.
//   `repeat` times: flush the caches, if asked for; run `number` calls back to back. While such a
//     batch lasts less than min_repeat_ms, it runs again with
//     number = max(min_repeat / (batch / number) + 1, number * 1.618)
//   cost = batch / number, one per repeat; the grown number carries over to the next repeat.
//   While the device would be idle: further repeats of the same number, until the median of all is
//     known well enough, or the time for it is over. Programs that stopped before have none.
//
// Short programs get more calls than that if a reading has a cost of its own (GPUs). Otherwise they
// would look slower than they are, and not all by the same amount.
//
// Differences from the classical time_evaluator save device time on slow kernels without losing
// precision. With min_repeat_ms > 0 the batch starts from the prediction of the batches before it
// rather than from `number`, so a call that lasts min_repeat_ms by itself runs once per repeat, and
// that first call is the first repeat's reading. Repeats that no longer fit in the budget are left
// out, but never the first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"

namespace kiln::runner {

struct TimingOptions {
  // Calls per batch, at least 1.
  int64_t number = 3;
  // Number of repeats, at least 1.
  int repeat = 1;
  // 0 = run exactly `number` calls per batch.
  double min_repeat_s = 0;
  // Sleep before the timing, once as in TVM, which takes it after each trial.
  double cooldown_s = 0;
  // The calls find nothing in the caches.
  bool flush_cache = false;
  // Limit of a call: programs that take longer stop after the first timed calls.
  std::optional<double> early_stop_s = {};
  // Programs that take longer stop after the short batch, whose reading is their cost.
  std::optional<double> clearly_slower_s = {};
  // Programs that take longer do so, too, while another trial waits for the device.
  std::optional<double> slower_s = {};
  // Wall time for the whole timing after the pause.
  std::optional<double> budget_s = {};
  // Time of a call before this, if there was one.
  std::optional<double> earlier_call_s = {};
  // Wall time for repeats beyond `repeat`.
  double idle_s = 0;
};

// The functions by which a program is timed. now_s is monotonic.
struct TimingDevice {
  // Returns the seconds that `number` calls took together.
  std::function<StatusOr<double>(int64_t number)> time_batch;
  // Empties the caches, for the next call only: `number` is then 1 and min_repeat_s is 0. Null: the
  // calls of time_batch are cold without that. Not called without TimingOptions::flush_cache.
  std::function<void()> flush_cache;
  std::function<void(double seconds)> sleep;
  std::function<double()> now_s;
  // Device::CallsPerReading; null: as many as wanted. Not asked if flush_cache is called.
  std::function<int64_t(int64_t wanted, double call_s)> calls_per_reading = nullptr;
  // Returns whether another trial waits for the device; asked after the short batch, and before
  // each repeat of the idle time. Null: none waits, and idle time is not used.
  std::function<bool()> is_wanted = nullptr;
};

struct Timing {
  std::vector<double> costs_s;
  bool stopped_early = false;
  // Difference of the program's readings, as a share of the smallest one; 0: there is only one.
  double spread = 0;
  // Calls in the last batch.
  int64_t number = 0;
};

// Errors are those of time_batch.
StatusOr<Timing> TimeProgram(const TimingOptions& options, const TimingDevice& device);

}  // namespace kiln::runner
