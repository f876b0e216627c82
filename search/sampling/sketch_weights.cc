#include "search/sampling/sketch_weights.h"

#include <algorithm>

#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

// Results of a block: a tile of 64 x 64. So many blocks for each multiprocessor leave none idle.
constexpr double kResultsOfBlock = 4096, kBlocksEach = 2, kLeast = 0.1;

// Of the operator that adds up most.
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

}  // namespace

std::vector<double> SketchWeights(const Task& task, std::span<const Sketch> sketches) {
  const double results = ResultsOf(*task.dag),
               enough = kBlocksEach * kResultsOfBlock * task.device.multiprocessors;
  if (!task.target.is_gpu() || enough <= 0 || results <= enough) return {};
  std::vector<double> weights(sketches.size(), 1);
  for (size_t i = 0; i < sketches.size(); ++i) {
    if (SplitsSums(sketches[i])) weights[i] = std::max(kLeast, enough / results);
  }
  return weights;
}

}  // namespace kiln::search
