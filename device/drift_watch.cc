#include "device/drift_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/numbers/median.h"

namespace kiln::device {
namespace {

struct Unit {
  double seconds;
  const char* name;
};

Unit UnitOf(double seconds) {
  if (seconds >= 1) return {1, "s"};
  if (seconds >= 1e-3) return {1e-3, "ms"};
  return {1e-6, "us"};
}

// Three digits, and two behind the point of small numbers.
std::string Digits(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string FormatInterval(double low_s, double high_s) {
  const Unit unit = UnitOf(high_s);
  return fmt::format("{} to {} {}", Digits(low_s / unit.seconds), Digits(high_s / unit.seconds),
                     unit.name);
}

double DriftWatch::low_s() const {
  return state_ == State::kLearning ? 0 : std::max(0.0, median_s_ - half_width_s_);
}

double DriftWatch::high_s() const {
  return state_ == State::kLearning ? 0 : median_s_ + half_width_s_;
}

std::string DriftWatch::SentenceOf(double reading_s) const {
  const Unit unit = UnitOf(reading_s);
  return fmt::format("the canary took {} {}; {} are usual", Digits(reading_s / unit.seconds),
                     unit.name, FormatInterval(low_s(), high_s()));
}

std::string DriftWatch::Sentence() const {
  return state_ == State::kDrifting ? SentenceOf(too_long_s_) : "";
}

void DriftWatch::Keep(double unix_s, double reading_s) {
  last_well_s_ = unix_s;
  ++well_readings_;
  readings_.push_back(reading_s);
  if (readings_.size() > options_.kept) readings_.pop_front();
  if (readings_.size() < options_.first_readings) return;
  const std::vector<double> kept(readings_.begin(), readings_.end());
  const double median_s = MedianOf(kept).cost_s;
  lowest_median_s_ = lowest_median_s_ == 0 ? median_s : std::min(lowest_median_s_, median_s);
  median_s_ = std::min(median_s, (1 + options_.creep) * lowest_median_s_);
  half_width_s_ =
      std::max(options_.floor * median_s_, options_.deviations * ScaleOf(kept, median_s));
}

void DriftWatch::Learn(double unix_s, double reading_s) {
  if (readings_.empty()) learned_from_s_ = unix_s;
  Keep(unix_s, reading_s);
  if (readings_.size() < options_.first_readings) return;
  state_ = State::kWell;
  if (slow_s_ == 0) return;
  // The old median may be within the new interval after all.
  if (slow_s_ > high_s()) AddSpan({slow_from_s_, slow_to_s_, SentenceOf(slow_s_)});
  slow_s_ = 0;
}

// The readings so far are of a device that was slower. If it had not been so for long, it was slow
// when it joined.
void DriftWatch::LearnAnew(double unix_s) {
  if (well_readings_ < options_.kept) {
    slow_from_s_ = learned_from_s_;
    slow_to_s_ = below_from_s_;
    slow_s_ = median_s_;
  }
  readings_.clear();
  well_readings_ = 0;
  lowest_median_s_ = 0;
  below_ = 0;
  state_ = State::kLearning;
  learned_from_s_ = unix_s;
}

void DriftWatch::BeginDrift() {
  state_ = State::kDrifting;
  AddSpan({last_well_s_, 0, SentenceOf(against_s_)});
  against_ = 0;
}

void DriftWatch::EndDrift() {
  state_ = State::kWell;
  spans_.back().to_s = against_from_s_;
  against_ = 0;
}

void DriftWatch::AddSpan(Drift span) {
  spans_.push_back(std::move(span));
  if (spans_.size() > options_.most_spans) spans_.pop_front();
}

DriftWatch::State DriftWatch::Feed(double unix_s, double reading_s) {
  reading_s_ = reading_s;
  if (state_ == State::kLearning) {
    Learn(unix_s, reading_s);
    return state_;
  }
  const bool is_slow = reading_s > high_s();
  const bool is_fast = reading_s < low_s();
  if (is_slow) too_long_s_ = reading_s;
  if (is_slow == (state_ == State::kDrifting)) {
    against_ = 0;
  } else {
    if (against_++ == 0) {
      against_from_s_ = unix_s;
      against_s_ = 0;
    }
    against_s_ = std::max(against_s_, reading_s);
  }
  if (is_fast) {
    if (below_++ == 0) below_from_s_ = unix_s;
  } else {
    below_ = 0;
  }
  if (against_ >= options_.agreeing) is_slow ? BeginDrift() : EndDrift();
  if (state_ == State::kWell && below_ >= options_.agreeing) {
    LearnAnew(unix_s);
    Learn(unix_s, reading_s);
  } else if (state_ == State::kWell && !is_slow && !is_fast) {
    Keep(unix_s, reading_s);
  } else if (state_ == State::kWell && !is_slow) {
    last_well_s_ = unix_s;
  }
  return state_;
}

std::vector<Drift> DriftWatch::Spans(double unix_s) {
  while (!spans_.empty() && spans_.front().to_s != 0 &&
         spans_.front().to_s < unix_s - options_.forget_s) {
    spans_.pop_front();
  }
  return {spans_.begin(), spans_.end()};
}

}  // namespace kiln::device
