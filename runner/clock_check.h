// Judges the time that a program's process reports, because the program can change the clock that
// its process reads (docs/runner.md, "A changed clock").
#pragma once

#include <optional>

#include "runner/core_waits.h"

namespace kiln::runner {

// The times of one request, in seconds.
struct ClockReading {
  // Time by the clock of the program's process, for the calls alone.
  double told_s = 0;
  // Time by the clock of another process, from the request to the answer.
  double outside_s = 0;
  // Use of cores by the threads of the program's process meanwhile, with the waits of the thread
  // that asked; nothing: the system does not tell.
  std::optional<CoreUse> cores = {};
};

enum class ClockVerdict {
  // The process's time is right.
  kFits,
  // More time passed outside, for unknown reasons: that time counts.
  kDiffers,
  // The program computed for far longer than its process says. No load of a machine explains that.
  kForged,
};
ClockVerdict JudgeClock(const ClockReading& reading);

}  // namespace kiln::runner
