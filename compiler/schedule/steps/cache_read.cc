#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

Status CheckReaders(const State& state, int stage, const std::vector<int>& readers) {
  const std::vector<int>& consumers = state.dag()->consumers(stage);
  if (readers.empty()) {
    return InvalidArgument("the list of readers is empty; its readers are {}",
                           DescribeStages(state, consumers));
  }
  for (size_t i = 0; i < readers.size(); ++i) {
    if (std::find(consumers.begin(), consumers.end(), readers[i]) == consumers.end()) {
      return InvalidArgument("stage {} does not read it; its readers are {}", readers[i],
                             DescribeStages(state, consumers));
    }
    if (std::find(readers.begin(), readers.begin() + i, readers[i]) != readers.begin() + i) {
      return InvalidArgument("reader {} is listed twice", readers[i]);
    }
  }
  return OkStatus();
}

std::vector<dag::Axis> CopyAxes(const dag::Operator& producer) {
  std::vector<dag::Axis> axes;
  const std::vector<int64_t> shape = producer.shape();
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back({fmt::format("ax{}", i), shape[i]});
  return axes;
}

}  // namespace

StatusOr<StepPtr> CacheReadStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const std::string_view scope = reader.Text("scope");
  std::vector<int> readers = reader.Ints("readers");
  return reader.Make<CacheReadStep>(stage, std::string(scope), std::move(readers));
}

Status CacheReadStep::ApplyTo(State& state) const {
  const dag::Dag& dag = *state.dag();
  const dag::Operator& producer = dag.op(stage_id);
  KILN_RETURN_IF_ERROR(CheckRoomForStage(state));
  KILN_RETURN_IF_ERROR(CheckCacheable(producer, scope));
  KILN_RETURN_IF_ERROR(CheckReaders(state, stage_id, readers));

  const int position = stage_id + 1;
  std::vector<dag::OpNode> nodes = NodesWithGap(dag, position);
  KILN_ASSIGN_OR_RETURN(
      nodes[position].op,
      MakeCopy(producer, CacheName(dag, producer.name(), scope), CopyAxes(producer)));
  nodes[position].inputs = {{stage_id, 0}};
  for (int reader : readers) {  // readers stand after the producer, so they have moved up
    for (dag::Tensor& input : nodes[reader + 1].inputs) {
      if (input.op == stage_id) input.op = position;
    }
  }
  KILN_ASSIGN_OR_RETURN(dag::DagPtr changed, dag::Dag::Make(std::move(nodes)));
  state.InsertStage(std::move(changed), position, {});
  state.MutableStage(position).scope = ScopeOf(scope);
  return OkStatus();
}

std::string CacheReadStep::ToJson() const {
  return fmt::format("[\"CHR\", {}, \"{}\", [{}]]", stage_id, scope, fmt::join(readers, ", "));
}

uint64_t CacheReadStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(std::string_view(scope)).AddAll(readers).value();
}

}  // namespace kiln::schedule
