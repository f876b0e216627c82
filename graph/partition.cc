#include "graph/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/ir/traverse.h"
#include "graph/attention.h"

namespace kiln::graph {
namespace {

// Largest ratio of the bytes that a prologue reads to the bytes that it makes. It suffices for one
// tensor, and numbers for its channels.
constexpr double kMaxPrologueReads = 1.25;
// Operations for an element: scale, shift, clip.
constexpr double kMaxCheapFlops = 8;
// Least number of elements that a rearrangement must leave side by side if its reader is to take it
// in: a vector or a memory transaction of them.
constexpr int64_t kMinRowElements = 16;

// Returns whether the operator calls exp, tanh or the like.
bool CallsMath(const dag::Operator& op) {
  bool calls = false;
  for (const ir::Expr body : op.bodies()) {
    ir::Visit(body, [&](ir::Expr e) { calls |= e->op == ir::Op::kCall; });
  }
  return calls;
}

int64_t LastExtent(const Graph& graph, ValueId value) {
  const std::vector<int64_t>& shape = graph.value(value).type.shape;
  return shape.empty() ? 1 : shape.back();
}

// Returns how many elements of the node's result surely lie side by side in its input; 0 if the
// node does not only move elements.
int64_t RowOf(const Graph& graph, const Node& node) {
  const int64_t read = LastExtent(graph, node.inputs[0]), made = LastExtent(graph, node.outputs[0]);
  const auto list = [&](std::string_view name) {
    return std::get<std::vector<int64_t>>(node.attributes.find(name)->second);
  };
  if (node.op->is_view) return std::gcd(read, made);
  if (node.op->name == "transpose") {
    const std::vector<int64_t> axes = list("axes");
    return !axes.empty() && axes.back() + 1 == std::ssize(axes) ? made : 1;
  }
  if (node.op->name == "slice") {
    const std::vector<int64_t> strides = list("strides");
    return strides.empty() || strides.back() == 1 ? made : 1;
  }
  return 0;
}

bool IsElementwise(OpPattern pattern) { return pattern <= OpPattern::kBroadcast; }
bool IsInjective(OpPattern pattern) { return pattern <= OpPattern::kInjective; }

// The immediate post-dominator of each node: the first node through which every path from it goes.
// A node whose output leaves the network has none.
class PostDominators {
 public:
  explicit PostDominators(const Graph& graph) : graph_(graph), nodes_(graph.nodes().size()) {
    for (int i = graph.num_nodes(); i-- > 0;) nodes_[static_cast<size_t>(i)] = Of(i);
  }

  std::optional<int> of(int node) const {
    const int parent = nodes_[static_cast<size_t>(node)].parent;
    return parent < 0 ? std::nullopt : std::optional(parent);
  }

 private:
  struct Place {
    // -1: the value leaves the network.
    int parent = -1;
    int depth = 0;
  };

  Place Of(int i) const {
    // -2: no reader was seen yet.
    int common = -2;
    for (ValueId output : graph_.node(i).outputs) {
      if (graph_.is_output(output)) return {};
      for (int reader : graph_.readers(output)) {
        common = common == -2 ? reader : Common(common, reader);
        if (common < 0) return {};
      }
    }
    if (common < 0) return {};
    return {common, nodes_[static_cast<size_t>(common)].depth + 1};
  }

  // Returns the nearest common ancestor in the tree, -1 if there is none.
  int Common(int a, int b) const {
    while (a != b) {
      if (a < 0 || b < 0) return -1;
      int& deeper =
          nodes_[static_cast<size_t>(a)].depth >= nodes_[static_cast<size_t>(b)].depth ? a : b;
      deeper = nodes_[static_cast<size_t>(deeper)].parent;
    }
    return a;
  }

  const Graph& graph_;
  std::vector<Place> nodes_;
};

class Partition {
 public:
  explicit Partition(const Graph& graph)
      : graph_(graph),
        dominators_(graph),
        parent_(graph.nodes().size()),
        is_attention_(graph.nodes().size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Node& node : graph.nodes()) pattern_.push_back(node.op->pattern);
  }

