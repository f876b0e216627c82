// Tells a program that computes in each call from one that keeps answers and gives them again.
//
// The evidence is pairs of calls: a fresh one, on inputs that the program has not met, and a
// repeated one, on the inputs of the call before, which were written anew all the same. For a
// program that computes the two differ by the machine's noise alone, so that whatever the load is,
// the fresh call of a pair is the shorter one as often as not. A program is said to keep answers if
// far fewer pairs than that fit: for one that computes, fewer than once in a million trials.
//
// A pair fits if its calls take as long as each other, or compute as long as each other. The time
// that a program computes has no waits for a core in it, so that most programs need one pair.
#pragma once

#include <optional>

namespace kiln::runner {

// Seconds of a call by two clocks that the program cannot reach.
struct CallTime {
  double wall_s = 0;
  // CPU time of all threads, if it is known.
  std::optional<double> computed_s = {};
};

// Both calls have the same overhead.
struct CallPair {
  CallTime fresh;
  CallTime repeated;
};

enum class Keeping { kComputes, kKeeps, kUndecided };

// Used by one thread.
class KeptAnswers {
 public:
  // A call takes `cost_s` when the program is timed.
  explicit KeptAnswers(double cost_s) : cost_s_(cost_s) {}

  void Add(const CallPair& pair);
  // Adds one more repeated call after the last pair, which tells what such calls take at least.
  void AddRepeated(const CallTime& repeated);
  Keeping keeping() const;
  // Returns whether the repeated calls were long by one of the clocks, compared with the readings,
  // so that further repeated calls may tell more.
  bool RepeatedAreLong() const { return HasWaited() || HasSpun(shortest_.repeated); }
  // Returns whether a program that computes gives such pairs more often than once in a hundred
  // trials.
  bool MayCompute() const;
  int pairs() const { return pairs_; }
  int fitting_pairs() const { return fitting_; }
  // The shortest calls of all pairs, by each clock.
  const CallPair& shortest() const { return shortest_; }

 private:
  // Returns whether the shortest repeated call waited for a core for so long that it would hide
  // what the program does.
  bool HasWaited() const;
  // Returns whether threads looked for work for so long in this repeated call.
  bool HasSpun(const CallTime& repeated) const;
  // Returns whether the program computed as long in the repeated call as in the fresh one.
  bool ComputesAlike(const CallPair& pair) const;

  const double cost_s_;
  CallPair shortest_;
  int pairs_ = 0;
  int fitting_ = 0;
};

// Returns whether a call on new inputs is so little longer than another that the program computed
// in both.
bool IsLikeCall(double fresh_s, double other_s);

}  // namespace kiln::runner
