#include "graph/rewrite.h"

#include <utility>

namespace kiln::graph {

Rewriter::Rewriter(const Graph& graph) : graph_(graph), map_(graph.values().size(), kAbsent) {
  for (ValueId id : graph.inputs()) {
    // The input was checked when the old graph was built.
    const StatusOr<ValueId> input = builder_.Input(graph.value(id).name, graph.value(id).type);
    KILN_CHECK(input.ok(), "{}", graph.value(id).name);
    Map(id, *input);
  }
}

ValueId Rewriter::at(ValueId old) {
  ValueId& now = map_[static_cast<size_t>(old)];
  if (now != kAbsent) return now;
  const Value& value = graph_.value(old);
  KILN_CHECK(value.constant != nullptr, "{} is read before it is made", value.name);
  now = builder_.Add(value.name, value.constant);
  return now;
}

std::vector<ValueId> Rewriter::AllAt(const std::vector<ValueId>& old) {
  std::vector<ValueId> now;
  for (ValueId id : old) now.push_back(id == kAbsent ? kAbsent : at(id));
  return now;
}

Status Rewriter::Copy(int node) {
  const Node& old = graph_.node(node);
  KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        builder_.Copy(graph_, old, AllAt(old.inputs)));
  for (size_t i = 0; i < outputs.size(); ++i) Map(old.outputs[i], outputs[i]);
  return OkStatus();
}

StatusOr<Graph> Rewriter::Finish() {
  for (ValueId id : graph_.outputs()) builder_.Output(at(id));
  return builder_.Build();
}

StatusOr<Graph> WithoutDeadCode(const Graph& graph) {
  std::vector<bool> live(graph.values().size(), false);
  for (ValueId id : graph.outputs()) live[static_cast<size_t>(id)] = true;
  std::vector<bool> kept(static_cast<size_t>(graph.num_nodes()), false);
  for (int i = graph.num_nodes() - 1; i >= 0; --i) {
    for (ValueId id : graph.node(i).outputs) {
      if (live[static_cast<size_t>(id)]) kept[static_cast<size_t>(i)] = true;
    }
    if (!kept[static_cast<size_t>(i)]) continue;
    for (ValueId id : graph.node(i).inputs) {
      if (id != kAbsent) live[static_cast<size_t>(id)] = true;
    }
  }
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (kept[static_cast<size_t>(i)]) KILN_RETURN_IF_ERROR(r.Copy(i));
  }
  return r.Finish();
}

}  // namespace kiln::graph
