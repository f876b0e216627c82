// The graph that a model becomes. Nodes over what is known are computed at once, so that the
// arithmetic of shapes that exporters write is gone before a graph has it.
//
// One thread.
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

  // The outputs of a node; absent tensors are optional inputs that are not given. Of known inputs
  // the outputs are known too, unless they or the work to compute them are large. `origin` as in
  // graph::Node. Unimplemented: an input without elements.
  StatusOr<std::vector<Tensor>> Add(std::string_view op, std::span<const Tensor> inputs,
                                    graph::Attributes attributes, const std::string& origin);

  // Takes steps (of some tens of nanoseconds) off what a model may take to be read, so that none
  // takes more than some ten seconds and some hundred megabytes; refuses when there are no more.
  Status Spend(int64_t steps);

  // Calls it so, if a node of the graph makes it and has not been named.
  void Name(const Tensor& tensor, const std::string& name);
  // The next output of the graph, under that name.
  Status Output(const Tensor& tensor, const std::string& name);

  // Without the nodes that no output needs. May be called once.
  StatusOr<graph::Graph> Build();

 private:
  StatusOr<graph::ValueId> IdOf(const Tensor& tensor);

  graph::GraphBuilder builder_;
  std::unordered_map<const graph::Constant*, graph::ValueId> constants_;
  std::vector<bool> is_named_;         // by value
  int64_t budget_ = int64_t{1} << 28;  // steps that may still be taken
};

}  // namespace kiln::frontend