  std::vector<KernelGroup> Run(const PartitionOptions& options) {
    if (options.attention) {
      for (const std::vector<int>& nodes : FindAttention(graph_)) {
        Join(nodes.front(), nodes, nodes.back());
        is_attention_[static_cast<size_t>(nodes.back())] = true;
      }
    }
    // Epilogues come first: an elementwise node joins the product before it rather than a node
    // after it.
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (PatternOf(i) == OpPattern::kProduct) JoinBehind(i);
    }
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (PatternOf(i) == OpPattern::kReduction) JoinBehind(i);
    }
    if (options.second_outputs) {
      for (int i = 0; i < graph_.num_nodes(); ++i) {
        if (GroupOf(i) == i && PatternOf(i) == OpPattern::kProduct) JoinFollowers(i);
      }
    }
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (IsInjective(PatternOf(i))) JoinInjective(i);
    }
    if (options.prologues) {
      for (int i = 0; i < graph_.num_nodes(); ++i) {
        if (GroupOf(i) != i || !IsInjective(PatternOf(i))) continue;
        if (MovesRows(NodesOf(i))) {
          JoinMoved(i);
        } else if (IsElementwise(PatternOf(i))) {
          JoinAsPrologue(i);
        }
      }
    }
    return Groups();
  }

 private:
  int GroupOf(int node) const {
    while (parent_[static_cast<size_t>(node)] != node) node = parent_[static_cast<size_t>(node)];
    return node;
  }
  // Returns the pattern of the whole group.
  OpPattern PatternOf(int node) const { return pattern_[static_cast<size_t>(GroupOf(node))]; }

  // Returns the last node of the node's group. A group's number is that of its last node.
  int SinkOf(int node) const { return GroupOf(node); }

  // The anchor takes in the nodes after it, as long as they are elementwise and have the same
  // extents.
  void JoinBehind(int anchor) {
    while (const std::optional<int> next = dominators_.of(SinkOf(anchor))) {
      if (!IsElementwise(PatternOf(*next)) || !HaveSameShape(SinkOf(anchor), *next)) return;
      const std::optional<std::vector<int>> between = Between(SinkOf(anchor), *next);
      if (!between || !std::ranges::all_of(*between, [&](int node) {
            return IsElementwise(PatternOf(node)) && HaveSameShape(SinkOf(anchor), node);
          }))
        return;
      Join(anchor, *between, *next);
    }
  }

  // Other groups read the value of this last node. The group also makes cheap functions of that
  // value that products read. These followers come after the last node, and the group keeps its
  // number.
  void JoinFollowers(int sink) {
    if (graph_.node(sink).outputs.size() != 1) return;
    const ValueId made = graph_.node(sink).outputs[0];
    const std::vector<int> readers = graph_.readers(made);
    int outputs = 1;
    for (int reader : readers) {
      const std::vector<int> chain = ChainFrom(made, reader);
      if (chain.empty() || outputs == dag::kMaxOutputs) continue;
      if (!IsReadByProduct(graph_.node(chain.back()).outputs[0]) || !IsCheapBehind(chain)) continue;
      for (int node : chain) parent_[static_cast<size_t>(node)] = sink;
      ++outputs;
    }
  }

  // Returns the functions of the value that begin with this reader. Each is read by the next one
  // alone.
  std::vector<int> ChainFrom(ValueId value, int reader) const {
    std::vector<int> chain;
    while (IsFunctionOf(value, reader)) {
      chain.push_back(reader);
      value = graph_.node(reader).outputs[0];
      const std::vector<int> readers = graph_.readers(value);
      if (graph_.is_output(value) || readers.size() != 1) break;
      reader = readers[0];
    }
    return chain;
  }

  // Returns whether the node is elementwise, a function of the value and constants, and in no group
  // yet.
  bool IsFunctionOf(ValueId value, int i) const {
    const Node& node = graph_.node(i);
    const auto is_constant = [&](ValueId id) {
      return id == kAbsent || graph_.value(id).constant != nullptr;
    };
    return GroupOf(i) == i && IsElementwise(PatternOf(i)) && node.outputs.size() == 1 &&
           std::ranges::count(node.inputs, value) == 1 &&
           std::ranges::count_if(node.inputs, is_constant) + 1 == std::ssize(node.inputs) &&
           graph_.value(node.outputs[0]).type.shape == graph_.value(value).type.shape;
  }

  bool IsReadByProduct(ValueId value) const {
    return std::ranges::any_of(graph_.readers(value), [&](int reader) {
      return graph_.node(reader).op->pattern == OpPattern::kProduct;
    });
  }

  // Joins the node to its post-dominator, if that is injective or a reduction.
  void JoinInjective(int node) {
    const int sink = SinkOf(node);
    const std::optional<int> next = dominators_.of(sink);
    if (!next || graph_.node(node).outputs.size() != 1) return;
    // An attention has all its nodes already.
    if (is_attention_[static_cast<size_t>(GroupOf(*next))]) return;
    const OpPattern own = graph_.node(*next).op->pattern;
    if (!IsInjective(own) && own != OpPattern::kReduction) return;
    // A group with an anchor takes in before it only nodes as simple as those that it takes in
    // after it.
    const bool fits = IsInjective(PatternOf(*next)) || PatternOf(*next) == OpPattern::kReduction ||
                      IsElementwise(PatternOf(node));
    if (!fits) return;
    const std::optional<std::vector<int>> between = Between(sink, *next);
    if (!between ||
        !std::ranges::all_of(*between, [&](int n) { return IsInjective(PatternOf(n)); }))
      return;
    Join(node, *between, *next);
  }

  // Returns the product that reads the value of this last node of a group, if it alone reads it,
  // once.
  std::optional<int> OnlyProduct(int sink) const {
    const ValueId made = graph_.node(sink).outputs[0];
    const std::vector<int> readers = graph_.readers(made);
    if (readers.size() != 1 || graph_.is_output(made)) return std::nullopt;
    const Node& reader = graph_.node(readers[0]);
    const bool reads_once = std::ranges::count(reader.inputs, made) == 1;
    if (reader.op->pattern != OpPattern::kProduct || !reads_once) return std::nullopt;
    return readers[0];
  }

  // Joins moves to a product. For instance, heads are cut out of rows of tokens, and the product
  // reads the rows themselves.
  void JoinMoved(int sink) {
    const std::optional<int> product = OnlyProduct(sink);
    if (product && PatternOf(*product) == OpPattern::kProduct) Join(sink, {}, *product);
  }

  // Returns whether the nodes only move elements, and leave rows of them as they lie. A group of
  // views alone needs no kernel.
  bool MovesRows(const std::vector<int>& nodes) const {
    const auto is_view = [&](int node) { return graph_.node(node).op->is_view; };
    return !std::ranges::all_of(nodes, is_view) && std::ranges::all_of(nodes, [&](int node) {
      return RowOf(graph_, graph_.node(node)) >= kMinRowElements;
    });
  }

  // Joins the group of this last node to the product that alone reads it, if computing the group
  // again for each block of the product costs little.
  void JoinAsPrologue(int sink) {
    const std::optional<int> product = OnlyProduct(sink);
    if (!product || graph_.node(*product).inputs[0] != graph_.node(sink).outputs[0]) return;
    if (PatternOf(*product) != OpPattern::kProduct) return;
    if (IsCheapBefore(NodesOf(sink))) Join(sink, {}, *product);
  }

  std::vector<int> NodesOf(int group) const {
    std::vector<int> nodes;
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (GroupOf(i) == group) nodes.push_back(i);
    }
    return nodes;
  }

  // Returns whether the computation is simple arithmetic only.
  static bool IsCheap(const NodeDag& dag) {
    double flops = 0;
    for (const dag::OpNode& node : dag.dag->nodes()) {
      const dag::BodyProperties& body = node.op->properties();
      if (CallsMath(*node.op) || body.flops_per_element < 0) return false;
      flops += body.flops_per_element;
    }
    return flops <= kMaxCheapFlops;
  }

  bool IsCheapBehind(const std::vector<int>& nodes) const {
    const StatusOr<NodeDag> dag = MakeNodeDag(graph_, nodes, graph_.node(nodes.back()).outputs);
    return dag.ok() && IsCheap(*dag);
  }

  // Returns whether a prologue is cheap. It runs again for each block of a product, so it must read
  // hardly more bytes than it makes.
  bool IsCheapBefore(const std::vector<int>& nodes) const {
    const ValueId made = graph_.node(nodes.back()).outputs[0];
    const StatusOr<NodeDag> dag = MakeNodeDag(graph_, nodes, std::vector{made});
    if (!dag.ok() || !IsCheap(*dag)) return false;
    int64_t read = 0;
    for (ValueId input : dag->inputs) read += graph_.value(input).type.bytes();
    return static_cast<double>(read) <=
           kMaxPrologueReads * static_cast<double>(graph_.value(made).type.bytes());
  }

  // Returns whether both nodes have the same shape.
  bool HaveSameShape(int a, int b) const {
    return graph_.value(graph_.node(a).outputs[0]).type.shape ==
           graph_.value(graph_.node(b).outputs[0]).type.shape;
  }

  // Returns the nodes on paths from one node to its post-dominator, without these two. None if one
  // of them has several outputs.
  std::optional<std::vector<int>> Between(int from, int to) const {
    std::vector<int> found, open = {from};
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      for (ValueId output : graph_.node(node).outputs) {
        for (int reader : graph_.readers(output)) {
          if (reader == to || std::ranges::find(found, reader) != found.end()) continue;
          if (graph_.node(reader).outputs.size() != 1) return std::nullopt;
          found.push_back(reader);
          open.push_back(reader);
        }
      }
    }
    return found;
  }

  // Makes one group. Its number is that of its last node, which is the last one of `to`'s group.
  void Join(int from, const std::vector<int>& between, int to) {
    const int root = GroupOf(to);
    OpPattern pattern = pattern_[static_cast<size_t>(root)];
    const auto take = [&](int node) {
      const int group = GroupOf(node);
      pattern = std::max(pattern, pattern_[static_cast<size_t>(group)]);
      parent_[static_cast<size_t>(group)] = root;
    };
    take(from);
    for (int node : between) take(node);
    pattern_[static_cast<size_t>(root)] = pattern;
  }

  // Returns the groups in the order of their last nodes, apart from followers. A last node comes
  // after everything that its group reads, and before all readers of the group. Followers read only
  // the group.
  std::vector<KernelGroup> Groups() const {
    std::vector<KernelGroup> by_root(graph_.nodes().size());
    for (int i = 0; i < graph_.num_nodes(); ++i)
      by_root[static_cast<size_t>(GroupOf(i))].nodes.push_back(i);
    std::vector<KernelGroup> groups;
    for (KernelGroup& group : by_root) {
      if (group.nodes.empty()) continue;
      group.is_attention = is_attention_[static_cast<size_t>(GroupOf(group.nodes[0]))];
      for (int node : group.nodes) {
        for (ValueId output : graph_.node(node).outputs) {
          if (IsReadOutside(output, GroupOf(node))) group.outputs.push_back(output);
        }
      }
      const auto product = std::ranges::find_if(group.nodes, [&](int node) {
        return graph_.node(node).op->pattern == OpPattern::kProduct;
      });
      group.anchor = product == group.nodes.end() ? group.nodes[0] : *product;
      groups.push_back(std::move(group));
    }
    return groups;
  }

  bool IsReadOutside(ValueId value, int group) const {
    return graph_.is_output(value) || std::ranges::any_of(graph_.readers(value), [&](int reader) {
             return GroupOf(reader) != group;
           });
  }

  const Graph& graph_;
  const PostDominators dominators_;
  std::vector<int> parent_;
  // Patterns by group.
  std::vector<OpPattern> pattern_;
  // Indexed by group.
  std::vector<bool> is_attention_;
};

}  // namespace

std::vector<KernelGroup> PartitionIntoKernels(const Graph& graph, const PartitionOptions& options) {
  return Partition(graph).Run(options);
}

bool IsView(const Graph& graph, const KernelGroup& group) {
  return std::ranges::all_of(group.nodes, [&](int node) { return graph.node(node).op->is_view; });
}

bool IsStoredBetween(const Graph& graph, const KernelGroup& group, int node) {
  return std::ranges::any_of(graph.node(node).outputs, [&](ValueId id) {
    const bool goes_on = std::ranges::any_of(graph.readers(id), [&](int reader) {
      return std::ranges::binary_search(group.nodes, reader);
    });
    return goes_on && std::ranges::find(group.outputs, id) != group.outputs.end();
  });
}

}  // namespace kiln::graph
