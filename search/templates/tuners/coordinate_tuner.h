// Coordinate descent over the digits of indices, after "The Droplet Search Algorithm for Kernel
// Scheduling" (Canesche et al., 2024) and autotvm's DropletTuner (TVM v0.12,
// python/tvm/autotvm/tuner/droplet_tuner.py). The neighbours of the best point are tried, first
// those that differ in one knob; a better one becomes the new centre. If no neighbour is better,
// the steps grow. In the end the descent begins again at a random point.
//
// A result here is a single mean, and a better one needs no test of significance, because a job
// measures its finalists again.
#pragma once

#include <deque>
#include <vector>

#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

struct CoordinateOptions {
  // Number of first points: the first index, and random ones, so that the descent does not begin at
  // tiles of 1.
  int starts = 16;
};

class CoordinateTuner final : public ConfigTuner {
 public:
  // `space` outlives the tuner.
  CoordinateTuner(const ConfigSpace& space, uint64_t seed, const CoordinateOptions& options = {});
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double throughput) override;

 private:
  void Enqueue(int64_t index);
  // Adds the points around the centre whose digits differ by `step_` in the knobs of a pattern.
  void EnqueueNeighbours();
  void Restart();

  const ConfigSpace& space_;
  const CoordinateOptions options_;
  VisitedPoints visited_;
  Rng rng_;
  std::deque<int64_t> queue_;
  int64_t centre_ = -1;  // -1: no point has a result yet
  double throughput_ = 0;
  int step_ = 1, most_ = 1;  // in digits
};

}  // namespace kiln::search
