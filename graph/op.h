// Definition of an operator of networks: a name, attributes, and a function that writes it as
// stages of a compute DAG. That one function gives the types of outputs, the values of a node, the
// task that is tuned and the kernel that runs, so that these can't disagree.
//
// Semantics are numpy's if numpy has the operator. A node rounds its result to the type of its
// output, even if the next node is computed in the same kernel. Inside a node, sums of 16-bit
// floats are in float32.
//
// How to add an operator: docs/howto/add-a-network-operator.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/ops/op.h"
#include "graph/attributes.h"
#include "graph/tensor_type.h"

namespace kiln::graph {

// The way in which a node may share a kernel with others; TVM's pattern kinds
// (relay/op_attr_types.h).
enum class OpPattern : uint8_t {
  // Element i of the output is computed from element i of each input.
  kElementwise,
  // Like kElementwise, but some inputs are repeated along axes.
  kBroadcast,
  // An output element needs one element of each input: transposes, slices.
  kInjective,
  // Sums and the like over axes. They take in injective producers.
  kReduction,
  // Convolutions, products, pools. They take in elementwise consumers.
  kProduct,
  // Several loops over its inputs (softmax). It shares no kernel.
  kOpaque,
};

struct AttributeSpec {
  std::string name;
  AttributeKind kind;
  std::string doc;
  // None: the attribute must be given, unless is_optional.
  std::optional<Attribute> default_value = {};
  // True: the attribute may be absent, which differs from every value.
  bool is_optional = false;
};

// Attributes with a default. An attribute without a default must be given.
inline AttributeSpec IntAttribute(std::string name, std::string doc,
                                  std::optional<int64_t> value = {}) {
  AttributeSpec spec{std::move(name), AttributeKind::kInt, std::move(doc)};
  if (value) spec.default_value = *value;
  return spec;
}
inline AttributeSpec FloatAttribute(std::string name, std::string doc,
                                    std::optional<double> value = {}) {
  AttributeSpec spec{std::move(name), AttributeKind::kFloat, std::move(doc)};
  if (value) spec.default_value = *value;
  return spec;
}
inline AttributeSpec NameAttribute(std::string name, std::string doc,
                                   std::optional<std::string> value = {}) {
  AttributeSpec spec{std::move(name), AttributeKind::kName, std::move(doc)};
  if (value) spec.default_value = *std::move(value);
  return spec;
}
inline AttributeSpec IntsAttribute(std::string name, std::string doc,
                                   std::optional<std::vector<int64_t>> value = {}) {
  AttributeSpec spec{std::move(name), AttributeKind::kInts, std::move(doc)};
  if (value) spec.default_value = *std::move(value);
  return spec;
}

// Gives a node's inputs and attributes to its `write` function, and the builder to write into.
class NodeWriter {
 public:
  // `attributes` are complete (CompleteAttributes). An absent optional input has no value in
  // `inputs`.
  NodeWriter(dag::DagBuilder& builder, const Attributes& attributes,
             std::span<const std::optional<dag::TensorRef>> inputs)
      : b(builder), attributes_(attributes), inputs_(inputs) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int i) const { return i < num_inputs() && inputs_[i].has_value(); }
  // The input must exist.
  const dag::TensorRef& input(int i) const { return *inputs_[i]; }
  const std::vector<int64_t>& shape(int i) const { return input(i).shape(); }
  ir::Type type(int i = 0) const { return input(i).type(); }
  bool ok() const { return b.status().ok(); }

  // Return attributes by name, which must have the kind that the operator declares.
  bool has(std::string_view name) const { return attributes_.find(name) != attributes_.end(); }
  int64_t Int(std::string_view name) const { return Get<int64_t>(name); }
  double Float(std::string_view name) const { return Get<double>(name); }
  const std::string& Name(std::string_view name) const { return Get<std::string>(name); }
  const std::vector<int64_t>& Ints(std::string_view name) const {
    return Get<std::vector<int64_t>>(name);
  }

  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    b.Fail(InvalidArgument(format, std::forward<Args>(args)...));
  }
  // Returns axis `value` of a tensor of that rank; a negative value counts from the end. If there
  // is no such axis, it fails and returns 0.
  size_t Axis(std::string_view attribute, int64_t value, int rank);
  // Returns the axes in the given order, like Axis. Each may occur once.
  std::vector<size_t> Axes(std::string_view attribute, std::span<const int64_t> values, int rank);

  // Writes an operator of the library (dag/ops) over `inputs`. Parameters that `args` lacks have
  // their defaults.
  dag::TensorRef Library(std::string_view op, dag::OpArgs args, std::vector<dag::TensorRef> inputs);
  // For parts of library operators: returns the types that the library uses for inputs of `type`.
  dag::OpContext Context(const dag::OpArgs& args, ir::Type type,
                         std::vector<dag::TensorRef> inputs = {});
  dag::OpContext Context(ir::Type type) {
    static const dag::OpArgs kNone;
    return Context(kNone, type);
  }
  // Returns x in the type: a stage that converts, or x itself.
  dag::TensorRef Converted(const dag::TensorRef& x, ir::Type type);

  dag::DagBuilder& b;

 private:
  template <typename T>
  const T& Get(std::string_view name) const {
    auto it = attributes_.find(name);
    KILN_CHECK(it != attributes_.end() && std::holds_alternative<T>(it->second), "attribute {}",
               name);
    return std::get<T>(it->second);
  }

  const Attributes& attributes_;
  std::span<const std::optional<dag::TensorRef>> inputs_;
};

struct OpDef {
  std::string name;
  std::string family;
  std::string doc;
  OpPattern pattern = OpPattern::kOpaque;
  int min_inputs = 1;
  // Inputs after min_inputs are optional.
  int max_inputs = 1;
  std::vector<AttributeSpec> attributes = {};
  // Returns the outputs. Errors go to Fail().
  std::function<std::vector<dag::TensorRef>(NodeWriter&)> write = {};
  // True: the output has the elements of the input in the same order (reshape), so that it may
  // share the input's memory.
  bool is_view = false;
};
inline constexpr int kAnyNumberOfInputs = 1 << 16;

// Each family file defines one of these; the registry joins them.
std::vector<OpDef> ElementwiseOps();
std::vector<OpDef> ProductOps();
std::vector<OpDef> WinogradOps();
std::vector<OpDef> ConvolutionOps();
std::vector<OpDef> PoolingOps();
std::vector<OpDef> ReductionOps();
std::vector<OpDef> NormalizationOps();
std::vector<OpDef> RearrangementOps();
std::vector<OpDef> IndexingOps();

// Returns all operators, by family. Names are unique. Immutable after the first call; any thread.
const std::vector<OpDef>& AllOps();
// Error: no such operator. The message names the closest ones.
StatusOr<const OpDef*> FindOp(std::string_view name);

// Adds defaults for attributes that are not given. Refuses unknown names, values of the wrong kind
// (a whole number is accepted as a number), and missing values.
StatusOr<Attributes> CompleteAttributes(const OpDef& op, Attributes attributes);

}  // namespace kiln::graph
