#include "compiler/dag/pack_constants.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace kiln::dag {
namespace {

std::vector<std::string> ConstantsOf(const Dag& dag, int reduction,
                                     absl::FunctionRef<bool(int op)> is_constant) {
  std::vector<std::string> names;
  for (const int input : dag.producers(reduction)) {
    const Operator& op = dag.op(input);
    if (op.is_placeholder() && dag.consumers(input).size() == 1 && is_constant(input))
      names.push_back(op.name());
  }
  return names;
}

}  // namespace

DagPtr PackConstants(const DagPtr& dag, absl::FunctionRef<bool(int op)> is_constant) {
  std::vector<OpNode> nodes = dag->nodes();
  bool changed = false;
  for (int i = 0; i < dag->size(); ++i) {
    OperatorPtr& op = nodes[static_cast<size_t>(i)].op;
    if (!op->is_reduction()) continue;
    Attrs attrs = op->attrs();
    attrs.packed_placeholders = ConstantsOf(*dag, i, is_constant);
    if (attrs == op->attrs()) continue;
    op = op->WithAttrs(std::move(attrs));
    changed = true;
  }
  if (!changed) return dag;
  StatusOr<DagPtr> result = Dag::Make(std::move(nodes));
  KILN_CHECK(result.ok(), "{}", Message(result.status()));
  return *std::move(result);
}

}  // namespace kiln::dag
