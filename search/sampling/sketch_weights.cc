#include "search/sampling/sketch_weights.h"

#include <algorithm>

#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

// Results of a block: a tile of 64 x 64. With kBlocksEach blocks for each multiprocessor, none is
// idle.
constexpr double kResultsOfBlock = 4096, kBlocksEach = 2, kMin = 0.1;
// Share of all samples that an online softmax gets. An online softmax is one sketch beside a
// hundred sketches of the single stages, whose choices multiply, and it is mostly better than
// these.
constexpr double kOnlineShare = 0.5;

// Returns the number of results of the operator that adds up most.
double ResultsOf(const dag::Dag& dag) {
  double most = 0, results = 0;
  for (const dag::OpNode& of : dag.nodes()) {
    const dag::Operator& node = *of.op;
    if (node.is_placeholder() || !node.is_reduction()) continue;
    double spatial = 1, terms = 1;
    for (const auto& axis : node.axes()) spatial *= static_cast<double>(axis.extent);
    for (const auto& axis : node.reduce_axes()) terms *= static_cast<double>(axis.extent);
    if (spatial * terms <= most) continue;
    most = spatial * terms;
    results = spatial;
  }
  return results;
}

bool SplitsSums(const Sketch& sketch) {
  return std::ranges::any_of(sketch.steps, [](const schedule::StepPtr& step) {
    return schedule::Is<schedule::RfactorStep>(*step);
  });
}

// Returns the weight of sketches that split sums.
double SplitWeight(const Task& task) {
  const double results = ResultsOf(*task.dag),
               enough = kBlocksEach * kResultsOfBlock * task.device.multiprocessors;
  return enough <= 0 || results <= enough ? 1 : std::max(kMin, enough / results);
}

}  // namespace

std::vector<double> SketchWeights(const Task& task, std::span<const Sketch> sketches) {
  if (!task.target.is_gpu()) return {};
  const double split = SplitWeight(task);
  const auto online = std::ranges::find_if(
      sketches, [](const Sketch& sketch) { return sketch.state.online() != nullptr; });
  if (split == 1 && online == sketches.end()) return {};
  std::vector<double> weights;
  double others = 0;
  for (auto sketch = sketches.begin(); sketch != sketches.end(); ++sketch) {
    weights.push_back(SplitsSums(*sketch) ? split : 1);
    if (sketch != online) others += weights.back();
  }
  if (online != sketches.end() && others > 0)
    weights[static_cast<size_t>(online - sketches.begin())] =
        others * kOnlineShare / (1 - kOnlineShare);
  return weights;
}

int PickSketch(std::span<const Sketch> sketches, std::span<const double> weights, Rng& rng) {
  const int64_t picked =
      weights.empty() ? UniformInt(rng, std::ssize(sketches)) : PickWeighted(rng, weights);
  return static_cast<int>(picked);
}

}  // namespace kiln::search
