// Readings of several candidates by one device, in rounds. Each round has one block of each
// candidate, so that a disturbance of the device affects all of them alike. This tells the drift of
// the device from the cost of a candidate: each reading is divided by the slowness of the device in
// its round (a median polish of the logarithms). Candidates that were read at different times can
// therefore be compared.
//
// A block is a series of readings without a break. However many readings it has, it counts as two
// values at most, the medians of its halves.
//
// Pure logic. Times are seconds. Not thread-safe. Cost: after a change, the first reading of values
// takes some 10 passes over all values, of which each candidate has a hundred at most.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/numbers/median.h"

namespace kiln::search {

class InterleavedReadings {
 public:
  static constexpr int kValuesPerBlock = 2;

  // Puts the blocks that are added from now on into another round.
  void BeginRound() { ++round_; }
  // Tells whether the candidate has a block in this round.
  bool InRound(int64_t candidate) const;
  void Add(int64_t candidate, std::span<const double> costs_s);  // without costs, adds no block
  // Restores values_s and readings of an earlier object, or of a similar device.
  void Restore(int64_t candidate, std::span<const double> values_s, int readings);
  void Forget(int64_t candidate);

  // For a candidate that was not read, all results are 0 or empty.
  const std::vector<double>& values_s(int64_t candidate) const;  // without the drift
  MedianCost median(int64_t candidate) const { return MedianOf(values_s(candidate)); }
  int blocks(int64_t candidate) const;  // a block of one reading counts half
  int readings(int64_t candidate) const;

  // Returns how much the device's speed in one round differs from that in a typical round: the
  // limit for 95% of rounds, as a share of a cost. 0 with fewer than three rounds.
  double DriftShare() const;

 private:
  struct Value {
    int round = 0;
    double cost_s = 0;
    double log_cost = 0;
  };
  struct Candidate {
    std::vector<Value> values;
    int readings = 0;
    mutable std::vector<double> values_s;  // from the last Polish
  };
  static void AddValue(Candidate& candidate, int round, double cost_s);
  void Polish() const;
  std::map<int, double> Drift() const;  // key: round; 0 if the drift is not known

  int round_ = 1;  // 0: the restored values
  std::map<int64_t, Candidate> candidates_;
  mutable bool polished_ = true;
};

}  // namespace kiln::search
