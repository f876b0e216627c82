// The last measurement of a task's best candidates: all in turns, round after round
// (interleaved_readings.h); the best median wins. What was read of them before counts. One that is
// surely worse than the best leaves early. There are more rounds where the readings differ so much
// that the best one's cost is not known, as on a machine that others use.
//
// Pure logic: who measures is the caller's business. Seconds. Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/median.h"
#include "search/tuning/interleaved_readings.h"

namespace kiln::search {

// Single short readings are this far from the truth at most, as a factor.
inline constexpr double kFinalistMargin = 1.25;

// How many of a task's candidates are, when so many are asked for: fewer of few trials, as their
// measurement takes a part of the job's time.
int MostFinalists(int asked, int trials);

// Which of the costs (of one right trial each) are worth a second look: at most `most` of them,
// best first, none much slower than the best.
std::vector<int> ChooseFinalists(std::span<const double> costs_s, int most);

class FinalRace {
 public:
  struct Options {
    int rounds = 5;          // blocks of each in the end, those that were read before included
    int rounds_for_all = 2;  // before the first may leave
    int times_if_noisy = 3;  // so many more rounds, at most
    double noisy_share =
        0.05;  // the best one's interval, as a share of its cost, beyond which it is
  };
  FinalRace(int entries, const Options& options);

  // What was read of it before, by the same device.
  void Restore(int entry, std::span<const double> values_s, int readings);
  // Whom to measure now, in this order; none: it is over. All that have not left, as long as one of
  // them lacks a block.
  std::vector<int> NextRound();
  void Add(int entry, std::span<const double> costs_s);
  // It failed.
  void Disqualify(int entry);

  const std::vector<double>& values_s(int entry) const { return readings_.values_s(entry); }
  int readings(int entry) const { return readings_.readings(entry); }
  MedianCost median(int entry) const { return readings_.median(entry); }
  // Of its rounds: InterleavedReadings.
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
