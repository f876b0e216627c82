// The last measurement of a task's best candidates. All take turns, round after round
// (interleaved_readings.h), and the best median wins. Earlier readings count. A candidate that is
// surely worse than the best leaves early. There are more rounds if the readings differ so much
// that the cost of the best is not known, as on a machine that others use.
//
// Pure logic: the caller measures. Times are seconds. Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/numbers/median.h"
#include "search/tuning/interleaved_readings.h"

namespace kiln::search {

// A single short reading is wrong by at most this factor.
inline constexpr double kFinalistMargin = 1.25;

// Returns how many of a task's candidates are finalists if so many are asked for. A task of few
// trials has fewer, because the finalists' measurement takes a part of the job's time.
int MaxFinalists(int asked, int trials);

// Chooses the costs (of one correct trial each) that deserve a second look: at most `most` of them,
// the best first, and none that is much slower than the best.
std::vector<int> ChooseFinalists(std::span<const double> costs_s, int most);

class FinalRace {
 public:
  struct Options {
    int rounds = 5;             // blocks of each in the end, with those read before
    int rounds_for_all = 2;     // before the first candidate may leave
    int times_if_noisy = 3;     // factor on the number of rounds if the best is noisy
    double noisy_share = 0.05;  // the best is noisy if its interval is a larger share of its cost
  };
  FinalRace(int entries, const Options& options);

  // Adds earlier readings of the entry by the same device.
  void Restore(int entry, std::span<const double> values_s, int readings);
  // Returns the entries to measure now, in this order, or none if the race is over. While an entry
  // lacks a block, all entries that have not left are measured.
  std::vector<int> NextRound();
  void Add(int entry, std::span<const double> costs_s);
  // Notes that the entry failed.
  void Disqualify(int entry);

  const std::vector<double>& values_s(int entry) const { return readings_.values_s(entry); }
  int readings(int entry) const { return readings_.readings(entry); }
  MedianCost median(int entry) const { return readings_.median(entry); }
  // Drift of the device between the rounds: see InterleavedReadings.
  double drift_share() const { return readings_.DriftShare(); }
  std::optional<int> best() const;  // none: all failed

 private:
  struct Entry {
    bool failed = false;
    bool left = false;
  };
  void DropSlow();
  int RoundsNeeded(size_t racing) const;

  const Options options_;
  int round_ = 0;
  InterleavedReadings readings_;
  std::vector<Entry> entries_;
};

}  // namespace kiln::search
