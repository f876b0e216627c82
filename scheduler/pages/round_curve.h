// The curve of a job's objective over its rounds, in bounded memory. A value; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/record.h"
#include "store/store.h"

namespace kiln::scheduler {

struct RoundPoint {
  uint32_t trials = 0;
  double elapsed_s = 0;
  // The objective, in seconds.
  double total_s = 0;
  uint32_t task_index = 0;

  bool operator==(const RoundPoint&) const = default;
};

class RoundCurve {
 public:
  static constexpr size_t kMostPoints = 800;

  // Rounds without an objective leave no point.
  void Add(const store::RoundRow& row);
  // Number of the round to read next.
  uint32_t next() const { return next_; }
  const std::vector<RoundPoint>& points() const { return points_; }
  // Returns at most `most` points, the last one among them.
  std::vector<RoundPoint> Thinned(size_t most) const;

 private:
  uint32_t next_ = 0;
  std::vector<RoundPoint> points_;
};

// Adds the rounds that the store has beyond those of the curve.
Status ReadRounds(store::Store& store, const std::string& job_id, RoundCurve& curve);

}  // namespace kiln::scheduler
