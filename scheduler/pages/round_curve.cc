#include "scheduler/pages/round_curve.h"

#include <cmath>

namespace kiln::scheduler {

void RoundCurve::Add(const store::RoundRow& row) {
  next_ = row.number + 1;
  const double total_s = row.total_latency_s.value_or(0);
  if (!std::isfinite(total_s) || total_s <= 0) return;
  points_.push_back({row.trials, row.elapsed_s, total_s, row.task_index});
  if (points_.size() > kMostPoints) points_ = Thinned(kMostPoints / 2);
}

std::vector<RoundPoint> RoundCurve::Thinned(size_t most) const {
  if (points_.size() <= most) return points_;
  std::vector<RoundPoint> kept;
  for (size_t i = 0; i < most; ++i) {
    // The last point of each of `most` equal parts.
    kept.push_back(points_[(i + 1) * points_.size() / most - 1]);
  }
  return kept;
}

Status ReadRounds(store::Store& store, const std::string& job_id, RoundCurve& curve) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::RoundRow> rounds,
                        store.RoundsOfJob(job_id, curve.next()));
  for (const store::RoundRow& round : rounds) curve.Add(round);
  return OkStatus();
}

}  // namespace kiln::scheduler
