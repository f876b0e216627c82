// Tells a program that computes in each call from one that keeps answers and gives them again.
//
// The evidence is pairs of calls: a fresh one, on inputs that the program has not met, and a
// repeated one, on the inputs of the call before, which were written anew all the same. For a
// program that computes the two differ by the machine's noise alone, so that whatever the load is,
// the fresh call of a pair is the shorter one as often as not. A program is said to keep answers if
// far fewer pairs than that fit: for one that computes, fewer than once in a million trials.
#pragma once

namespace kiln::runner {

// Seconds of two calls by a clock that the program cannot reach. Both have the same overhead.
struct CallPair {
  double fresh_s = 0;
  double repeated_s = 0;
};

enum class Keeping { kComputes, kKeeps, kUndecided };

// Used by one thread.
class KeptAnswers {
 public:
  // A call takes `cost_s` when the program is timed.
  explicit KeptAnswers(double cost_s) : cost_s_(cost_s) {}

  void Add(const CallPair& pair);
  Keeping keeping() const;
  // Returns whether a program that computes gives such pairs more often than once in a hundred
  // trials.
  bool MayCompute() const;
  int pairs() const { return pairs_; }
  int fitting_pairs() const { return fitting_; }
  // The shortest calls of all pairs.
  const CallPair& shortest() const { return shortest_; }

 private:
  const double cost_s_;
  CallPair shortest_;
  int pairs_ = 0;
  int fitting_ = 0;
};

// Returns whether a call on new inputs is so little longer than another that the program computed
// in both.
bool IsLikeCall(double fresh_s, double other_s);

}  // namespace kiln::runner
