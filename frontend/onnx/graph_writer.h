// Writes the graph of a model. Nodes over known inputs are computed at once, so the arithmetic on
// shapes that exporters write never reaches the graph.
//
// Not thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/tensor.h"
#include "graph/graph.h"

namespace kiln::frontend {

class GraphWriter {
 public:
  StatusOr<Tensor> Input(std::string name, graph::TensorType type);

  // Returns the outputs of a node. An absent tensor is an optional input that is not given. If all
  // inputs are known, the outputs are known too, unless they or the work to compute them are large.
  // `origin` is that of graph::Node. Unimplemented: an input without elements.
  StatusOr<std::vector<Tensor>> Add(std::string_view op, std::span<const Tensor> inputs,
                                    graph::Attributes attributes, const std::string& origin);

  // Takes steps (of some tens of nanoseconds) off the budget for reading a model, and refuses if
  // none are left. So no model takes more than some ten seconds and some hundred megabytes.
  Status Spend(int64_t steps);

  // Gives the tensor a name, if a node of the graph makes it and it has no name yet.
  void Name(const Tensor& tensor, const std::string& name);
  // Adds the next output of the graph, under that name.
  Status Output(const Tensor& tensor, const std::string& name);

  // Returns the graph without nodes that no output needs. May be called once.
  StatusOr<graph::Graph> Build();

 private:
  StatusOr<graph::ValueId> IdOf(const Tensor& tensor);

  graph::GraphBuilder builder_;
  std::unordered_map<const graph::Constant*, graph::ValueId> constants_;
  // Indexed by value.
  std::vector<bool> is_named_;
  // Steps that may still be taken.
  int64_t budget_ = int64_t{1} << 28;
};

}  // namespace kiln::frontend
