// Simulated annealing over the indices of a configuration space, like autotvm's
// SimulatedAnnealingOptimizer (TVM v0.8, python/tvm/autotvm/tuner/sa_model_optimizer.py): chains
// walk side by side, and the best points that they meet are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "search/templates/config_space.h"

namespace kiln::search {

struct AnnealingOptions {
  int chains = 128;
  int iterations = 500;
  // The temperature falls linearly from the first iteration to the last.
  double first_temperature = 1, last_temperature = 0;
  int early_stop = 50;  // iterations in a row that did not change the best points
};

// Scores points; higher is better. Called with as many points as there are chains.
using ScoreFn = std::function<std::vector<double>(std::span<const int64_t> indices)>;

// A point and its score.
struct Scored {
  double score = 0;
  int64_t index = 0;
  auto operator<=>(const Scored&) const = default;
};

// Returns the best `count` distinct points for which keep(index) holds, the best first. `chains`
// are the points where the walks begin, and then where they end; empty the first time. Ends early
// when stop() returns true.
std::vector<Scored> Anneal(const ConfigSpace& space, const ScoreFn& score, int count,
                           const std::function<bool(int64_t)>& keep,
                           const AnnealingOptions& options, std::vector<int64_t>& chains, Rng& rng,
                           const std::function<bool()>& stop);

}  // namespace kiln::search
