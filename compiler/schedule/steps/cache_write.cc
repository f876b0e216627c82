#include <fmt/ranges.h>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/joined_sums.h"
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

Status CheckWritten(const State& state, int stage) {
  if (state.dag()->op(stage).is_placeholder()) {
    return InvalidArgument("a placeholder is not written; expected a compute stage");
  }
  if (state.attach(stage).kind == Attach::kInlined) {
    return InvalidArgument("an inlined stage is not written; expected a stage with loops");
  }
  return CheckUntouched(state, stage);
}

}  // namespace

StatusOr<StepPtr> CacheWriteStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const std::string_view scope = reader.Text("scope");
  std::vector<int> joined = reader.HasNext() ? reader.Ints("joined stages") : std::vector<int>();
  return reader.Make<CacheWriteStep>(stage, std::string(scope), std::move(joined));
}

Status CacheWriteStep::ApplyTo(State& state) const {
  const dag::Dag& dag = *state.dag();
  std::vector<int> written = {stage_id};
  written.insert(written.end(), joined.begin(), joined.end());
  for (const int stage : written) {
    if (stage < 0 || stage >= state.num_stages()) {
      return InvalidArgument("stage {} does not exist, the state has stages 0 to {}", stage,
                             state.num_stages() - 1);
    }
    KILN_RETURN_IF_ERROR(CheckWritten(state, stage));
  }
  KILN_RETURN_IF_ERROR(CheckScope(scope));
  KILN_RETURN_IF_ERROR(CheckRoomForStage(state));
  if (!joined.empty()) KILN_RETURN_IF_ERROR(CheckJoinable(state, written));

  dag::EditKey key =
      BeginKey(joined.empty() ? EditKind::kCacheWrite : EditKind::kJoinedSums, stage_id);
  AddToKey(scope, key);
  if (!joined.empty()) AddToKey(joined, key);
  KILN_ASSIGN_OR_RETURN(dag::DagPtr changed, MakeOnce(dag, std::move(key), [&] {
                          return joined.empty() ? WithCopyBehind(dag, stage_id, scope)
                                                : WithJoinedSums(dag, written, scope);
                        }));
  for (int& stage : written) ++stage;
  state.InsertStage(std::move(changed), stage_id, written);
  state.MutableStage(stage_id).scope = ScopeOf(scope);
  return OkStatus();
}

std::string CacheWriteStep::ToJson() const {
  const std::string stages = joined.empty() ? "" : fmt::format(", [{}]", fmt::join(joined, ", "));
  return fmt::format("[\"CHW\", {}, \"{}\"{}]", stage_id, scope, stages);
}

uint64_t CacheWriteStep::Hash() const {
  StepHash hash(kTag);
  hash.Add(stage_id).Add(std::string_view(scope));
  if (!joined.empty()) hash.AddAll(joined);
  return hash.value();
}

}  // namespace kiln::schedule
