#include "compiler/dag/packed_inputs.h"

#include <algorithm>
#include <utility>

namespace kiln::dag {
namespace {

// Returns the inputs of operator i that have one of the names.
std::vector<int> Named(const Dag& dag, int i, const std::vector<std::string>& names) {
  std::vector<int> found;
  for (const Tensor& input : dag.node(i).inputs) {
    const Operator& op = dag.op(input.op);
    if (op.is_placeholder() && std::ranges::find(names, op.name()) != names.end() &&
        std::ranges::find(found, input.op) == found.end())
      found.push_back(input.op);
  }
  return found;
}

DagPtr WithPacked(const DagPtr& dag, absl::FunctionRef<std::vector<std::string>(int op)> names_of) {
  std::vector<OpNode> nodes = dag->nodes();
  bool changed = false;
  for (int i = 0; i < dag->size(); ++i) {
    OpNode& node = nodes[static_cast<size_t>(i)];
    Attrs attrs = node.op->attrs();
    attrs.packed_placeholders = names_of(i);
    if (attrs == node.op->attrs()) continue;
    node.op = node.op->WithAttrs(std::move(attrs));
    changed = true;
  }
  if (!changed) return dag;
  StatusOr<DagPtr> result = Dag::Make(std::move(nodes));
  KILN_CHECK(result.ok(), "{}", Message(result.status()));
  return *std::move(result);
}

}  // namespace

std::vector<int> PackedInputs(const Dag& dag) {
  std::vector<int> packed;
  for (int i = 0; i < dag.size(); ++i) {
    const std::vector<std::string>& names = dag.op(i).attrs().packed_placeholders;
    if (names.empty()) continue;
    for (const int input : Named(dag, i, names)) {
      if (dag.consumers(input).size() == 1) packed.push_back(input);
    }
  }
  std::ranges::sort(packed);
  return packed;
}

DagPtr PackInputs(const DagPtr& dag, absl::FunctionRef<bool(int op)> is_constant) {
  return WithPacked(dag, [&](int i) {
    std::vector<std::string> names;
    for (const int input : Named(*dag, i, dag->op(i).attrs().layout_free_placeholders)) {
      if (dag->consumers(input).size() == 1 && is_constant(input))
        names.push_back(dag->op(input).name());
    }
    return names;
  });
}

DagPtr PlainInputs(const DagPtr& dag) {
  return WithPacked(dag, [](int) { return std::vector<std::string>(); });
}

}  // namespace kiln::dag
