#include <fmt/ranges.h>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> ReorderStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  std::vector<int> order = reader.Ints("order");
  return reader.Make<ReorderStep>(stage, std::move(order));
}

// Attachments keep their numbers, as in TVM: a stage that was attached to loop 2 stays at loop 2,
// whichever loop that is now.
Status ReorderStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  const size_t count = state.stage(stage_id).loops.size();
  absl::InlinedVector<bool, 32> seen(count, false);
  bool permutation = order.size() == count;
  for (int loop : order) {
    permutation = permutation && loop >= 0 && loop < static_cast<int>(count) && !seen[loop];
    if (!permutation) break;
    seen[loop] = true;
  }
  if (!permutation) {
    return InvalidArgument("[{}] is not a permutation; expected every number from 0 to {} once",
                           fmt::join(order, ", "), static_cast<int>(count) - 1);
  }
  Stage& stage = state.MutableStage(stage_id);
  const absl::InlinedVector<LoopIter, 32> old(stage.loops.begin(), stage.loops.end());
  for (size_t i = 0; i < count; ++i) stage.loops[i] = old[order[i]];
  return OkStatus();
}

std::string ReorderStep::ToJson() const {
  return fmt::format("[\"RE\", {}, [{}]]", stage_id, fmt::join(order, ", "));
}

uint64_t ReorderStep::Hash() const { return StepHash(kTag).Add(stage_id).AddAll(order).value(); }

}  // namespace kiln::schedule
