#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Makes the stage compute into "name.scope", and puts a copy of the result at the stage's old
// place.
StatusOr<dag::DagPtr> WithCopyBehind(const dag::Dag& dag, int stage, const std::string& scope) {
  const dag::Operator& original = dag.op(stage);
  std::vector<dag::OpNode> nodes = NodesWithGap(dag, stage);
  nodes[stage] = {original.Renamed(CacheName(dag, original.name(), scope)), dag.node(stage).inputs};
  dag::OpNode& copy = nodes[stage + 1];
  KILN_ASSIGN_OR_RETURN(copy.op, MakeCopy(original, original.name(), original.axes()));
  copy.inputs.clear();
  for (int k = 0; k < original.num_outputs(); ++k) copy.inputs.push_back({stage, k});
  return dag::Dag::Make(std::move(nodes));
}

}  // namespace

StatusOr<StepPtr> CacheWriteStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const std::string_view scope = reader.Text("scope");
  return reader.Make<CacheWriteStep>(stage, std::string(scope));
}

Status CacheWriteStep::ApplyTo(State& state) const {
  const dag::Dag& dag = *state.dag();
  const dag::OperatorPtr original = dag.node(stage_id).op;
  if (original->is_placeholder()) {
    return InvalidArgument("a placeholder is not written; expected a compute stage");
  }
  if (state.attach(stage_id).kind == Attach::kInlined) {
    return InvalidArgument("an inlined stage is not written; expected a stage with loops");
  }
  KILN_RETURN_IF_ERROR(CheckScope(scope));
  KILN_RETURN_IF_ERROR(CheckUntouched(state, stage_id));
  KILN_RETURN_IF_ERROR(CheckRoomForStage(state));

  dag::EditKey key = BeginKey(EditKind::kCacheWrite, stage_id);
  AddToKey(scope, key);
  KILN_ASSIGN_OR_RETURN(dag::DagPtr changed, MakeOnce(dag, std::move(key), [&] {
                          return WithCopyBehind(dag, stage_id, scope);
                        }));
  const int reset[] = {stage_id + 1};
  state.InsertStage(std::move(changed), stage_id, reset);
  state.MutableStage(stage_id).scope = ScopeOf(scope);
  return OkStatus();
}

std::string CacheWriteStep::ToJson() const {
  return fmt::format("[\"CHW\", {}, \"{}\"]", stage_id, scope);
}

uint64_t CacheWriteStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(std::string_view(scope)).value();
}

}  // namespace kiln::schedule
