#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

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
  KILN_RETURN_IF_ERROR(CheckCacheable(*original, scope));
  KILN_RETURN_IF_ERROR(CheckUntouched(state, stage_id));
  KILN_RETURN_IF_ERROR(CheckRoomForStage(state));

  std::vector<dag::OpNode> nodes = NodesWithGap(dag, stage_id);
  const std::string name = CacheName(dag, original->name(), scope);
  nodes[stage_id] = {original->Renamed(name), dag.node(stage_id).inputs};
  dag::OpNode& copy = nodes[stage_id + 1];
  KILN_ASSIGN_OR_RETURN(copy.op, MakeCopy(*original, original->name(), original->axes()));
  copy.inputs = {{stage_id, 0}};
  KILN_ASSIGN_OR_RETURN(dag::DagPtr changed, dag::Dag::Make(std::move(nodes)));
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
