// How far a device is from itself at another time, as a job has seen it.
//
// The final race of a task are over in seconds. Their interval is one of the turns: it says how
// well the median is known while the device stays as it is. What it does not hold is the drift from
// one minute to the next, by other programs, heat and clocks. What a job knows of that are its
// finalists: each was read when it was a trial, at some time of the job, and again in the final
// race. The two differ by the drift between and by the noise of a trial's short reading, which the
// turns tell and which is taken out.
//
// Finalists are chosen for short first readings, so the drift is rather over- than underestimated;
// and a drift that is slower than the job is long cannot be seen.
//
// Thread-safe. Seconds.
#pragma once

#include <mutex>
#include <span>
#include <vector>

namespace kiln::search {

class DeviceDrift {
 public:
  // A finalist: what its trial read, and the values of its turns, from which the drift between
  // turns is taken out. Without values it tells nothing.
  void Add(double first_s, std::span<const double> values_s);

  // 95% of the drift, as a share of a cost; 0: none is seen, or nothing is known.
  double Share() const;

 private:
  mutable std::mutex mutex_;
  std::vector<double> changes_;  // of the logarithm, from the trial to the final race
  std::vector<double> noise_;    // likewise, of values from their median
};

// The half width of the interval of a cost that is known within confidence_s while the device does
// not change, and whose device drifts by such a share.
double WithDrift(double cost_s, double confidence_s, double drift_share);

}  // namespace kiln::search
