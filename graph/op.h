// What an operator of networks is: a name, attributes, and a function that writes it as stages of a
// compute DAG. Types of outputs, values of a node, the task that is tuned and the kernel that runs
// all come out of that one function, so that they can't disagree.
//
// Semantics are numpy's where numpy has the operator. A node rounds its result to the type of its
// output, also where the next node is computed in the same kernel; inside a node, sums of 16-bit
// floats are in float32.
//
// Adding one: docs/howto/add-a-network-operator.md.
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

// How a node may share a kernel with others; TVM's pattern kinds (relay/op_attr_types.h).
enum class OpPattern : uint8_t {
  kElementwise,  // element i of the output from element i of each input
  kBroadcast,    // ... some inputs repeated along axes
  kInjective,    // one element of each input: transposes, slices
  kReduction,    // sums and their like over axes: takes producers in, injective ones
  kProduct,      // convolutions, products, pools: take elementwise consumers in
  kOpaque,       // several loops over its inputs (softmax): alone
};

struct AttributeSpec {
  std::string name;
  AttributeKind kind;
  std::string doc;
  std::optional<Attribute> default_value = {};  // none: must be given, unless is_optional
  bool is_optional = false;  // may be absent, which means something else than any value
};

// Attributes with a default; without one they must be given.
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

// Where a node is written to.
class NodeWriter {
 public:
  // `attributes` are complete (CompleteAttributes). `inputs`: an optional input that is absent has
  // none.
  NodeWriter(dag::DagBuilder& builder, const Attributes& attributes,
             std::span<const std::optional<dag::TensorRef>> inputs)
      : b(builder), attributes_(attributes), inputs_(inputs) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int i) const { return i < num_inputs() && inputs_[i].has_value(); }
  // Must be there.
  const dag::TensorRef& input(int i) const { return *inputs_[i]; }
  const std::vector<int64_t>& shape(int i) const { return input(i).shape(); }
  ir::Type type(int i = 0) const { return input(i).type(); }
  bool ok() const { return b.status().ok(); }

  // Attributes by name; of the kind that the operator says.
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
  // Axis `value` of a tensor of that rank, counted from the end when negative; fails and gives 0
  // when there is no such axis.
  size_t Axis(std::string_view attribute, int64_t value, int rank);
  // Each once, as Axis; in the order given.
  std::vector<size_t> Axes(std::string_view attribute, std::span<const int64_t> values, int rank);

  // Writes an operator of the library (dag/ops) over `inputs`. Its parameters are those set in
  // `args`, else their defaults.
  dag::TensorRef Library(std::string_view op, dag::OpArgs args, std::vector<dag::TensorRef> inputs);
  // For parts of library operators: types as in the library for inputs of `type`.
  dag::OpContext Context(const dag::OpArgs& args, ir::Type type,
                         std::vector<dag::TensorRef> inputs = {});
  dag::OpContext Context(ir::Type type) {
    static const dag::OpArgs kNone;
    return Context(kNone, type);
  }
  // As the type: a stage that converts, or x itself.
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
  int max_inputs = 1;  // those past min_inputs are optional
  std::vector<AttributeSpec> attributes = {};
  // The outputs. Errors go to Fail().
  std::function<std::vector<dag::TensorRef>(NodeWriter&)> write = {};
  // Does the output have the elements of the input in their order (reshape)? Then it may share its
  // memory.
  bool is_view = false;
};
inline constexpr int kAnyNumberOfInputs = 1 << 16;

// One call per family file; the registry puts them together.
std::vector<OpDef> ElementwiseOps();
std::vector<OpDef> ProductOps();
std::vector<OpDef> WinogradOps();
std::vector<OpDef> ConvolutionOps();
std::vector<OpDef> PoolingOps();
std::vector<OpDef> ReductionOps();
std::vector<OpDef> NormalizationOps();
std::vector<OpDef> RearrangementOps();
std::vector<OpDef> IndexingOps();

// All operators, by family. Names are unique. Immutable after the first call; any thread.
const std::vector<OpDef>& AllOps();
// Error: no such operator; names the closest ones.
StatusOr<const OpDef*> FindOp(std::string_view name);

// With the defaults of what is not given. Refuses unknown names, values of the wrong kind (a whole
// number is fine for a number), and what is missing.
StatusOr<Attributes> CompleteAttributes(const OpDef& op, Attributes attributes);

}  // namespace kiln::graph
