// A node of a model as the rule of its operator sees it: the node's inputs and attributes, and
// functions that write its translation.
//
// The first failure stays, as in dag::DagBuilder: after it nothing is written, and results are
// missing tensors, so that rules read as formulas. A rule that indexes a shape or computes with
// attributes checks failed() first.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/onnx.pb.h"
#include "frontend/onnx/tensor.h"
#include "graph/attributes.h"

namespace kiln::frontend {

class Importer;

using Shape = std::vector<int64_t>;
// Attributes by name. If an attribute of a function's node refers to an attribute of the function's
// call, it is that of the call.
using OnnxAttributes = std::map<std::string, ::onnx::AttributeProto*, std::less<>>;

class NodeContext {
 public:
  struct Node {
    std::string op;
    // Name of the node, or of its first output.
    std::string origin;
    // Version of its operator set.
    int version = 0;
    std::vector<Tensor> inputs = {};
    // Tells which outputs are read.
    std::vector<bool> wanted_outputs = {};
    // Number of outputs that have a name, read or not.
    int named_outputs = 0;
    OnnxAttributes attributes = {};
  };
  NodeContext(Importer& importer, Node node)
      : importer_(importer), node_(std::move(node)), outputs_(node_.wanted_outputs.size()) {}

  // Operator and version of the node.
  const std::string& op() const { return node_.op; }
  int version() const { return node_.version; }
  // Returns the name of the program that made the file, as the file has it: "pytorch".
  const std::string& producer() const;
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const { return input(i).exists(); }
  // Returns an absent tensor past the last input.
  const Tensor& input(int i) const;
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Returns how many outputs the node names, whether they are read or not.
  int num_named_outputs() const { return node_.named_outputs; }
  bool wants_output(int i) const {
    return i < num_outputs() && node_.wanted_outputs[static_cast<size_t>(i)];
  }

  // Attributes. An attribute of another kind is a failure.
  bool has(std::string_view attribute) const { return node_.attributes.contains(attribute); }
  int64_t Int(std::string_view name, int64_t otherwise);
  double Float(std::string_view name, double otherwise);
  std::string Text(std::string_view name, std::string otherwise);
  Shape Ints(std::string_view name, Shape otherwise = {});
  std::vector<double> Floats(std::string_view name);
  std::vector<std::string> Texts(std::string_view name);
  Tensor TensorOf(std::string_view name);
  // Like Int, but a value below `least` or above 2^30 is a failure, so that sums of a few can't
  // overflow.
  int64_t Count(std::string_view name, int64_t otherwise, int64_t least = 0);
  // Returns `count` counts of the attribute, or `otherwise` everywhere.
  Shape Counts(std::string_view name, int count, int64_t otherwise, int64_t least = 0);

  // Returns the elements of an input, named as ONNX names it, that must be known while the model is
  // read. Unimplemented if they are computed.
  Shape KnownInts(int i, std::string_view name);
  std::vector<double> KnownFloats(int i, std::string_view name);
  // These two are for an input of one element.
  int64_t KnownInt(int i, std::string_view name);
  double KnownFloat(int i, std::string_view name);
  // Does the same for an attribute up to `last_version`, and for an input in later versions.
  // Absent: {}.
  Shape IntsOfAttributeOrInput(std::string_view attribute, int last_version, int i);

  // Checks. A failed check is a failure of the node.
  void RequireRank(int i, int least, int most = 32);
  // Unimplemented: Kiln does not have the operator for other types.
  void RequireFloat(int i);
  // Returns an axis; a negative one counts from the end. If there is no such axis, it fails and
  // returns 0.
  int64_t Axis(int64_t axis, int rank);
  // Returns the axes ascending. Each may occur once.
  Shape Axes(const Shape& axes, int rank);

  bool failed() const { return !status_.ok(); }
  const Status& status() const { return status_; }
  // Fails with exactly this status.
  void Fail(Status status);
  // Fails with "Conv of 'layer1/conv': ...".
  template <typename... Args>
  void Invalid(fmt::format_string<Args...> format, Args&&... args) {
    Fail(AtNode(InvalidArgument(format, std::forward<Args>(args)...)));
  }
  template <typename... Args>
  void Unsupported(fmt::format_string<Args...> format, Args&&... args) {
    Fail(Unimplemented(format, std::forward<Args>(args)...));
  }

  // These functions write nodes of the graph.
  std::vector<Tensor> EmitAll(std::string_view op, std::vector<Tensor> inputs,
                              graph::Attributes attributes = {});
  Tensor Emit(std::string_view op, std::vector<Tensor> inputs, graph::Attributes attributes = {});
  Tensor Add(const Tensor& x, const Tensor& y) { return Emit("add", {x, y}); }
  Tensor Sub(const Tensor& x, const Tensor& y) { return Emit("sub", {x, y}); }
  Tensor Mul(const Tensor& x, const Tensor& y) { return Emit("mul", {x, y}); }
  Tensor Div(const Tensor& x, const Tensor& y) { return Emit("div", {x, y}); }
  Tensor Where(const Tensor& condition, const Tensor& x, const Tensor& y) {
    return Emit("where", {condition, x, y});
  }
  // These functions write nothing if there is nothing to change. Some of them accept tensors
  // without elements.
  Tensor Cast(const Tensor& x, ir::Type type);
  Tensor Reshape(const Tensor& x, Shape shape);
  Tensor Transpose(const Tensor& x, Shape axes);
  Tensor BroadcastTo(const Tensor& x, Shape shape);
  // Returns `extent` elements along one axis, from `begin` on, `stride` apart.
  Tensor SliceAxis(const Tensor& x, int64_t axis, int64_t begin, int64_t extent,
                   int64_t stride = 1);
  Tensor Concat(std::vector<Tensor> xs, int64_t axis);
  // Writes reduce_sum or the like. Without axes the result is x itself.
  Tensor Reduce(std::string_view op, const Tensor& x, Shape axes, bool keep_dims);
  // Returns the elements of `x` at `ids` of the axis; negative ids count from the end.
  Tensor Gather(const Tensor& x, const Tensor& ids, int64_t axis);
  // Returns the broadcast shape; a failure if the shapes don't fit.
  Shape BroadcastShape(const Shape& a, const Shape& b);

  Tensor Scalar(ir::Type type, double value);
  Tensor ScalarLike(const Tensor& x, double value) { return Scalar(x.element(), value); }
  Tensor Constant(ir::Type type, Shape shape, const std::vector<double>& values);
  // Returns a constant of int64.
  Tensor Constant(Shape shape, const Shape& values);

  void SetOutput(int i, Tensor tensor);
  void SetOutput(Tensor tensor) { SetOutput(0, std::move(tensor)); }
  const Tensor& output(int i) const { return outputs_[static_cast<size_t>(i)]; }

  // Subgraph returns the graph of an attribute. Inline returns its outputs, computed over `inputs`.
  ::onnx::GraphProto* Subgraph(std::string_view name);
  std::vector<Tensor> Inline(::onnx::GraphProto& graph, std::vector<Tensor> inputs);

  // Adds the node to a message: "op of 'origin': message".
  Status AtNode(const Status& status) const;

 private:
  ::onnx::AttributeProto* Find(std::string_view name, int type);
  void UnknownInput(std::string_view name);
  bool MayKeep(int64_t elements);

  Importer& importer_;
  Node node_;
  std::vector<Tensor> outputs_;
  Status status_;
};

}  // namespace kiln::frontend
