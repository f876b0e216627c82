#include "runner/clock_check.h"

namespace kiln::runner {
namespace {

// A shorter request cannot be judged.
constexpr double kJudged_s = 5e-3;
// The process's time fits if no more passed outside, but for the overhead of a request and of
// threads that are woken.
constexpr double kFitShare = 0.1, kFitSlack_s = 2e-3;
// A thread computes outside of the calls only while it spins for less than a millisecond before it
// sleeps, and while it reads the request.
constexpr double kForgedShare = 0.5, kForgedSlack_s = 20e-3;

}  // namespace

ClockVerdict JudgeClock(const ClockReading& reading) {
  if (reading.outside_s < kJudged_s) return ClockVerdict::kFits;
  const double waited_s = reading.cores ? reading.cores->waited_s : 0;
  if (reading.outside_s - waited_s <= (1 + kFitShare) * reading.told_s + kFitSlack_s) {
    return ClockVerdict::kFits;
  }
  const double computed_s = reading.cores ? reading.cores->longest_s : 0;
  return computed_s > (1 + kForgedShare) * reading.told_s + kForgedSlack_s ? ClockVerdict::kForged
                                                                           : ClockVerdict::kDiffers;
}

}  // namespace kiln::runner
