#include "search/sampling/buffering.h"

#include <algorithm>
#include <set>

#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/schedule/async_copy.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/gpu_validity.h"
#include "search/space/matrix_product.h"
#include "search/space/thread_shapes.h"

namespace kiln::search {
namespace {

using schedule::BufferingStep;
using schedule::State;

// Factor of the probability of what is not copied asynchronously, where that is of no use.
constexpr double kRarely = 0.2;

// Units of four warps wait only for their tiles. So do products that unpack a factor in registers:
// its bytes come from memory.
bool WaitsForTiles(const State& state, int reader) {
  const ir::MatrixUnitScope units = ir::MatrixUnitScopeOf(state.stage(reader).hints);
  return units == ir::MatrixUnitScope::kWarpgroup || HasComputedFactor(state, reader);
}

StatusOr<State> With(State state, const schedule::StepPtr& step) {
  KILN_RETURN_IF_ERROR(state.Apply(step));
  return state;
}

bool IsAsynchronous(const schedule::StepPtr& step) {
  return schedule::As<BufferingStep>(*step)->asynchronous;
}

}  // namespace

std::vector<schedule::StepPtr> BufferingChoices(int reader, ir::MatrixUnitScope units,
                                                const Task& task, const Parameters& parameters) {
  std::vector<schedule::StepPtr> choices = {std::make_shared<BufferingStep>(reader, 1),
                                            std::make_shared<BufferingStep>(reader, 2)};
  if (!parameters.async_copies || !task.target.HasAsyncCopies()) return choices;
  const int most = units == ir::MatrixUnitScope::kWarpgroup ? parameters.max_warpgroup_fetch_depth
                                                            : parameters.max_fetch_depth;
  for (int depth = 2; depth <= most; ++depth)
    choices.push_back(std::make_shared<BufferingStep>(reader, depth, /*asynchronous=*/true));
  return choices;
}

Status AnnotateBuffering(State& state, const Task& task, const Parameters& parameters, Rng& rng) {
  std::set<int> readers, copying;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.attach(s).kind != schedule::Attach::kIter || !state.stage(s).asks_for_shared() ||
        IsCopied(state, s) || IsKeptRow(state, s))
      continue;
    readers.insert(state.attach(s).stage);
    if (schedule::CanCopyAsync(state, s)) copying.insert(state.attach(s).stage);
  }
  for (const int reader : readers) {
    const ir::MatrixUnitScope units = ir::MatrixUnitScopeOf(state.stage(reader).hints);
    std::vector<schedule::StepPtr> choices = BufferingChoices(reader, units, task, parameters);
    if (!copying.contains(reader)) std::erase_if(choices, IsAsynchronous);
    const double rarely = WaitsForTiles(state, reader) ? kRarely : 1;
    std::vector<double> weights(choices.size(), 1);
    weights[0] = parameters.not_ahead_prob * rarely;
    weights[1] = parameters.registers_ahead_prob * rarely;
    for (size_t i = 2; i < weights.size(); ++i)
      weights[i] = (1 - weights[0] - weights[1]) / static_cast<double>(weights.size() - 2);
    auto picked = static_cast<size_t>(PickWeighted(rng, weights));
    KILN_ASSIGN_OR_RETURN(State next, With(state, choices[picked]));
    // Takes fewer buffers while some are copied into. The last choice is to fetch nothing ahead.
    while (picked > 0 &&
           !CheckGpuLimits(next, task.hardware, task.device.max_cluster_blocks).ok()) {
      picked = picked > 2 ? picked - 1 : 0;
      KILN_ASSIGN_OR_RETURN(next, With(state, choices[picked]));
    }
    state = std::move(next);
  }
  return OkStatus();
}

}  // namespace kiln::search
