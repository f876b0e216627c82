// Measures how much a device's speed differs from one time to another, as a job has observed it.
//
// The final race of a task is over in seconds. Its confidence interval comes from the turns: it
// says how well the median is known while the device stays as it is. The interval does not cover
// the drift from one minute to the next, which comes from other programs, heat and clocks. A job
// learns about that drift from its finalists: each was read as a trial, at some time of the job,
// and again in the final race. The two readings differ by the drift between them, and by the noise
// of a trial's short reading. The turns tell that noise, which is subtracted.
//
// Finalists are chosen for short first readings, so the drift is rather overestimated than
// underestimated. A drift that takes longer than the job cannot be seen.
//
// Thread-safe. Times are seconds.
#pragma once

#include <mutex>
#include <span>
#include <vector>

namespace kiln::search {

class DeviceDrift {
 public:
  // Adds a finalist: the reading of its trial, and the values of its turns, without the drift
  // between turns. A finalist without values adds nothing.
  void Add(double first_s, std::span<const double> values_s);

  // Returns the drift that 95% of changes stay below, as a share of a cost. 0: no drift is seen, or
  // nothing is known.
  double Share() const;

 private:
  mutable std::mutex mutex_;
  std::vector<double> changes_;  // change of the logarithm from the trial to the final race
  std::vector<double> noise_;    // difference of each value's logarithm from the median's
};

// Returns the half width of the interval of a cost that is known within confidence_s as long as the
// device does not change, on a device that drifts by this share.
double WithDrift(double cost_s, double confidence_s, double drift_share);

}  // namespace kiln::search
