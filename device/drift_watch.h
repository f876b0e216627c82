// Watches the readings of a device's canary program, and says when the device is slower than usual.
//
// The first readings say what is usual: their median, and an interval about it of some standard
// deviations, but at least a few percent. Readings within the interval go on correcting both, so
// that the interval becomes sure; the median stays near the lowest one that was seen, so that a
// device that slows down slowly does not take its interval along. A reading above the interval is
// no drift yet: the caller repeats it at once, and only a few in a row are one. The device is well
// again after as many readings in a row that are not above the interval.
//
// A device that becomes clearly faster soon after it joined was slow when it joined. The interval
// is then learned anew, and the time before becomes a span of drift.
//
// Pure: no I/O and no clock; every call passes the time, Unix seconds. Not thread-safe. Cost: a
// median of 64 numbers for each reading.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace kiln::device {

struct DriftOptions {
  // Readings that say what is usual at first.
  size_t first_readings = 9;
  // Readings that say so later on: the newest ones.
  size_t kept = 64;
  // Half width of the interval: standard deviations, and at least this share of the median.
  double deviations = 4;
  double floor = 0.04;
  // Share by which the median may rise above the lowest one.
  double creep = 0.02;
  // Readings in a row that make a drift, or end it.
  int agreeing = 3;
  // Spans that ended longer ago are forgotten; only the newest ones are kept.
  double forget_s = 24 * 3600;
  size_t most_spans = 100;
};

// A time in which the device was slower than usual.
struct Drift {
  // Time of the last reading that was well, before the span.
  double from_s = 0;
  // Time of the first reading that was well again; 0 = the span goes on.
  double to_s = 0;
  // "the canary took 1.31 ms; 0.98 to 1.02 ms are usual"
  std::string reason;
  bool operator==(const Drift&) const = default;
};

class DriftWatch {
 public:
  enum class State { kLearning, kWell, kDrifting };

  explicit DriftWatch(const DriftOptions& options = {}) : options_(options) {}

  // Takes a reading, a time in seconds above 0, and returns the state after it. Times ascend.
  State Feed(double unix_s, double reading_s);

  State state() const { return state_; }
  // True if the newest reading contradicts the state or the interval, or neither is known yet: the
  // next reading should come soon.
  bool wants_more() const { return state_ == State::kLearning || against_ > 0 || below_ > 0; }
  // Newest reading; 0 = there is none.
  double reading_s() const { return reading_s_; }

  // Ends of the interval; 0 while the watch learns.
  double low_s() const;
  double high_s() const;

  // "the canary took 1.31 ms; 0.98 to 1.02 ms are usual", of the newest reading that was too long;
  // "" unless the device drifts.
  std::string Sentence() const;
  // Spans, oldest first.
  std::vector<Drift> Spans(double unix_s);

 private:
  void Learn(double unix_s, double reading_s);
  void LearnAnew(double unix_s);
  void Keep(double unix_s, double reading_s);
  void BeginDrift();
  void EndDrift();
  std::string SentenceOf(double reading_s) const;
  void AddSpan(Drift span);

  const DriftOptions options_;
  State state_ = State::kLearning;
  double reading_s_ = 0;
  // The newest readings that were well.
  std::deque<double> readings_;
  // Number of readings that were well since the interval was learned.
  size_t well_readings_ = 0;
  double median_s_ = 0, half_width_s_ = 0, lowest_median_s_ = 0;
  // Time of the first reading of this interval, and of the newest one that was well.
  double learned_from_s_ = 0, last_well_s_ = 0;
  // Readings in a row against the state: above the interval of a device that is well, within it of
  // one that drifts. And the time and the largest of the readings.
  int against_ = 0;
  double against_from_s_ = 0, against_s_ = 0;
  // Readings in a row below the interval, and the time of the first of them.
  int below_ = 0;
  double below_from_s_ = 0;
  // Set while the interval is learned anew: the span that becomes a drift, and what was usual then.
  double slow_from_s_ = 0, slow_to_s_ = 0, slow_s_ = 0;
  // Newest reading above the interval.
  double too_long_s_ = 0;
  std::deque<Drift> spans_;
};

// "0.98 to 1.02 ms"
std::string FormatInterval(double low_s, double high_s);

}  // namespace kiln::device
