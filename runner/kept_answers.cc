#include "runner/kept_answers.h"

#include <algorithm>
#include <cmath>

namespace kiln::runner {
namespace {

constexpr double kRatio = 1.5;
constexpr double kSlack_s = 20e-6;
// A repeated call that is longer than this, compared with the readings, had to wait for a core, or
// its threads looked for work, and it would hide what the program does. A few further calls or
// pairs then show more.
constexpr double kLongRatio = 4, kWaited_s = 100e-6, kSpun_s = 160e-6;
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

CallTime ShorterOf(const CallTime& a, const CallTime& b) {
  CallTime shorter{.wall_s = std::min(a.wall_s, b.wall_s)};
  if (a.computed_s && b.computed_s) shorter.computed_s = std::min(*a.computed_s, *b.computed_s);
  return shorter;
}

}  // namespace

bool IsLikeCall(double fresh_s, double other_s) { return fresh_s <= kRatio * other_s + kSlack_s; }

void KeptAnswers::Add(const CallPair& pair) {
  shortest_ = pairs_ == 0 ? pair
                          : CallPair{.fresh = ShorterOf(shortest_.fresh, pair.fresh),
                                     .repeated = ShorterOf(shortest_.repeated, pair.repeated)};
  ++pairs_;
  if (IsLikeCall(pair.fresh.wall_s, pair.repeated.wall_s) || ComputesAlike(pair)) ++fitting_;
}

void KeptAnswers::AddRepeated(const CallTime& repeated) {
  shortest_.repeated = ShorterOf(shortest_.repeated, repeated);
}

bool KeptAnswers::HasWaited() const {
  return shortest_.repeated.wall_s > kLongRatio * cost_s_ + kWaited_s;
}

bool KeptAnswers::HasSpun(const CallTime& repeated) const {
  return repeated.computed_s.value_or(0) > kLongRatio * cost_s_ + kSpun_s;
}

bool KeptAnswers::ComputesAlike(const CallPair& pair) const {
  const auto& [fresh, repeated] = pair;
  return fresh.computed_s && repeated.computed_s && !HasSpun(repeated) &&
         IsLikeCall(*fresh.computed_s, *repeated.computed_s);
}

Keeping KeptAnswers::keeping() const {
  if (pairs_ == 0) return Keeping::kUndecided;
  if (ComputesAlike(shortest_)) return Keeping::kComputes;
  if (pairs_ >= kManyPairs && 2 * fitting_ >= pairs_) return Keeping::kComputes;
  if (IsLikeCall(shortest_.fresh.wall_s, shortest_.repeated.wall_s)) {
    return HasWaited() && pairs_ < kPairsThatWaited ? Keeping::kUndecided : Keeping::kComputes;
  }
  return AtMostHeads(fitting_, pairs_) <= kErrors ? Keeping::kKeeps : Keeping::kUndecided;
}

bool KeptAnswers::MayCompute() const { return AtMostHeads(fitting_, pairs_) > kSeldom; }

}  // namespace kiln::runner
