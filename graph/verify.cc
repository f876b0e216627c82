#include "graph/verify.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace kiln::graph {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), made_(graph.values().size(), false) {}

  Status Run() {
    for (const Value& value : graph_.values()) {
      if (!names_.insert(value.name).second)
        return Internal("two values are called '{}'", value.name);
    }
    for (ValueId id : graph_.inputs()) KILN_RETURN_IF_ERROR(Make(id));
    for (size_t i = 0; i < graph_.values().size(); ++i) {
      const Value& value = graph_.values()[i];
      if (value.constant == nullptr) continue;
      if (value.constant->type() != value.type)
        return Internal("'{}' is {}, its constant {}", value.name, TypeText(value.type),
                        TypeText(value.constant->type()));
      KILN_RETURN_IF_ERROR(Make(static_cast<ValueId>(i)));
    }
    for (int i = 0; i < graph_.num_nodes(); ++i) KILN_RETURN_IF_ERROR(CheckNode(i));
    for (ValueId id : graph_.outputs()) {
      if (!IsMade(id)) return Internal("output '{}' is never made", graph_.value(id).name);
    }
    return OkStatus();
  }

 private:
  bool IsMade(ValueId id) const { return made_[static_cast<size_t>(id)]; }

  Status Make(ValueId id) {
    if (IsMade(id)) return Internal("'{}' is made twice", graph_.value(id).name);
    made_[static_cast<size_t>(id)] = true;
    return OkStatus();
  }

  Status CheckNode(int i) {
    const Node& node = graph_.node(i);
    const std::string& name = graph_.value(node.outputs[0]).name;
    std::vector<std::optional<TensorType>> types;
    for (ValueId id : node.inputs) {
      types.emplace_back();
      if (id == kAbsent) continue;
      if (!IsMade(id)) {
        return Internal("{} '{}' reads '{}' before it is made", node.op->name, name,
                        graph_.value(id).name);
      }
      types.back() = graph_.value(id).type;
    }
    StatusOr<std::vector<TensorType>> outputs = InferTypes(*node.op, node.attributes, types);
    if (!outputs.ok()) {
      return Internal("{} '{}': {}", node.op->name, name, std::string(outputs.status().message()));
    }
    if (outputs->size() != node.outputs.size())
      return Internal("{} '{}' makes {} values", node.op->name, name, outputs->size());
    for (size_t k = 0; k < outputs->size(); ++k) {
      const Value& value = graph_.value(node.outputs[k]);
      if (value.type != (*outputs)[k] || value.producer != i) {
        return Internal("'{}' is {}, {} makes {}", value.name, TypeText(value.type), node.op->name,
                        TypeText((*outputs)[k]));
      }
      KILN_RETURN_IF_ERROR(Make(node.outputs[k]));
    }
    return OkStatus();
  }

  const Graph& graph_;
  std::vector<bool> made_;
  std::set<std::string> names_;
};

}  // namespace

Status Verify(const Graph& graph) { return Verifier(graph).Run(); }

}  // namespace kiln::graph
