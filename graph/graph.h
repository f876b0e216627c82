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
inline constexpr ValueId kAbsent = -1;  // an optional input that is not given

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  ConstantPtr constant = nullptr;  // set: it is this constant
  int32_t producer = -1;           // the node that makes it; -1: an input or a constant
  int32_t output = 0;              // which of the node's outputs
};

struct Node {
  const OpDef* op = nullptr;   // lives for ever
  Attributes attributes = {};  // complete
  std::vector<ValueId> inputs = {};
  std::vector<ValueId> outputs = {};
  std::string origin = {};  // what the file that it came from calls it; "" when that says nothing
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

  // The nodes that read the value, ascending, each once.
  const std::vector<int32_t>& readers(ValueId id) const {
    return readers_[static_cast<size_t>(id)];
  }
  bool is_output(ValueId id) const { return is_output_[static_cast<size_t>(id)]; }
  // Bytes of all constants.
  int64_t constant_bytes() const;

 private:
  friend class GraphBuilder;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<bool> is_output_;
};

// The same nodes over the same values in the same order, by name, constants by their elements.
// `origin` does not count.
bool Equal(const Graph& a, const Graph& b);

// Types of a node's outputs. Cost: tens of microseconds.
StatusOr<std::vector<TensorType>> InferTypes(const OpDef& op, const Attributes& attributes,
                                             std::span<const std::optional<TensorType>> inputs);

// Where a graph comes from. Every Add checks what it is given, so that what Build gives is sound.
// One thread.
class GraphBuilder {
 public:
  // An empty name, or one that is taken, becomes another one: "conv", "conv'1".
  StatusOr<ValueId> Input(std::string name, TensorType type);
  ValueId Add(std::string name, ConstantPtr constant);

  struct NodeLabels {
    std::vector<std::string> names = {};  // of the outputs; missing ones are made up
    std::string origin = {};
  };
  // The outputs. Refuses, naming the operator and its origin: an operator or attributes that there
  // are not, a wrong number of inputs, values that are not this builder's, inputs that the operator
  // can't take.
  StatusOr<std::vector<ValueId>> Add(std::string_view op, std::vector<ValueId> inputs,
                                     Attributes attributes, NodeLabels labels);
  // The one output of an operator that has one.
  StatusOr<ValueId> AddOne(std::string_view op, std::vector<ValueId> inputs,
                           Attributes attributes = {}, std::string name = {},
                           std::string origin = {});
  // A node of another graph over `inputs`, with its names and types: what it does is not looked at
  // again where the inputs have the types that they had.
  StatusOr<std::vector<ValueId>> Copy(const Graph& from, const Node& node,
                                      std::vector<ValueId> inputs);
  void Output(ValueId value) { graph_.outputs_.push_back(value); }
  // Another name, made unique as those of new values are.
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
  std::unordered_map<std::string, int> names_;  // how many values asked for it
};

}  // namespace kiln::graph
