// How many slots a farm's jobs have wanted of late. A fleet grows by what was wanted all the time,
// and shrinks to the most that was wanted at any time, so that a short wave neither starts workers
// nor ends them.
#pragma once

#include <deque>

namespace kiln::client {

// Values of one kind of worker, and for one thread. Times are monotonic seconds.
class DemandHistory {
 public:
  explicit DemandHistory(double longest_s) : longest_s_(longest_s) {}

  // Times are in rising order.
  void Add(double now_s, int slots);
  // Forgets all, after a time in which nobody looked.
  void Clear() { looks_.clear(); }

  // Returns the least value of the last `window_s` before the newest look; 0 if the looks do not
  // reach back so far.
  int Least(double window_s) const;
  // Returns the greatest value of that time, or `unknown` if the looks do not reach back so far.
  int Greatest(double window_s, int unknown) const;

 private:
  struct Look {
    double at_s = 0;
    int slots = 0;
  };

  // Tells whether the looks reach back to the beginning of the window.
  bool Covers(double window_s) const;

  const double longest_s_;
  std::deque<Look> looks_;
};

}  // namespace kiln::client
