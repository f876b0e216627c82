#include "compiler/dag/dag.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace kiln::dag {
namespace {

void AddOnce(std::vector<int>& list, int value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

Status CheckInputs(const std::vector<OpNode>& nodes, int index) {
  const OpNode& node = nodes[index];
  KILN_CHECK(node.op != nullptr);
  const Operator& op = *node.op;
  if (static_cast<int>(node.inputs.size()) != op.num_inputs()) {
    return InvalidArgument("{} has {} inputs, got {}", op.name(), op.num_inputs(),
                           node.inputs.size());
  }
  for (int slot = 0; slot < op.num_inputs(); ++slot) {
    const Tensor in = node.inputs[slot];
    if (in.op < 0 || in.op >= index) {
      return InvalidArgument("input {} of {} is operator {}, expected one before it (0 to {})",
                             slot, op.name(), in.op, index - 1);
    }
    const Operator& producer = *nodes[in.op].op;
    if (in.output < 0 || in.output >= producer.num_outputs()) {
      return InvalidArgument("input {} of {} is output {} of {}, which has {}", slot, op.name(),
                             in.output, producer.name(), producer.num_outputs());
    }
    if (producer.type(in.output) != op.input_type(slot)) {
      return InvalidArgument("{} reads {} as {}, but it holds {}", op.name(), producer.name(),
                             TypeName(op.input_type(slot)), TypeName(producer.type(in.output)));
    }
    if (producer.shape() != op.input_shape(slot)) {
      return InvalidArgument("{} reads {} with shape [{}], but its shape is [{}]", op.name(),
                             producer.name(), fmt::join(op.input_shape(slot), ", "),
                             fmt::join(producer.shape(), ", "));
    }
  }
  return OkStatus();
}

// Returns the flops of one operator, -1 if unknown.
double OperatorFlops(const Operator& op) {
  if (op.is_placeholder()) return 0;
  if (op.attrs().flop >= 0) return op.attrs().flop;
  if (op.properties().flops_per_element < 0) return -1;
  return static_cast<double>(op.num_elements()) * op.properties().flops_per_element;
}

// Depth-first post-order over nodes given in any order.
class Ordering {
 public:
  explicit Ordering(const std::vector<OpNode>& nodes)
      : nodes_(nodes), marks_(nodes.size(), Mark::kNew) {}

  StatusOr<std::vector<int>> Run() {
    const int count = static_cast<int>(nodes_.size());
    std::vector<bool> read(nodes_.size(), false);
    for (const OpNode& node : nodes_) {
      for (Tensor in : node.inputs) {
        if (in.op < 0 || in.op >= count) {
          return InvalidArgument("{} reads operator {}, but there are {}", node.op->name(), in.op,
                                 count);
        }
        read[in.op] = true;
      }
    }
    for (int i = 0; i < count; ++i) {
      if (!read[i]) KILN_RETURN_IF_ERROR(Visit(i));
    }
    for (int i = 0; i < count; ++i) {
      if (marks_[i] == Mark::kNew)
        return InvalidArgument("{} depends on itself", nodes_[i].op->name());
    }
    return std::move(order_);
  }

 private:
  enum class Mark : uint8_t { kNew, kOpen, kDone };

  // Uses a stack of its own, because chains of operators may be long.
  Status Visit(int root) {
    struct Frame {
      int node;
      std::vector<int> inputs;
      size_t next = 0;
    };
    std::vector<Frame> stack;
    auto open = [&](int node) {
      marks_[node] = Mark::kOpen;
      stack.push_back({node, InputsInOrder(node)});
    };
    open(root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.inputs.size()) {
        marks_[frame.node] = Mark::kDone;
        order_.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const int input = frame.inputs[frame.next++];
      if (marks_[input] == Mark::kOpen)
        return InvalidArgument("{} depends on itself", nodes_[input].op->name());
      if (marks_[input] == Mark::kNew) open(input);
    }
    return OkStatus();
  }

  // Returns producers in the order in which the body reads them first, then producers that are not
  // read.
  std::vector<int> InputsInOrder(int i) const {
    const OpNode& node = nodes_[i];
    std::vector<int> inputs;
    for (const Access& access : node.op->properties().reads) {
      if (static_cast<size_t>(access.slot) < node.inputs.size())
        AddOnce(inputs, node.inputs[access.slot].op);
    }
    for (Tensor in : node.inputs) AddOnce(inputs, in.op);
    return inputs;
  }

  const std::vector<OpNode>& nodes_;
  std::vector<Mark> marks_;
  std::vector<int> order_;
};

}  // namespace

StatusOr<DagPtr> Dag::Make(std::vector<OpNode> nodes) {
  auto dag = std::shared_ptr<Dag>(new Dag);
  const int count = static_cast<int>(nodes.size());
  dag->consumers_.resize(count);
  dag->producers_.resize(count);
  for (int i = 0; i < count; ++i) {
    KILN_RETURN_IF_ERROR(CheckInputs(nodes, i));
    dag->producers_[i].reserve(nodes[i].inputs.size());
    for (const Access& access : nodes[i].op->properties().reads) {
      AddOnce(dag->producers_[i], nodes[i].inputs[access.slot].op);
    }
    for (Tensor in : nodes[i].inputs) {
      AddOnce(dag->producers_[i], in.op);
      // The list is ascending.
      std::vector<int>& consumers = dag->consumers_[in.op];
      if (consumers.empty() || consumers.back() != i) consumers.push_back(i);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (!nodes[i].op->is_placeholder()) continue;
    if (dag->consumers_[i].empty())
      return InvalidArgument("input {} is not used", nodes[i].op->name());
    dag->arguments_.push_back({i, 0});
  }
  for (int i = 0; i < count; ++i) {
    const Operator& op = *nodes[i].op;
    const double flops = OperatorFlops(op);
    dag->flop_count_ = flops < 0 || dag->flop_count_ < 0 ? -1 : dag->flop_count_ + flops;
    if (op.is_placeholder() || !dag->consumers_[i].empty()) continue;
    for (int output = 0; output < op.num_outputs(); ++output)
      dag->arguments_.push_back({i, output});
  }
  if (dag->arguments_.empty() || nodes[dag->arguments_.back().op].op->is_placeholder()) {
    return InvalidArgument(
        "the computation has no output: it needs at least one operator that computes something");
  }
  dag->nodes_ = std::move(nodes);
  return DagPtr(std::move(dag));
}

StatusOr<DagPtr> Dag::MakeOrdered(std::vector<OpNode> nodes) {
  KILN_ASSIGN_OR_RETURN(const std::vector<int> order, Ordering(nodes).Run());
  std::vector<int> position(nodes.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  std::vector<OpNode> ordered;
  ordered.reserve(nodes.size());
  for (int i : order) {
    ordered.push_back(std::move(nodes[i]));
    for (Tensor& in : ordered.back().inputs) in.op = position[in.op];
  }
  return Make(std::move(ordered));
}

namespace {

// Compares bodies. Loads are equal if they read the same tensor.
class BodyEquality {
 public:
  BodyEquality(const OpNode& a, const OpNode& b) : a_(a), b_(b) {}

  bool operator()(ir::Expr x, ir::Expr y) {
    if (x->op != y->op || x->type != y->type || x->num_args != y->num_args) return false;
    if (x->op == ir::Op::kLoad) {
      if (a_.inputs[x->id] != b_.inputs[y->id]) return false;
    } else if (x->id != y->id || x->int_value != y->int_value) {
      return false;
    }
    if (x->num_args == 0 || known_[x] == y) return true;
    for (int i = 0; i < x->num_args; ++i) {
      if (!(*this)(x->arg(i), y->arg(i))) return false;
    }
    known_[x] = y;
    return true;
  }

 private:
  const OpNode& a_;
  const OpNode& b_;
  std::unordered_map<ir::Expr, ir::Expr> known_;
};

bool SameAxes(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Axis& x, const Axis& y) {
    return x.name == y.name && x.extent == y.extent;
  });
}

bool EqualNodes(const OpNode& a, const OpNode& b) {
  if (a.op == b.op && a.inputs == b.inputs) return true;
  const Operator &x = *a.op, &y = *b.op;
  if (x.kind() != y.kind() || x.name() != y.name() || !(x.reduction() == y.reduction()) ||
      x.num_outputs() != y.num_outputs() || x.shape() != y.shape() || !(x.attrs() == y.attrs())) {
    return false;
  }
  if (x.is_placeholder()) return x.type() == y.type();
  if (!SameAxes(x.axes(), y.axes()) || !SameAxes(x.reduce_axes(), y.reduce_axes())) return false;
  BodyEquality same(a, b);
  for (int k = 0; k < x.num_outputs(); ++k) {
    if (!same(x.body(k), y.body(k))) return false;
  }
  return true;
}

}  // namespace

bool Equal(const Dag& a, const Dag& b) {
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                    EqualNodes);
}

}  // namespace kiln::dag
