// Orders the nodes of a graph so that each finds its inputs, and leaves out nodes that nothing
// needs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/onnx.pb.h"

namespace kiln::frontend {

using Nodes = ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

struct NodeOrder {
  // In the file's order if that order is sound.
  std::vector<::onnx::NodeProto*> nodes;
  // Names that the nodes and the outputs read.
  std::unordered_set<std::string> needed;
  // Number of nodes that were looked at, including nodes inside of nodes.
  int64_t num_visited = 0;
};

// Refuses a name that two nodes make, and cycles. Names that no node makes come from elsewhere.
StatusOr<NodeOrder> OrderNodes(Nodes& nodes, const std::vector<std::string>& outputs);

// Returns the name of the node, or of its first output.
std::string NodeLabel(const ::onnx::NodeProto& node);

}  // namespace kiln::frontend
