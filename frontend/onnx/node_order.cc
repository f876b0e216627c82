#include "frontend/onnx/node_order.h"

#include <functional>
#include <queue>
#include <unordered_map>

namespace kiln::frontend {
namespace {

using ::onnx::GraphProto;
using ::onnx::NodeProto;

using Names = std::unordered_set<std::string>;

// Adds the names that a graph inside a node reads from around it. Returns the number of its nodes.
int64_t AddCaptures(const GraphProto& graph, Names& reads);

int64_t AddReads(const NodeProto& node, Names& reads) {
  int64_t visited = 1;
  for (const std::string& name : node.input())
    if (!name.empty()) reads.insert(name);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) visited += AddCaptures(attribute.g(), reads);
    for (const GraphProto& graph : attribute.graphs()) visited += AddCaptures(graph, reads);
  }
  return visited;
}

int64_t AddCaptures(const GraphProto& graph, Names& reads) {
  Names own, inside;
  int64_t visited = 0;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const NodeProto& node : graph.node()) {
    own.insert(node.output().begin(), node.output().end());
    visited += AddReads(node, inside);
  }
  for (const auto& output : graph.output()) inside.insert(output.name());
  for (const std::string& name : inside)
    if (!own.contains(name)) reads.insert(name);
  return visited;
}

class Orderer {
 public:
  explicit Orderer(Nodes& nodes) : nodes_(nodes), reads_(static_cast<size_t>(nodes.size())) {}

  Status FindProducers() {
    for (int i = 0; i < nodes_.size(); ++i) {
      for (const std::string& name : nodes_[i].output()) {
        if (name.empty() || producers_.emplace(name, i).second) continue;
        return InvalidArgument("two nodes make '{}': '{}' and '{}'", name,
                               NodeLabel(nodes_[producers_[name]]), NodeLabel(nodes_[i]));
      }
    }
    return OkStatus();
  }

  void MarkNeeded(const std::vector<std::string>& outputs, NodeOrder& order) {
    order.num_visited = nodes_.size();
    is_needed_.assign(static_cast<size_t>(nodes_.size()), false);
    std::vector<int> open;
    const auto need = [&](const std::string& name) {
      order.needed.insert(name);
      const auto it = producers_.find(name);
      if (it == producers_.end() || is_needed_[static_cast<size_t>(it->second)]) return;
      is_needed_[static_cast<size_t>(it->second)] = true;
      open.push_back(it->second);
    };
    for (const std::string& name : outputs) need(name);
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      Names& reads = reads_[static_cast<size_t>(node)];
      order.num_visited += AddReads(nodes_[node], reads);
      for (const std::string& name : reads) need(name);
    }
  }

  // Sorts by Kahn's algorithm. Of the nodes that are ready, the first one in the file comes first.
  StatusOr<std::vector<NodeProto*>> Sort() {
    std::vector<std::vector<int>> readers(static_cast<size_t>(nodes_.size()));
    std::vector<int> waits_for(static_cast<size_t>(nodes_.size()));
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < nodes_.size(); ++i) {
      if (!is_needed_[static_cast<size_t>(i)]) continue;
      for (const std::string& name : reads_[static_cast<size_t>(i)]) {
        const auto it = producers_.find(name);
        if (it == producers_.end()) continue;
        readers[static_cast<size_t>(it->second)].push_back(i);
        ++waits_for[static_cast<size_t>(i)];
      }
      if (waits_for[static_cast<size_t>(i)] == 0) ready.push(i);
    }
    std::vector<NodeProto*> order;
    while (!ready.empty()) {
      const int node = ready.top();
      ready.pop();
      order.push_back(nodes_.Mutable(node));
      for (int reader : readers[static_cast<size_t>(node)])
        if (--waits_for[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
    for (int i = 0; i < nodes_.size(); ++i) {
      if (waits_for[static_cast<size_t>(i)] == 0) continue;
      return InvalidArgument("the graph has a cycle: node '{}' waits for its own result",
                             NodeLabel(nodes_[i]));
    }
    return order;
  }

 private:
  Nodes& nodes_;
  std::unordered_map<std::string, int> producers_;
  std::vector<Names> reads_;
  std::vector<bool> is_needed_;
};

}  // namespace

std::string NodeLabel(const NodeProto& node) {
  if (!node.name().empty() || node.output().empty()) return node.name();
  return node.output(0);
}

StatusOr<NodeOrder> OrderNodes(Nodes& nodes, const std::vector<std::string>& outputs) {
  Orderer orderer(nodes);
  NodeOrder result;
  KILN_RETURN_IF_ERROR(orderer.FindProducers());
  orderer.MarkNeeded(outputs, result);
  KILN_ASSIGN_OR_RETURN(result.nodes, orderer.Sort());
  return result;
}

}  // namespace kiln::frontend
