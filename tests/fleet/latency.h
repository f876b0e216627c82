// A distribution of times, from which a simulated worker draws how long its calls take.
//
// Plain values. A draw belongs to the thread that owns the random numbers.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"

namespace kiln::fleet {

class Latency {
 public:
  // Reads "0" (no time at all), "P50:P90" in seconds (log-normal through these two), or the name of
  // a file with one time in seconds a line, of which each is drawn equally often. InvalidArgument
  // says what is wrong.
  static StatusOr<Latency> Parse(std::string_view text);

  std::chrono::nanoseconds Draw(Rng& rng) const;

 private:
  double median_s_ = 0;
  double sigma_ = 0;  // of the logarithm
  std::vector<double> samples_s_;
};

}  // namespace kiln::fleet
