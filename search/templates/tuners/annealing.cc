#include "search/templates/tuners/annealing.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

namespace kiln::search {
namespace {

// The best points so far.
class BestPoints {
 public:
  BestPoints(size_t count, const std::function<bool(int64_t)>& keep) : count_(count), keep_(keep) {}

  // Returns whether the point was added.
  bool Offer(int64_t index, double score) {
    if (best_.size() == count_ && (count_ == 0 || score <= best_.begin()->score)) return false;
    if (in_.contains(index) || !keep_(index)) return false;
    if (best_.size() == count_) {
      in_.erase(best_.begin()->index);
      best_.erase(best_.begin());
    }
    in_.insert(index);
    best_.insert({score, index});
    return true;
  }

  std::vector<Scored> Sorted() const { return {best_.rbegin(), best_.rend()}; }

 private:
  const size_t count_;
  const std::function<bool(int64_t)>& keep_;
  std::set<Scored> best_;  // the worst first
  std::unordered_set<int64_t> in_;
};

}  // namespace

std::vector<Scored> Anneal(const ConfigSpace& space, const ScoreFn& score, int count,
                           const std::function<bool(int64_t)>& keep,
                           const AnnealingOptions& options, std::vector<int64_t>& chains, Rng& rng,
                           const std::function<bool()>& stop) {
  while (std::ssize(chains) < options.chains) {
    const std::optional<int64_t> index = space.Random(rng);
    if (!index) return {};
    chains.push_back(*index);
  }
  BestPoints best(static_cast<size_t>(std::max(count, 0)), keep);
  std::vector<double> scores = score(chains);
  for (size_t i = 0; i < chains.size(); ++i) best.Offer(chains[i], scores[i]);

  const double cooling = (options.first_temperature - options.last_temperature) /
                         static_cast<double>(options.iterations + 1);
  double temperature = options.first_temperature;
  int changed = 0;  // the last iteration that changed the best points
  for (int k = 0; k < options.iterations && k < changed + options.early_stop && !stop(); ++k) {
    std::vector<int64_t> moved;
    for (const int64_t index : chains) moved.push_back(space.RandomWalk(index, rng));
    const std::vector<double> new_scores = score(moved);
    for (size_t i = 0; i < chains.size(); ++i) {
      const double gain = (new_scores[i] - scores[i]) / (temperature + 1e-5);
      const bool accepted = UniformReal(rng) < std::exp(std::min(gain, 1.0));
      if (best.Offer(moved[i], new_scores[i])) changed = k;
      if (!accepted) continue;
      chains[i] = moved[i];
      scores[i] = new_scores[i];
    }
    temperature -= cooling;
  }
  return best.Sorted();
}

}  // namespace kiln::search
