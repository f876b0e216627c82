// The choice of candidates by what their builds cost, where builds are the limit of a job: the more
// a candidate may improve the best time in each second of its trial, the earlier it comes.
//
// A candidate's improvement is expected from the predicted times: its logarithm is taken for a
// normal variable around the prediction, and what it is below the best prediction is a gain. The
// seconds of a trial are those of its build, as predicted, and a part that all trials have alike.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace kiln::search {

// The standard deviation of the logarithm of a predicted time.
inline constexpr double kPredictionError = 0.2;
// The search for a trial and its measurement take this share of a mean build.
inline constexpr double kOtherShare = 0.3;

// Returns the expected gain of a candidate whose predicted time is so many times the best one, as a
// logarithm. It falls from 0.4 kPredictionError at 1.
double ExpectedGain(double slowness);

// Returns the candidates' places in the order in which they are chosen. `scores` are those of a
// cost model, the best first; if all are negative they are minus seconds, else throughputs. The
// first `best` candidates stay in front, whatever their builds cost. `builds_s` are positive. A
// trial takes `other_s` besides its build.
std::vector<size_t> OrderByGainPerSecond(std::span<const double> scores,
                                         std::span<const double> builds_s, double other_s,
                                         size_t best);

// Returns which of the builds take at most as long as the median one. That is half of them at
// least.
std::vector<bool> CheapHalf(std::span<const double> builds_s);

// Tells whether builds are the limit of a job.
class BuildLimit {
 public:
  // A trial's result is there. The time is that of its build, if the device had waited for it.
  void Note(std::optional<double> awaited_build_s);
  // True once some results are there, and devices had waited for most of the latest ones.
  bool is_reached() const { return results_ >= kResults && share_ > 0.5; }
  // Returns the seconds that a trial takes besides its build.
  double other_s() const { return kOtherShare * mean_s_; }
  // The mean of the latest builds that were awaited.
  double mean_s() const { return mean_s_; }

 private:
  static constexpr int kResults = 8;
  static constexpr double kNewest = 0.1;  // weight of the newest result in the share

  int results_ = 0, builds_ = 0;
  double share_ = 0;   // of the results whose builds were awaited, the newest of which count more
  double mean_s_ = 0;  // of the builds that were awaited, likewise
};

}  // namespace kiln::search
