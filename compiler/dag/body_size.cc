#include "compiler/dag/body_size.h"

#include <algorithm>
#include <unordered_map>

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

// A distinct node with its size and the number of its uses.
struct Node {
  Expr e = nullptr;
  TreeSize tree;
  int height = 1;
  // How often the node occurs in the trees of all bodies.
  double count = 0;
};

class Sizer {
 public:
  BodySize Run(const std::vector<Expr>& bodies) {
    BodySize size;
    for (Expr body : bodies) {
      const Node& node = nodes_[Add(body)];
      size.tree.nodes += node.tree.nodes;
      size.tree.vars += node.tree.vars;
      size.height = std::max(size.height, node.height);
    }
    for (Expr body : bodies) nodes_[Find(body)].count += 1;
    // Arguments stand before the nodes that use them.
    for (size_t i = nodes_.size(); i-- > 0;) {
      for (Expr a : nodes_[i].e->args()) nodes_[Find(a)].count += nodes_[i].count;
    }
    for (const Node& node : nodes_) {
      if (node.e->op == Op::kLoad) size.reads.push_back({node.e->id, node.count, IndexOf(node.e)});
    }
    return size;
  }

 private:
  size_t Add(Expr e) {
    if (const size_t known = Find(e); known < nodes_.size()) return known;
    Node node;
    node.e = e;
    node.tree = e->op == Op::kVar ? TreeSize{0, 1} : TreeSize{1, 0};
    for (Expr a : e->args()) {
      const Node& arg = nodes_[Add(a)];
      node.tree.nodes += arg.tree.nodes;
      node.tree.vars += arg.tree.vars;
      node.height = std::max(node.height, arg.height + 1);
    }
    nodes_.push_back(node);
    if (nodes_.size() > kSmall) table_.emplace(e, nodes_.size() - 1);
    return nodes_.size() - 1;
  }

  // Returns nodes_.size() if the node is not there.
  size_t Find(Expr e) const {
    const size_t listed = std::min(nodes_.size(), kSmall);
    for (size_t i = 0; i < listed; ++i) {
      if (nodes_[i].e == e) return i;
    }
    if (listed == nodes_.size()) return nodes_.size();
    const auto it = table_.find(e);
    return it == table_.end() ? nodes_.size() : it->second;
  }

  TreeSize IndexOf(Expr load) const {
    TreeSize largest;
    for (Expr index : load->args()) {
      const TreeSize& tree = nodes_[Find(index)].tree;
      largest.nodes = std::max(largest.nodes, tree.nodes);
      largest.vars = std::max(largest.vars, tree.vars);
    }
    return largest;
  }

  // For so many nodes a list is faster than a hash table.
  static constexpr size_t kSmall = 32;
  std::vector<Node> nodes_;
  // Positions of the nodes behind the first kSmall.
  std::unordered_map<Expr, size_t> table_;
};

}  // namespace

BodySize SizeOf(const std::vector<Expr>& bodies) { return Sizer().Run(bodies); }

}  // namespace kiln::dag
