// The last measurement of a task's best candidates: all in turns, round after round, so that what
// disturbs the device disturbs all alike; the best median wins. One that is surely worse than the
// best leaves early.
//
// Pure logic: who measures is the caller's business. Seconds. Not thread-safe.
#pragma once

#include <span>
#include <vector>

#include "base/median.h"

namespace kiln::search {

// Which of the costs (of one trial each; 0 = failed) are worth a second look: at most `most` of
// them, best first, none much slower than the best.
std::vector<int> ChooseFinalists(std::span<const double> costs_s, int most);

class FinalRace {
 public:
  struct Options {
    int rounds = 5;
    int rounds_for_all = 2;  // before the first may leave
  };
  FinalRace(int entries, const Options& options);

  // Whom to measure now, in this order; none: it is over.
  std::vector<int> NextRound();
  void Add(int entry, std::span<const double> costs_s);
  // It failed.
  void Disqualify(int entry);

  const std::vector<double>& costs_s(int entry) const { return entries_[entry].costs_s; }
  MedianCost median(int entry) const { return MedianOf(entries_[entry].costs_s); }
  int best() const;  // -1: all failed

 private:
  struct Entry {
    std::vector<double> costs_s;
    bool failed = false;
    bool left = false;
  };
  void LetHopelessLeave();

  const Options options_;
  int round_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace kiln::search
