// The pace of a search whose trials are measured while the next ones are found: says when the next
// round has to begin so that the measurer does not wait for it.
//
// Not thread-safe.
#pragma once

#include <cstdint>

namespace kiln::search {

class Pace {
 public:
  // A result came at this time of a monotonic clock.
  void NoteResult(double now_s);
  // The last search took so long.
  void NoteSearch(double search_s) { search_s_ = search_s; }

  // Average time between two results, in which the newest counts more; 0: not known yet.
  double interval_s() const { return interval_s_; }
  // Returns how many trials, beyond those that the measurer holds, may be left or on their way when
  // the next search begins: at most twice `round_trials`, the trials of a round of all searches
  // that may go on at once.
  uint32_t Ahead(uint32_t round_trials) const;

 private:
  double search_s_ = 0;
  double interval_s_ = 0;
  double last_result_s_ = 0;
};

}  // namespace kiln::search
