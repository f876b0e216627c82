#include "search/shared_layout.h"

#include <algorithm>
#include <numeric>

#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

using schedule::LayoutStep;
using schedule::State;
using schedule::StorageAlignStep;

constexpr int kVectorBytes = 16;
constexpr double kMoveProbability = 0.6;  // where rows of a register tile are not contiguous
// Products of bytes are summed four at a time where the reduction is contiguous.
constexpr double kMoveBytesProbability = 0.15;
constexpr double kPadProbability = 0.5;

}  // namespace

std::vector<int> FetchedStages(const State& state) {
  std::vector<int> stages;
  for (int s = 0; s < state.num_stages(); ++s) {
    const dag::Operator& op = *state.stage(s).op;
    if (state.attach(s).kind == schedule::Attach::kIter && op.name().ends_with(".shared") &&
        op.axes().size() >= 2)
      stages.push_back(s);
  }
  return stages;
}

std::vector<int> WalkedAxes(const State& state, int s) {
  const int reader = state.attach(s).stage;
  const dag::Operator& op = *state.stage(reader).op;
  const auto spatial = static_cast<int32_t>(op.axes().size());
  std::vector<int> walked;
  for (const dag::Access& access : op.facts().reads) {
    if (state.dag()->node(reader).inputs[access.slot].op != s) continue;
    for (int axis = 0; axis < static_cast<int>(access.load->num_args); ++axis) {
      bool moves = false;
      ir::Visit(access.load->arg(axis), [&](ir::Expr e) {
        moves = moves || (e->op == ir::Op::kVar && e->id < spatial && op.axes()[e->id].extent > 1);
      });
      const bool is_new = std::ranges::find(walked, axis) == walked.end();
      if (moves && is_new && state.stage(s).op->axes()[axis].extent > 1) walked.push_back(axis);
    }
  }
  std::ranges::sort(walked);
  return walked;
}

LayoutSteps RandomLayout(const State& state, int s, Rng& rng) {
  const dag::Operator& op = *state.stage(s).op;
  const int rank = static_cast<int>(op.axes().size());
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> walked = WalkedAxes(state, s);
  std::erase(walked, rank - 1);
  const bool bytes = op.type().bytes() == 1;
  if (!walked.empty() && Chance(rng, bytes ? kMoveBytesProbability : kMoveProbability)) {
    const int inner = PickFrom(rng, walked);
    order.erase(order.begin() + inner);
    order.push_back(inner);
  }
  const int vector = std::max(1, kVectorBytes / op.type().bytes());
  int factor = 1, offset = 0;
  if (Chance(rng, kPadProbability)) {
    const bool odd = Chance(rng, 0.5);
    factor = odd ? 2 * vector : vector;
    offset = odd ? vector : 0;
  }
  const int rows = order[rank - 2];
  return {std::make_shared<LayoutStep>(s, std::move(order)),
          std::make_shared<StorageAlignStep>(s, rows, factor, offset)};
}

Status AnnotateLayouts(State& state, Rng& rng) {
  for (const int s : FetchedStages(state)) {
    for (const schedule::StepPtr& step : RandomLayout(state, s, rng))
      KILN_RETURN_IF_ERROR(state.Apply(step));
  }
  return OkStatus();
}

bool IsLayout(std::span<const schedule::StepPtr> steps, size_t i) {
  return i + 1 < steps.size() && steps[i]->tag() == LayoutStep::kTag &&
         steps[i + 1]->tag() == StorageAlignStep::kTag &&
         steps[i]->stage() == steps[i + 1]->stage();
}

}  // namespace kiln::search
