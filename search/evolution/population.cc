#include "search/evolution/population.h"

#include <algorithm>

#include "base/process/cpu_time.h"
#include "search/sampling/sample.h"
#include "search/sampling/sketch_weights.h"

namespace kiln::search {
namespace {

struct Slot {
  std::optional<Individual> individual;
  int refused = 0;
  Status refusal;
  double cpu_s = 0;
};

void Fill(const Task& task, const Parameters& parameters, const std::vector<Sketch>& sketches,
          const std::vector<double>& weights, uint64_t seed, Slot& slot) {
  const double start = ThreadCpuSeconds();
  Rng rng(seed);
  while (slot.refused < parameters.draws_per_sample && !task.stop.stop_requested()) {
    const int sketch = PickSketch(sketches, weights, rng);
    StatusOr<schedule::State> state = Sample(sketches[sketch], task, parameters, rng);
    if (state.ok()) {
      slot.individual = MakeIndividual(*std::move(state), sketch, {});
      break;
    }
    slot.refusal = state.status();
    ++slot.refused;
  }
  slot.cpu_s = ThreadCpuSeconds() - start;
}

}  // namespace

std::vector<Individual> DrawPopulation(const Workers& workers, const Parameters& parameters,
                                       const std::vector<Sketch>& sketches, int count,
                                       int max_rejected, uint64_t seed, Hashes& known,
                                       RoundReport& report) {
  const std::vector<double> weights = SketchWeights(workers.task, sketches);
  std::vector<Individual> drawn;
  int rejected = 0;
  for (uint64_t batch = 0; static_cast<int>(drawn.size()) < count && rejected < max_rejected;
       ++batch) {
    if (workers.task.stop.stop_requested()) break;
    std::vector<Slot> slots(std::clamp(count - static_cast<int>(drawn.size()), 16, 1024));
    workers.ForEach(static_cast<int64_t>(slots.size()), [&](int64_t i) {
      Fill(workers.task, parameters, sketches, weights, SplitSeed(SplitSeed(seed, batch), i),
           slots[i]);
    });
    for (Slot& slot : slots) {
      report.seconds(Part::kSample) += slot.cpu_s;
      if (slot.refused > 0) report.AddDrop(Drop::kIllegal, slot.refusal);
      report.count(Drop::kIllegal) += std::max(0, slot.refused - 1);
      rejected += slot.refused;
      if (!slot.individual.has_value()) continue;
      if (static_cast<int>(drawn.size()) == count) break;
      ++report.sampled;
      if (!known.insert(slot.individual->hash).second) {
        ++report.count(Drop::kDuplicate);
        ++rejected;
        continue;
      }
      rejected = 0;
      drawn.push_back(*std::move(slot.individual));
    }
  }
  return drawn;
}

}  // namespace kiln::search
