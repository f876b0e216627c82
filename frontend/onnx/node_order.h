// The nodes of a graph in an order in which each finds its inputs, without those that nothing needs.
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
  std::vector<::onnx::NodeProto*> nodes;   // in the file's order where that is sound
  std::unordered_set<std::string> needed;  // the names that they and the outputs read
  int64_t num_visited = 0;                 // nodes that were looked at, those inside of nodes too
};

// Refuses a name that two nodes make, and cycles. Names that no node makes are of somebody else.
StatusOr<NodeOrder> OrderNodes(Nodes& nodes, const std::vector<std::string>& outputs);

// "the name of the node, or of its first output".
std::string NodeLabel(const ::onnx::NodeProto& node);

}  // namespace kiln::frontend
