#include "graph/attention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/ir/traverse.h"
#include "graph/node_dag.h"

namespace kiln::graph {
namespace {

// Rows and their offsets are multiples of this many elements, so that a chain can read pieces of 16
// bytes of any float type.
constexpr int64_t kMinRowElements = 16;

using Nodes = std::vector<int>;

bool IsElementwise(const Node& node) {
  return node.op->pattern <= OpPattern::kBroadcast && node.outputs.size() == 1;
}

bool IsMove(const Node& node) {
  static constexpr std::array kMoves = {"reshape", "transpose", "slice"};
  return std::ranges::find(kMoves, node.op->name) != kMoves.end();
}

// Returns whether neighbours along the variable lie side by side, in whole pieces.
bool IsRowAlong(const dag::SoftmaxChain& chain, ir::Expr load, int32_t var) {
  for (size_t i = 0; i + 1 < load->num_args; ++i) {
    if (ir::UsesVar(load->arg(static_cast<int>(i)), var)) return false;
  }
  const arith::Linear offset = arith::Linearize(load->args().back());
  if (offset.overflow || offset.Coefficient(chain.pool->Var(var)) != 1) return false;
  if (offset.terms.size() == 1 && offset.constant == 0) return true;
  return chain.extent(var) % kMinRowElements == 0 && offset.constant % kMinRowElements == 0 &&
         std::ranges::all_of(offset.terms, [&](const arith::Term& t) {
           return t.coefficient % kMinRowElements == 0 || t.atom == chain.pool->Var(var);
         });
}

// Returns how many of the three inputs are read in rows.
int CountRows(const dag::SoftmaxChain& chain) {
  const auto is_row = [&](ir::Expr load, int32_t a, int32_t b) {
    return IsRowAlong(chain, load, a) || IsRowAlong(chain, load, b);
  };
  return is_row(chain.query, chain.row, chain.depth) + is_row(chain.keys, chain.key, chain.depth) +
         is_row(chain.values, chain.key, chain.column);
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), is_taken_(graph.nodes().size()) {}

  // Returns the nodes of the attention around this softmax, unless one of them belongs to another
  // attention. Empty: there is none.
  Nodes Around(int softmax) {
    std::optional<Nodes> before = FromProduct(graph_.node(softmax).inputs[0]);
    std::optional<Nodes> behind = ToProduct(graph_.node(softmax).outputs[0]);
    if (!before || !behind) return {};
    nodes_ = *std::move(before);
    nodes_.push_back(softmax);
    nodes_.insert(nodes_.end(), behind->begin(), behind->end());
    const std::optional<int> rows = RowsOf(nodes_);
    if (!rows || std::ranges::any_of(nodes_, [&](int node) { return IsTaken(node); })) return {};
    rows_ = *rows;
    const std::array products = {nodes_.front(), nodes_.back()};
    for (const int product : products) {
      for (const ValueId input : graph_.node(product).inputs) TakeBefore(input);
    }
    TakeBehind(products[1]);
    std::ranges::sort(nodes_);
    for (const int node : nodes_) is_taken_[static_cast<size_t>(node)] = true;
    return nodes_;
  }

 private:
  const std::vector<int64_t>& shape(ValueId id) const { return graph_.value(id).type.shape; }
  bool IsTaken(int node) const { return is_taken_[static_cast<size_t>(node)]; }

  // Returns the node that alone reads the value, if it reads the value once.
  std::optional<int> OnlyReader(ValueId value) const {
    const std::vector<int>& readers = graph_.readers(value);
    if (graph_.is_output(value) || readers.size() != 1) return std::nullopt;
    const bool once = std::ranges::count(graph_.node(readers[0]).inputs, value) == 1;
    return once ? std::optional(readers[0]) : std::nullopt;
  }

  // Returns the nodes from a product to this value, if all nodes after the product are elementwise.
  std::optional<Nodes> FromProduct(ValueId value) const {
    const int made_by = graph_.value(value).producer;
    if (made_by < 0 || !OnlyReader(value)) return std::nullopt;
    const Node& node = graph_.node(made_by);
    if (node.op->pattern == OpPattern::kProduct) return Nodes{made_by};
    if (!IsElementwise(node)) return std::nullopt;
    for (const ValueId input : node.inputs) {
      if (input == kAbsent || shape(input) != shape(value)) continue;
      std::optional<Nodes> nodes = FromProduct(input);
      if (!nodes) continue;
      nodes->push_back(made_by);
      return nodes;
    }
    return std::nullopt;
  }

