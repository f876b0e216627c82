#include "graph/passes/merge_equal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <utility>

#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

// Returns a text that tells constants apart. For a random constant it is the seed and the range,
// since its elements may not exist yet.
std::string KeyOf(const Constant& constant) {
  if (const auto& random = constant.random()) {
    return fmt::format("{} {} {} {}", TypeText(constant.type()), random->seed, random->low,
                       random->high);
  }
  // Deferred constants are not made only to be compared.
  if (constant.is_deferred()) return fmt::format("deferred {}", fmt::ptr(&constant));
  return constant.digest();
}

std::string KeyOf(const Node& node, const std::vector<ValueId>& inputs) {
  std::string key = fmt::format("{}({})", node.op->name, fmt::join(inputs, ","));
  for (const auto& [name, value] : node.attributes)
    key += fmt::format(" {}={}", name, AttributeText(value));
  return key;
}

}  // namespace

StatusOr<Graph> MergeEqual(const Graph& graph) {
  Rewriter r(graph);
  // Values of the old graph.
  std::map<std::string, ValueId> constants;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const ConstantPtr& constant = graph.values()[i].constant;
    const auto id = static_cast<ValueId>(i);
    if (constant == nullptr || (graph.readers(id).empty() && !graph.is_output(id))) continue;
    const auto [first, is_new] = constants.emplace(KeyOf(*constant), id);
    if (!is_new) r.Map(id, r.at(first->second));
  }
  std::map<std::string, int> nodes;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    const auto [first, is_new] = nodes.emplace(KeyOf(node, r.AllAt(node.inputs)), i);
    if (is_new) {
      KILN_RETURN_IF_ERROR(r.Copy(i));
      continue;
    }
    const Node& same = graph.node(first->second);
    for (size_t k = 0; k < node.outputs.size(); ++k) r.Map(node.outputs[k], r.at(same.outputs[k]));
  }
  return r.Finish();
}

}  // namespace kiln::graph
