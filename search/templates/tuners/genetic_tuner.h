// A genetic search over the digits of indices, like autotvm's GATuner (TVM v0.8,
// python/tvm/autotvm/tuner/ga_tuner.py): parents are drawn with a probability proportional to their
// throughput and crossed over at one place, and each digit mutates with a small probability.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

struct GeneticOptions {
  int population = 100;  // size of a generation
  int elites = 3;        // so many of the best points are parents in every generation
  double mutation_probability = 0.1;
};

class GeneticTuner final : public ConfigTuner {
 public:
  // `space` outlives the tuner.
  GeneticTuner(const ConfigSpace& space, uint64_t seed, const GeneticOptions& options = {});
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double throughput) override;

 private:
  struct Measured {
    int64_t index;
    double throughput;
  };
  // Makes the next generation from points that have results. Points without results are no parents.
  void Breed();
  // Returns a mutated child that was not visited, or nothing if none was found.
  std::optional<int64_t> Child(std::span<const Measured> parents, std::span<const double> weights);

  const ConfigSpace& space_;
  const GeneticOptions options_;
  VisitedPoints visited_;
  Rng rng_;
  std::deque<int64_t> queue_;       // points of the present generation that were not given yet
  std::vector<Measured> measured_;  // results since the last generation was bred
  std::vector<Measured> elites_;    // the best first
};

}  // namespace kiln::search
