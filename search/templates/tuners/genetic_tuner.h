// A genetic search over the digits of indices, as autotvm's GATuner (TVM v0.8,
// python/tvm/autotvm/tuner/ga_tuner.py): parents are drawn with a probability proportional to their
// throughput, crossed over at one place, and each digit mutates with a small probability.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

struct GeneticOptions {
  int population = 100;  // of a generation
  int elites = 3;        // the best of all are parents in every generation
  double mutation_probability = 0.1;
};

class GeneticTuner final : public ConfigTuner {
 public:
  // `space` outlives it.
  GeneticTuner(const ConfigSpace& space, uint64_t seed, const GeneticOptions& options = {});
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double throughput) override;

 private:
  struct Measured {
    int64_t index;
    double throughput;
  };
  // The next generation, of what has results; those that have none yet are no parents.
  void Breed();
  // A mutated child that was not visited; nothing if none was found.
  std::optional<int64_t> Child(std::span<const Measured> parents, std::span<const double> weights);

  const ConfigSpace& space_;
  const GeneticOptions options_;
  VisitedPoints visited_;
  Rng rng_;
  std::deque<int64_t> queue_;       // of the present generation, not given yet
  std::vector<Measured> measured_;  // since the last generation was bred
  std::vector<Measured> elites_;    // the best first
};

}  // namespace kiln::search
