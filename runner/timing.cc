#include "runner/timing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/median.h"

namespace kiln::runner {
namespace {

// Limits the loop for a clock that stands still.
constexpr int kMaxZeroReadings = 100;
constexpr int64_t kMaxNumber = int64_t{1} << 40;
// An interrupt can make one short call look far slower, so the best of a few calls counts as long
// as they are cheap.
constexpr int kEarlyStopReadings = 3;
constexpr double kCheapReadingsS = 1e-3;
constexpr double kLongCallS = 0.1;
// A single slow reading does not end a program, unless a second call would take longer than this.
constexpr double kAffordableCallS = 0.5;
// Length of the pilot as a part of a batch's minimum time, and the fewest calls that make a pilot
// worthwhile.
constexpr double kPilotPart = 1.0 / 16;
constexpr double kMinPilotCalls = 8;
// The first batch is this much longer, because a batch that is barely too short has to be run
// again.
constexpr double kSurplus = 1.03;
// Numbers of readings in idle time. A median of fewer readings looks better than it is.
constexpr size_t kMinReadings = 5;
constexpr size_t kMaxReadings = 100;
constexpr double kWellKnown = 0.005;
// Longest reading as a part of the idle time, because another trial may have to wait for it.
constexpr double kLongestPart = 0.2;

class Timer {
 public:
  Timer(const TimingOptions& options, const TimingDevice& device)
      : options_(options),
        device_(device),
        flushes_(options.flush_cache && device.flush_cache != nullptr) {
    if (flushes_) {
      options_.number = 1;
      options_.min_repeat_s = 0;
    }
  }

  StatusOr<Timing> Run() {
    if (options_.cooldown_s > 0) device_.sleep(options_.cooldown_s);
    start_s_ = device_.now_s();
    if (options_.earlier_call_s.value_or(0) < kLongCallS) {
      KILN_RETURN_IF_ERROR(device_.time_batch(1).status());
    }
    FlushCache();
    KILN_ASSIGN_OR_RETURN(double first_s, device_.time_batch(1));
    KILN_ASSIGN_OR_RETURN(const bool stops_early, StopsEarly(first_s));
    if (stops_early) return timing_;
    call_s_ = first_s;
    KILN_ASSIGN_OR_RETURN(const bool is_clearly_slower, RunPilot());
    if (is_clearly_slower) return timing_;
    number_ = FirstNumber(call_s_);
    for (int repeat = 0; repeat < std::max(1, options_.repeat); ++repeat) {
      if (repeat == 0 && number_ == 1) {
        // The first call was a whole batch.
        Add(first_s, 1);
        continue;
      }
      if (repeat > 0 && !Fits(call_s_ * static_cast<double>(number_))) break;
      if (repeat > 0) FlushCache();
      KILN_RETURN_IF_ERROR(RunRepeat());
    }
    KILN_RETURN_IF_ERROR(UseIdleTime());
    NoteSpread();
    return timing_;
  }

 private:
  void FlushCache() {
    if (flushes_) device_.flush_cache();
  }

  // Returns the time left of the budget, which is infinite without one.
  double LeftS() const {
    if (!options_.budget_s.has_value()) return std::numeric_limits<double>::infinity();
    return *options_.budget_s - (device_.now_s() - start_s_);
  }
  bool Fits(double seconds) const { return seconds <= LeftS(); }

  bool IsWellKnown() const {
    const MedianCost median = MedianOf(timing_.costs_s);
    return timing_.costs_s.size() >= kMinReadings &&
           median.confidence_s <= kWellKnown * median.cost_s;
  }

  Status UseIdleTime() {
    if (options_.idle_s <= 0 || device_.is_wanted == nullptr) return OkStatus();
    const double end_s = device_.now_s() + options_.idle_s;
    while (timing_.costs_s.size() < kMaxReadings && !IsWellKnown()) {
      const double next_s = call_s_ * static_cast<double>(number_);
      if (next_s > kLongestPart * options_.idle_s || device_.now_s() + next_s > end_s) break;
      if (!Fits(next_s) || device_.is_wanted()) break;
      FlushCache();
      KILN_ASSIGN_OR_RETURN(const double batch_s, device_.time_batch(number_));
      Add(batch_s, number_);
    }
    return OkStatus();
  }

  void Add(double batch_s, int64_t number) {
    timing_.costs_s.push_back(batch_s / static_cast<double>(number));
    timing_.number = number;
  }

  StatusOr<bool> StopsEarly(double call_s) {
    if (!options_.early_stop_s.has_value()) return false;
    const double limit_s = *options_.early_stop_s;
    // A call before this may have shown that the program is faster.
    if (options_.earlier_call_s) call_s = std::min(call_s, *options_.earlier_call_s);
    const int most = call_s < kCheapReadingsS    ? kEarlyStopReadings
                     : call_s < kAffordableCallS ? 2
                                                 : 1;
    for (int i = 1; call_s > limit_s && i < most; ++i) {
      KILN_ASSIGN_OR_RETURN(double again_s, device_.time_batch(1));
      call_s = std::min(call_s, again_s);
    }
    if (call_s <= limit_s) return false;
    Add(call_s, 1);
    timing_.stopped_early = true;
    return true;
  }