  // Returns the nodes is_nan and where that alone read the value, if they choose a number where it
  // is NaN.
  std::optional<std::array<int, 2>> GuardOf(ValueId value) const {
    const std::vector<int>& readers = graph_.readers(value);
    if (graph_.is_output(value) || readers.size() != 2) return std::nullopt;
    for (const int k : {0, 1}) {
      const int asks = readers[static_cast<size_t>(k)],
                chooses = readers[static_cast<size_t>(1 - k)];
      const Node &is_nan = graph_.node(asks), &where = graph_.node(chooses);
      const bool is_guard = is_nan.op->name == "is_nan" && where.op->name == "where" &&
                            OnlyReader(is_nan.outputs[0]) == chooses &&
                            where.inputs[0] == is_nan.outputs[0] &&
                            IsNumber(graph_.value(where.inputs[1])) && where.inputs[2] == value;
      if (is_guard) return std::array{asks, chooses};
    }
    return std::nullopt;
  }

  // Returns the nodes from this value to the product that reads it, if all nodes before the product
  // are elementwise.
  std::optional<Nodes> ToProduct(ValueId value) const {
    Nodes nodes;
    if (const auto guard = GuardOf(value)) {
      nodes.assign(guard->begin(), guard->end());
      value = graph_.node(nodes.back()).outputs[0];
    }
    while (const std::optional<int> reader = OnlyReader(value)) {
      const Node& node = graph_.node(*reader);
      nodes.push_back(*reader);
      if (node.op->pattern == OpPattern::kProduct) return nodes;
      if (!IsElementwise(node) || shape(node.outputs[0]) != shape(value)) break;
      value = node.outputs[0];
    }
    return std::nullopt;
  }

  // Returns how many inputs are read in rows. None: the nodes are no chain.
  std::optional<int> RowsOf(Nodes nodes) const {
    std::ranges::sort(nodes);
    const StatusOr<NodeDag> dag =
        MakeNodeDag(graph_, nodes, graph_.node(nodes.back()).outputs, {.inline_numbers = true});
    if (!dag.ok()) return std::nullopt;
    const StatusOr<dag::SoftmaxChain> chain = dag::FindSoftmaxChain(*dag->dag);
    if (!chain.ok() || chain->column + 1 != std::ssize(chain->batch) + 2) return std::nullopt;
    return CountRows(*chain);
  }

  // Returns x if the node is x times a number or the like.
  std::optional<ValueId> ScaledBy(const Node& node) const {
    std::optional<ValueId> scaled;
    if (!IsElementwise(node)) return std::nullopt;
    for (const ValueId input : node.inputs) {
      if (input != kAbsent && IsNumber(graph_.value(input))) continue;
      if (input == kAbsent || scaled || shape(input) != shape(node.outputs[0])) return std::nullopt;
      scaled = input;
    }
    return scaled;
  }

  // Takes the nodes that make this input of a product, as many as leave a chain that reads rows.
  void TakeBefore(ValueId value) {
    Nodes before;
    // Number without nodes that scale a value which no move makes.
    size_t count = 0;
    while (value != kAbsent && graph_.value(value).producer >= 0 && OnlyReader(value)) {
      const int made_by = graph_.value(value).producer;
      if (IsTaken(made_by) || std::ranges::find(nodes_, made_by) != nodes_.end()) break;
      const Node& node = graph_.node(made_by);
      const bool is_move = IsMove(node);
      const std::optional<ValueId> from = is_move ? std::optional(node.inputs[0]) : ScaledBy(node);
      if (!from) break;
      before.push_back(made_by);
      if (is_move) count = before.size();
      value = *from;
    }
    for (; count > 0; --count) {
      Nodes more = nodes_;
      more.insert(more.end(), before.begin(), before.begin() + static_cast<std::ptrdiff_t>(count));
      const std::optional<int> rows = RowsOf(more);
      if (!rows || *rows < rows_) continue;
      nodes_ = std::move(more);
      rows_ = *rows;
      return;
    }
  }

  // Takes the nodes after the last node.
  void TakeBehind(int last) {
    while (const std::optional<int> reader = OnlyReader(graph_.node(last).outputs[0])) {
      const Node& node = graph_.node(*reader);
      const bool keeps_shape =
          IsElementwise(node) && shape(node.outputs[0]) == shape(graph_.node(last).outputs[0]);
      if (IsTaken(*reader) || (node.op->name != "transpose" && !keeps_shape)) return;
      nodes_.push_back(*reader);
      if (!RowsOf(nodes_)) {
        nodes_.pop_back();
        return;
      }
      last = *reader;
    }
  }

  const Graph& graph_;
  std::vector<bool> is_taken_;
  // Nodes of the current chain.
  Nodes nodes_;
  // Inputs of the chain that are read in rows.
  int rows_ = 0;
};

}  // namespace

std::vector<std::vector<int>> FindAttention(const Graph& graph) {
  Finder finder(graph);
  std::vector<std::vector<int>> found;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (graph.node(i).op->name != "softmax") continue;
    Nodes nodes = finder.Around(i);
    if (!nodes.empty()) found.push_back(std::move(nodes));
  }
  return found;
}

}  // namespace kiln::graph
