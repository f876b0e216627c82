// A network: operators over tensors of static types, with constants.
//
// A graph is a value: immutable once built, cheap to copy (constants are shared), freely shared
// between threads. Values are single-assignment; nodes stand in topological order. A pass makes a
// new graph out of an old one with a GraphBuilder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "graph/attributes.h"
#include "graph/constant.h"
#include "graph/op.h"
#include "graph/tensor_type.h"

namespace kiln::graph {

// Index into Graph::values().
using ValueId = int32_t;
// Stands for an optional input that is not given.
inline constexpr ValueId kAbsent = -1;

struct Value {
  // Unique in the graph.
  std::string name;
  TensorType type;
  // Set if the value is this constant.
  ConstantPtr constant = nullptr;
  // The node that makes the value; -1 for an input or a constant.
  int32_t producer = -1;
  // Position among the node's outputs.
  int32_t output = 0;
};

struct Node {
  // Lives for ever.
  const OpDef* op = nullptr;
  // Complete, see CompleteAttributes.
  Attributes attributes = {};
  std::vector<ValueId> inputs = {};
  std::vector<ValueId> outputs = {};
  // Name of the node in the file from which it came; "" if that says nothing.
  std::string origin = {};
};

class Graph {
 public:
  const std::vector<Value>& values() const { return values_; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int i) const { return nodes_[static_cast<size_t>(i)]; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  // May name a value twice, and inputs and constants too.
  const std::vector<ValueId>& outputs() const { return outputs_; }

  // Returns the nodes that read the value, ascending, each once.
  const std::vector<int32_t>& readers(ValueId id) const {
    return readers_[static_cast<size_t>(id)];
  }
  bool is_output(ValueId id) const { return is_output_[static_cast<size_t>(id)]; }
  // Returns the size of all constants.
  int64_t constant_bytes() const;

 private:
  friend class GraphBuilder;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<bool> is_output_;
};

// Returns whether both graphs have the same nodes over the same values in the same order. Values
// are compared by name, constants by their elements; `origin` is not compared.
bool Equal(const Graph& a, const Graph& b);

// Returns the types of a node's outputs. Cost: tens of microseconds.
StatusOr<std::vector<TensorType>> InferTypes(const OpDef& op, const Attributes& attributes,
                                             std::span<const std::optional<TensorType>> inputs);

// Builds a graph. Every Add checks its arguments, so Build returns a sound graph. Not thread-safe.
class GraphBuilder {
 public:
  // An empty name, or a name that is taken, is replaced by a new one: "conv", "conv'1".
  StatusOr<ValueId> Input(std::string name, TensorType type);
  ValueId Add(std::string name, ConstantPtr constant);

  struct NodeLabels {
    // Names of the outputs; missing names are made up.
    std::vector<std::string> names = {};
    std::string origin = {};
  };
  // Returns the outputs. Refuses an unknown operator or attribute, a wrong number of inputs, values
  // of another builder, and inputs that the operator can't take; the error names the operator and
  // its origin.
  StatusOr<std::vector<ValueId>> Add(std::string_view op, std::vector<ValueId> inputs,
                                     Attributes attributes, NodeLabels labels);
  // Adds an operator with one output and returns that output.
  StatusOr<ValueId> AddOne(std::string_view op, std::vector<ValueId> inputs,
                           Attributes attributes = {}, std::string name = {},
                           std::string origin = {});
  // Adds a node of another graph over `inputs`, with its names and types. The types are not
  // inferred again if the inputs have the same types as before.
  StatusOr<std::vector<ValueId>> Copy(const Graph& from, const Node& node,
                                      std::vector<ValueId> inputs);
  void Output(ValueId value) { graph_.outputs_.push_back(value); }
  // Gives the value another name, which is made unique like that of a new value.
  void Rename(ValueId value, std::string name);

  const Value& value(ValueId id) const { return graph_.values_[static_cast<size_t>(id)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  const Node& node(int i) const { return graph_.node(i); }
  int num_values() const { return static_cast<int>(graph_.values_.size()); }

  // Refuses a graph without outputs.
  StatusOr<Graph> Build();

 private:
  std::string UniqueName(std::string name);
  ValueId AddValue(std::string name, TensorType type);
  Status CheckInputs(const OpDef& op, std::span<const ValueId> inputs) const;
  std::vector<ValueId> AddNode(Node node, std::vector<TensorType> types,
                               std::vector<std::string> names);

  Graph graph_;
  // Number of values that asked for the name.
  std::unordered_map<std::string, int> names_;
};

}  // namespace kiln::graph
