#include "graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/node_dag.h"

namespace kiln::graph {
namespace {

// Adds the node to the message: "conv of 'layer1/conv': ...".
Status AtNode(const Status& status, std::string_view op, std::string_view origin) {
  if (origin.empty()) return Annotate(status, op);
  return Annotate(status, fmt::format("{} of '{}'", op, origin));
}

std::string CountText(int least, int most) {
  if (most == kAnyNumberOfInputs) return fmt::format("at least {}", least);
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

bool SameNode(const Graph& a, const Node& x, const Graph& b, const Node& y) {
  const auto same_name = [&](ValueId i, ValueId j) {
    if (i == kAbsent || j == kAbsent) return i == j;
    return a.value(i).name == b.value(j).name;
  };
  return x.op == y.op && x.attributes == y.attributes &&
         std::ranges::equal(x.inputs, y.inputs, same_name) &&
         std::ranges::equal(x.outputs, y.outputs, same_name);
}

}  // namespace

int64_t Graph::constant_bytes() const {
  int64_t bytes = 0;
  for (const Value& value : values_) {
    if (value.constant != nullptr) bytes += value.type.bytes();
  }
  return bytes;
}

bool Equal(const Graph& a, const Graph& b) {
  const auto same_name = [&](ValueId i, ValueId j) { return a.value(i).name == b.value(j).name; };
  const auto same_value = [](const Value& x, const Value& y) {
    if (x.name != y.name || x.type != y.type) return false;
    if ((x.constant == nullptr) != (y.constant == nullptr)) return false;
    return x.constant == nullptr || graph::Equal(*x.constant, *y.constant);
  };
  return std::ranges::equal(a.inputs(), b.inputs(), same_name) &&
         std::ranges::equal(a.outputs(), b.outputs(), same_name) &&
         std::ranges::is_permutation(a.values(), b.values(), same_value) &&
         std::ranges::equal(a.nodes(), b.nodes(),
                            [&](const Node& x, const Node& y) { return SameNode(a, x, b, y); });
}

std::string GraphBuilder::UniqueName(std::string name) {
  if (name.empty()) name = std::string("t");
  // A user may have chosen the name 'a'1' too.
  std::string unique = name;
  while (!names_.emplace(unique, 0).second) unique = fmt::format("{}'{}", name, ++names_[name]);
  return unique;
}

ValueId GraphBuilder::AddValue(std::string name, TensorType type) {
  graph_.values_.push_back({.name = UniqueName(std::move(name)), .type = std::move(type)});
  return static_cast<ValueId>(graph_.values_.size()) - 1;
}

void GraphBuilder::Rename(ValueId value, std::string name) {
  std::string& old = graph_.values_[static_cast<size_t>(value)].name;
  names_.erase(old);
  old = UniqueName(std::move(name));
}

StatusOr<ValueId> GraphBuilder::Input(std::string name, TensorType type) {
  // Tensors without elements must meet all other conditions. No node can read them.
  TensorType with_elements = type;
  std::ranges::replace(with_elements.shape, 0, 1);
  KILN_RETURN_IF_ERROR(Annotate(CheckTensorType(with_elements), fmt::format("input '{}'", name)));
  const ValueId id = AddValue(std::move(name), std::move(type));
  graph_.inputs_.push_back(id);
  return id;
}

ValueId GraphBuilder::Add(std::string name, ConstantPtr constant) {
  const ValueId id = AddValue(name.empty() ? "c" : std::move(name), constant->type());
  graph_.values_.back().constant = std::move(constant);
  return id;
}

Status GraphBuilder::CheckInputs(const OpDef& op, std::span<const ValueId> inputs) const {
  const auto count = static_cast<int>(inputs.size());
  if (count < op.min_inputs || count > op.max_inputs) {
    return InvalidArgument("got {} inputs, expected {}", count,
                           CountText(op.min_inputs, op.max_inputs));
  }
  for (int i = 0; i < count; ++i) {
    const ValueId id = inputs[static_cast<size_t>(i)];
    if (id == kAbsent) {
      if (i < op.min_inputs) return InvalidArgument("input {} is missing", i);
    } else if (id < 0 || id >= num_values()) {
      return InvalidArgument("input {} is value {}, there are {}", i, id, num_values());
    }
  }
  return OkStatus();
}

std::vector<ValueId> GraphBuilder::AddNode(Node node, std::vector<TensorType> types,
                                           std::vector<std::string> names) {
  const int32_t producer = graph_.num_nodes();
  names.resize(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name = std::move(names[i]);
    if (name.empty()) name = node.op->name;
    const ValueId id = AddValue(std::move(name), std::move(types[i]));
    graph_.values_.back().producer = producer;
    graph_.values_.back().output = static_cast<int32_t>(i);
    node.outputs.push_back(id);
  }
  graph_.nodes_.push_back(std::move(node));
  return graph_.nodes_.back().outputs;
}

StatusOr<std::vector<ValueId>> GraphBuilder::Add(std::string_view op, std::vector<ValueId> inputs,
                                                 Attributes attributes, NodeLabels labels) {
  StatusOr<const OpDef*> def = FindOp(op);
  if (!def.ok()) return AtNode(def.status(), "node", labels.origin);
  const auto annotate = [&](const Status& status) { return AtNode(status, op, labels.origin); };
  KILN_RETURN_IF_ERROR(annotate(CheckInputs(**def, inputs)));
  StatusOr<Attributes> complete = CompleteAttributes(**def, std::move(attributes));
  if (!complete.ok()) return annotate(complete.status());
  std::vector<std::optional<TensorType>> types;
  for (ValueId id : inputs) {
    types.push_back(id == kAbsent ? std::nullopt : std::optional(type(id)));
  }
  StatusOr<std::vector<TensorType>> outputs = InferTypes(**def, *complete, types);
  if (!outputs.ok()) return annotate(outputs.status());
  return AddNode({.op = *def,
                  .attributes = *std::move(complete),
                  .inputs = std::move(inputs),
                  .origin = std::move(labels.origin)},
                 *std::move(outputs), std::move(labels.names));
}

StatusOr<ValueId> GraphBuilder::AddOne(std::string_view op, std::vector<ValueId> inputs,
                                       Attributes attributes, std::string name,
                                       std::string origin) {
  KILN_ASSIGN_OR_RETURN(std::vector<ValueId> outputs,
                        Add(op, std::move(inputs), std::move(attributes),
                            {.names = {std::move(name)}, .origin = std::move(origin)}));
  KILN_CHECK(outputs.size() == 1, "{} has {} outputs", op, outputs.size());
  return outputs[0];
}

StatusOr<std::vector<ValueId>> GraphBuilder::Copy(const Graph& from, const Node& node,
                                                  std::vector<ValueId> inputs) {
  std::vector<std::string> names;
  std::vector<TensorType> types;
  for (ValueId id : node.outputs) {
    names.push_back(from.value(id).name);
    types.push_back(from.value(id).type);
  }
  bool same = inputs.size() == node.inputs.size();
  for (size_t i = 0; same && i < inputs.size(); ++i) {
    same = (inputs[i] == kAbsent) == (node.inputs[i] == kAbsent) &&
           (inputs[i] == kAbsent || type(inputs[i]) == from.value(node.inputs[i]).type);
  }
  if (!same) {
    return Add(node.op->name, std::move(inputs), node.attributes,
               {.names = std::move(names), .origin = node.origin});
  }
  return AddNode({.op = node.op,
                  .attributes = node.attributes,
                  .inputs = std::move(inputs),
                  .origin = node.origin},
                 std::move(types), std::move(names));
}

StatusOr<Graph> GraphBuilder::Build() {
  if (graph_.outputs_.empty()) {
    return InvalidArgument("the network has no outputs: nothing would be computed");
  }
  graph_.readers_.resize(graph_.values_.size());
  graph_.is_output_.resize(graph_.values_.size());
  for (int i = 0; i < graph_.num_nodes(); ++i) {
    for (ValueId id : graph_.node(i).inputs) {
      if (id == kAbsent) continue;
      std::vector<int32_t>& readers = graph_.readers_[static_cast<size_t>(id)];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
    }
  }
  for (ValueId id : graph_.outputs_) graph_.is_output_[static_cast<size_t>(id)] = true;
  return std::move(graph_);
}

}  // namespace kiln::graph
