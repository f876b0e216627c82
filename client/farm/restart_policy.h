// When a daemon that has died is started again: at once after a long life, later and later after
// short ones, and not at all after many short ones.
//
// Pure. Not thread-safe.
#pragma once

#include <algorithm>
#include <optional>

#include "absl/time/time.h"

namespace kiln::client {

class RestartPolicy {
 public:
  struct Limits {
    // The pause after the first death; each further one doubles it.
    absl::Duration first_pause = absl::Milliseconds(200);
    absl::Duration longest_pause = absl::Seconds(30);
    // After so long a life a death counts as the first.
    absl::Duration long_life = absl::Minutes(1);
    int most_deaths = 10;
  };

  RestartPolicy() = default;
  explicit RestartPolicy(const Limits& limits) : limits_(limits) {}

  // Call it when the daemon has died after `life`. Returns the pause before the next start, or
  // nothing if the daemon is to be given up.
  std::optional<absl::Duration> Died(absl::Duration life) {
    if (life >= limits_.long_life) deaths_ = 0;
    if (++deaths_ > limits_.most_deaths) return std::nullopt;
    absl::Duration pause = limits_.first_pause;
    for (int i = 1; i < deaths_ && pause < limits_.longest_pause; ++i) pause *= 2;
    return std::min(pause, limits_.longest_pause);
  }

 private:
  Limits limits_;
  int deaths_ = 0;
};

}  // namespace kiln::client
