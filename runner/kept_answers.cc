#include "runner/kept_answers.h"

#include <algorithm>
#include <cmath>

namespace kiln::runner {
namespace {

constexpr double kRatio = 1.5;
constexpr double kSlack_s = 20e-6;
// A repeated call that is longer than this, compared with the readings, had to wait for a core, and
// would hide what the program does. A few further pairs then show more.
constexpr double kWaitedRatio = 4, kWaitedSlack_s = 100e-6;
constexpr int kPairsThatWaited = 4;
// Half of so many pairs and more fit if the program computes, even on a machine that is too busy
// for a clean pair.
constexpr int kManyPairs = 6;
// Share of the programs that compute, at most, which are said to keep answers.
constexpr double kErrors = 1e-6;
constexpr double kSeldom = 1e-2;

// Returns the probability that of `all` fair coins at most `heads` show heads.
double AtMostHeads(int heads, int all) {
  double sum = 0, ways = 1;
  for (int k = 0; k <= heads; ++k) {
    sum += ways;
    ways *= static_cast<double>(all - k) / (k + 1);
  }
  return std::ldexp(sum, -all);
}

}  // namespace

bool IsLikeCall(double fresh_s, double other_s) { return fresh_s <= kRatio * other_s + kSlack_s; }

void KeptAnswers::Add(const CallPair& pair) {
  shortest_.fresh_s = pairs_ > 0 ? std::min(shortest_.fresh_s, pair.fresh_s) : pair.fresh_s;
  shortest_.repeated_s =
      pairs_ > 0 ? std::min(shortest_.repeated_s, pair.repeated_s) : pair.repeated_s;
  ++pairs_;
  if (IsLikeCall(pair.fresh_s, pair.repeated_s)) ++fitting_;
}

Keeping KeptAnswers::keeping() const {
  if (pairs_ == 0) return Keeping::kUndecided;
  if (pairs_ >= kManyPairs && 2 * fitting_ >= pairs_) return Keeping::kComputes;
  const bool has_waited = shortest_.repeated_s > kWaitedRatio * cost_s_ + kWaitedSlack_s;
  if (IsLikeCall(shortest_.fresh_s, shortest_.repeated_s)) {
    return has_waited && pairs_ < kPairsThatWaited ? Keeping::kUndecided : Keeping::kComputes;
  }
  return AtMostHeads(fitting_, pairs_) <= kErrors ? Keeping::kKeeps : Keeping::kUndecided;
}

bool KeptAnswers::MayCompute() const { return AtMostHeads(fitting_, pairs_) > kSeldom; }

}  // namespace kiln::runner
