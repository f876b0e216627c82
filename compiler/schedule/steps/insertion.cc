#include "compiler/schedule/steps/insertion.h"

#include <algorithm>
#include <cctype>

namespace kiln::schedule {

std::vector<dag::OpNode> NodesWithGap(const dag::Dag& dag, int position) {
  std::vector<dag::OpNode> nodes;
  nodes.reserve(dag.size() + 1);
  nodes.assign(dag.nodes().begin(), dag.nodes().end());
  for (int i = position; i < dag.size(); ++i) {
    for (dag::Tensor& input : nodes[i].inputs) {
      if (input.op >= position) ++input.op;
    }
  }
  nodes.insert(nodes.begin() + position, dag::OpNode{});
  return nodes;
}

std::string CacheName(const dag::Dag& dag, std::string_view name, std::string_view scope) {
  std::string base(name);
  while (true) {
    std::string candidate = fmt::format("{}.{}", base, scope);
    const bool taken = std::any_of(dag.nodes().begin(), dag.nodes().end(),
                                   [&](const auto& node) { return node.op->name() == candidate; });
    if (!taken) return candidate;
    base += ".d";
  }
}

StatusOr<dag::OperatorPtr> MakeCopy(const dag::Operator& producer, std::string name,
                                    std::vector<dag::Axis> axes, std::span<const int> order) {
  auto pool = std::make_shared<ir::ExprPool>();
  std::vector<ir::Expr> indices(axes.size());
  for (size_t d = 0; d < axes.size(); ++d)
    indices[order.empty() ? d : static_cast<size_t>(order[d])] = pool->Var(static_cast<int32_t>(d));
  std::vector<ir::Type> types;
  std::vector<ir::Expr> bodies;
  for (int k = 0; k < producer.num_outputs(); ++k) {
    types.push_back(producer.type(k));
    bodies.push_back(pool->Load(k, indices, types.back()));
  }
  const std::vector<std::vector<int64_t>> shapes(types.size(), producer.shape());
  return dag::Operator::Compute(std::move(name), std::move(axes), {}, dag::Combiner::kNone,
                                std::move(bodies), std::move(pool), types, shapes);
}

Status CheckScope(std::string_view scope) {
  const bool word = !scope.empty() && std::all_of(scope.begin(), scope.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
  if (!word) {
    return InvalidArgument("scope \"{}\" is not a word; expected \"shared\" or \"local\"", scope);
  }
  return OkStatus();
}

StatusOr<dag::DagPtr> MakeOnce(const dag::Dag& dag, dag::EditKey key,
                               absl::FunctionRef<StatusOr<dag::DagPtr>()> make) {
  if (dag::DagPtr known = dag.edits().Find(key)) return known;
  KILN_ASSIGN_OR_RETURN(dag::DagPtr made, make());
  return dag.edits().Add(std::move(key), std::move(made));
}

dag::EditKey BeginKey(EditKind kind, int stage) {
  dag::EditKey key;
  key.reserve(64);
  key.push_back(static_cast<int64_t>(kind));
  key.push_back(stage);
  return key;
}

MemoryScope ScopeOf(std::string_view word) {
  return word == "shared" ? MemoryScope::kShared : MemoryScope::kByPlace;
}

}  // namespace kiln::schedule
