// Coordinate descent over the digits of indices, after "The Droplet Search Algorithm for Kernel
// Scheduling" (Canesche et al., 2024) and autotvm's DropletTuner (TVM v0.12,
// python/tvm/autotvm/tuner/droplet_tuner.py): neighbours of the best point are tried, those that
// differ in one knob first; a better one is the new centre. Where no neighbour is better the steps
// grow, and in the end it begins again at a point at random.
//
// A result is one mean here, so a better one needs no test of significance: a job measures its
// finalists again.
#pragma once

#include <deque>
#include <vector>

#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

struct CoordinateOptions {
  // The first index, and others at random, so that the descent does not begin at tiles of 1.
  int starts = 16;
};

class CoordinateTuner final : public ConfigTuner {
 public:
  // `space` outlives it.
  CoordinateTuner(const ConfigSpace& space, uint64_t seed, const CoordinateOptions& options = {});
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double throughput) override;

 private:
  void Enqueue(int64_t index);
  // The points around the centre whose digits differ by `step_` in the knobs of a pattern.
  void EnqueueNeighbours();
  void Restart();

  const ConfigSpace& space_;
  const CoordinateOptions options_;
  VisitedPoints visited_;
  Rng rng_;
  std::deque<int64_t> queue_;
  int64_t centre_ = -1;  // -1: none has a result yet
  double throughput_ = 0;
  int step_ = 1, most_ = 1;  // of digits
};

}  // namespace kiln::search
