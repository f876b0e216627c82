#include "compiler/dag/merge_axes.h"

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> MergeAxesStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int first = reader.Int("first");
  const int count = reader.Int("count");
  return reader.Make<MergeAxesStep>(stage, first, count);
}

Status MergeAxesStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  const dag::Dag& dag = *state.dag();
  dag::EditKey key = BeginKey(EditKind::kMergeAxes, stage_id);
  key.insert(key.end(), {first, count});
  KILN_ASSIGN_OR_RETURN(dag::DagPtr merged, MakeOnce(dag, std::move(key), [&] {
                          return dag::MergeAxes(dag, stage_id, first, count);
                        }));
  for (int s = 0; s < state.num_stages(); ++s) {
    if (merged->node(s).op == state.stage(s).op || state.stage(s).is_placeholder()) continue;
    KILN_RETURN_IF_ERROR(Annotate(CheckUntouched(state, s),
                                  fmt::format("stage {} ({})", s, state.stage(s).op->name())));
    if (state.attach(s).kind == Attach::kIter)
      return InvalidArgument("stage {} ({}) is computed at a loop; expected it at root or inlined",
                             s, state.stage(s).op->name());
  }
  state.ReplaceOperators(std::move(merged));
  return OkStatus();
}

std::string MergeAxesStep::ToJson() const {
  return fmt::format("[\"MA\", {}, {}, {}]", stage_id, first, count);
}

uint64_t MergeAxesStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(first).Add(count).value();
}

}  // namespace kiln::schedule
