#include "search/min_blocks.h"

#include <set>

#include "compiler/schedule/steps/steps.h"
#include "search/gpu_validity.h"
#include "search/shared_layout.h"
#include "search/thread_shapes.h"

namespace kiln::search {
namespace {

constexpr int64_t kRegisters = 65536;  // of a multiprocessor
constexpr int64_t kRegistersPerThread = 64;
constexpr double kProbability = 0.65;

}  // namespace

std::vector<int> MinBlocksChoices(int64_t threads_per_block) {
  std::vector<int> choices = {0};
  for (const int blocks : {1, 2, 3, 4, 5, 6, 8}) {
    if (blocks == 1 || blocks * threads_per_block * kRegistersPerThread <= kRegisters)
      choices.push_back(blocks);
  }
  return choices;
}

schedule::StepPtr MinBlocksStep(int stage, int blocks) {
  return std::make_shared<schedule::PragmaStep>(
      stage, 0, fmt::format("{}{}", schedule::kMinBlocksPragma, blocks));
}

std::optional<int> MinBlocksOf(const schedule::Step& step) {
  return schedule::PragmaNumber(step, schedule::kMinBlocksPragma);
}

Status AnnotateMinBlocks(schedule::State& state, Rng& rng) {
  std::set<int> roots;
  for (int s : FetchedStages(state)) {
    if (IsCopied(state, s)) continue;
    while (state.attach(s).kind == schedule::Attach::kIter) s = state.attach(s).stage;
    roots.insert(s);
  }
  for (const int root : roots) {
    const bool any = Chance(rng, kProbability);
    const int blocks = any ? PickFrom(rng, MinBlocksChoices(UseOfKernel(state, root).threads)) : 0;
    KILN_RETURN_IF_ERROR(state.Apply(MinBlocksStep(root, blocks)));
  }
  return OkStatus();
}

}  // namespace kiln::search
