// Readings of several candidates by one device, in rounds: in each round one block of each, so that
// what disturbs the device disturbs all alike. From that, what is the device's drift is told from
// what is the candidate's cost: a reading counts after it is divided by how slow the device was in
// its round (a median polish of the logarithms). So candidates compare that were read at different
// times.
//
// A block is what is read in one go. However many readings it has, it counts as two values at most,
// the medians of its halves.
//
// Pure logic. Seconds. Not thread-safe. Cost: of a reading after a change some 10 passes over all
// values, of which there are a hundred for each candidate at most.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/median.h"

namespace kiln::search {

class InterleavedReadings {
 public:
  static constexpr int kValuesPerBlock = 2;

  // Blocks that are added from now on are of another round.
  void BeginRound() { ++round_; }
  // Has the candidate a block of this round?
  bool InRound(int64_t candidate) const;
  void Add(int64_t candidate, std::span<const double> costs_s);  // no costs: no block
  // What values_s and readings said in an earlier life, or of a device that is like this one.
  void Restore(int64_t candidate, std::span<const double> values_s, int readings);
  void Forget(int64_t candidate);

  // All is 0 or empty of a candidate that was not read.
  const std::vector<double>& values_s(int64_t candidate) const;  // drift taken out
  MedianCost median(int64_t candidate) const { return MedianOf(values_s(candidate)); }
  int blocks(int64_t candidate) const;  // those of one reading count half
  int readings(int64_t candidate) const;

  // How far the device's speed in one round is from that in a typical one: 95%, as a share of a
  // cost. 0 where fewer than three rounds tell.
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
    mutable std::vector<double> values_s;  // as of the last Polish
  };
  static void AddValue(Candidate& candidate, int round, double cost_s);
  void Polish() const;
  std::map<int, double> Drift() const;  // by round; 0 where it can't be told

  int round_ = 1;  // 0: of what was restored
  std::map<int64_t, Candidate> candidates_;
  mutable bool polished_ = true;
};

}  // namespace kiln::search
