// Helps a pass to make a new graph: node after node of the old graph is copied or replaced.
//
//   Rewriter r(graph);
//   for (int i = 0; i < graph.num_nodes(); ++i) {
//     if (... this one is replaced ...) {
//       KILN_ASSIGN_OR_RETURN(ValueId y, r.builder().AddOne("relu", {r.at(node.inputs[0])}));
//       r.Map(node.outputs[0], y);
//     } else {
//       KILN_RETURN_IF_ERROR(r.Copy(i));
//     }
//   }
//   return r.Finish();
//
// Inputs and constants of the old graph that are read keep their names; constants that the new
// graph does not read are left out. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

class Rewriter {
 public:
  // `graph` must outlive it.
  explicit Rewriter(const Graph& graph);

  GraphBuilder& builder() { return builder_; }
  // Returns the new value that stands for a value of the old graph. The old value must be an input,
  // a constant, or mapped before.
  ValueId at(ValueId old);
  // Returns kAbsent for kAbsent.
  std::vector<ValueId> AllAt(const std::vector<ValueId>& old);
  void Map(ValueId old, ValueId now) { map_[static_cast<size_t>(old)] = now; }
  Status Copy(int node);
  // The outputs of the new graph stand for those of the old one. An output that was an input or a
  // constant in the old graph may be any value now.
  StatusOr<Graph> Finish();

 private:
  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<ValueId> map_;
};

// Returns the graph without nodes and constants that no output needs; inputs stay.
StatusOr<Graph> WithoutDeadCode(const Graph& graph);

}  // namespace kiln::graph