  // Runs a short batch before the long ones. A call by itself takes longer than one of many, so its
  // prediction alone would make the first batch too short. Returns true if the program is so slow
  // that the short batch is enough.
  StatusOr<bool> RunPilot() {
    const double pilot_s = kPilotPart * options_.min_repeat_s;
    if (call_s_ <= 0 || call_s_ * kMinPilotCalls > pilot_s || !Fits(2 * pilot_s)) return false;
    const int64_t number = Enough(static_cast<int64_t>(pilot_s / call_s_), call_s_);
    KILN_ASSIGN_OR_RETURN(const double batch_s, device_.time_batch(number));
    if (batch_s <= 0) return false;
    call_s_ = batch_s / static_cast<double>(number);
    pilot_s_ = call_s_;
    const std::optional<double> limit_s = LimitOfPilot();
    if (!limit_s.has_value() || call_s_ <= *limit_s) return false;
    KILN_ASSIGN_OR_RETURN(const double again_s, device_.time_batch(number));
    const double second_s = again_s / static_cast<double>(number);
    if (second_s > 0) call_s_ = std::min(call_s_, second_s);
    const double differs = second_s > 0 ? Differs(*pilot_s_, second_s) : 0;
    pilot_s_ = call_s_;
    // Both batches may be too slow by as much as they differ.
    if (call_s_ / (1 + differs) <= *limit_s) return false;
    Add(call_s_ * static_cast<double>(number), number);
    timing_.spread = differs;
    timing_.stopped_early = true;
    return true;
  }

  // Returns the time from which on the short batch is enough.
  std::optional<double> LimitOfPilot() const {
    const bool waits = options_.slower_s.has_value() && device_.is_wanted != nullptr;
    return waits && device_.is_wanted() ? options_.slower_s : options_.clearly_slower_s;
  }

  static double Differs(double a, double b) { return std::max(a, b) / std::min(a, b) - 1; }

  // Notes the spread of the short batch and the readings.
  void NoteSpread() {
    if (timing_.stopped_early || timing_.costs_s.empty()) return;
    auto [least, most] = std::ranges::minmax(timing_.costs_s);
    if (pilot_s_) {
      least = std::min(least, *pilot_s_);
      most = std::max(most, *pilot_s_);
    }
    if (least > 0) timing_.spread = Differs(least, most);
  }

  int64_t FirstNumber(double call_s) const {
    const int64_t asked = std::max<int64_t>(1, options_.number);
    if (options_.min_repeat_s <= 0) return AtMostLeft(Enough(asked, call_s), call_s);
    if (call_s >= options_.min_repeat_s) return Enough(1, call_s);
    if (call_s <= 0) return asked;
    const auto wanted = static_cast<int64_t>(kSurplus * options_.min_repeat_s / call_s) + 1;
    return AtMostLeft(Enough(wanted, call_s), call_s);
  }

  int64_t Enough(int64_t wanted, double call_s) const {
    if (flushes_ || device_.calls_per_reading == nullptr) return wanted;
    return device_.calls_per_reading(wanted, call_s);
  }

  // Cuts a batch beforehand to the size that the budget holds, because a batch cannot be
  // interrupted.
  int64_t AtMostLeft(int64_t number, double call_s) const {
    number = std::min(number, kMaxNumber);
    if (!options_.budget_s.has_value() || call_s <= 0) return number;
    const double most = std::floor(LeftS() / call_s);
    return most >= static_cast<double>(number) ? number
                                               : std::max<int64_t>(1, static_cast<int64_t>(most));
  }

  // Takes one reading. Grows number_ until the batch is long enough.
  Status RunRepeat() {
    int zero_readings = 0;
    while (true) {
      KILN_ASSIGN_OR_RETURN(double batch_s, device_.time_batch(number_));
      const double number = static_cast<double>(number_);
      call_s_ = batch_s / number;
      if (batch_s <= 0) ++zero_readings;
      const bool long_enough = batch_s >= options_.min_repeat_s;
      int64_t next = kMaxNumber;
      const double wanted = batch_s > 0
                                ? std::max(options_.min_repeat_s / call_s_ + 1, number * 1.618)
                                : number * 1.618 + 1;
      if (wanted < static_cast<double>(kMaxNumber)) {
        next = Enough(static_cast<int64_t>(wanted), call_s_);
      }
      if (long_enough || zero_readings >= kMaxZeroReadings || next == number_ ||
          !Fits(call_s_ * static_cast<double>(next))) {
        Add(batch_s, number_);
        return OkStatus();
      }
      number_ = next;
    }
  }

  TimingOptions options_;
  const TimingDevice& device_;
  // Whether the caches are flushed before each reading.
  const bool flushes_;
  // The end of the pause.
  double start_s_ = 0;
  // Latest estimate of one call.
  double call_s_ = 0;
  // Estimate by a short batch.
  std::optional<double> pilot_s_;
  int64_t number_ = 1;
  Timing timing_;
};

}  // namespace

StatusOr<Timing> TimeProgram(const TimingOptions& options, const TimingDevice& device) {
  return Timer(options, device).Run();
}

}  // namespace kiln::runner
