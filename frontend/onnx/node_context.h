// A node of a model as the rule of its operator sees it: what the node says, and ways to write what
// it stands for.
//
// The first failure sticks, as in dag::DagBuilder: after it, what is written is nothing and what
// comes back are missing tensors, so that rules read as formulas. A rule that indexes a shape or
// computes with attributes looks at failed() first.
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
// By name; those of a function's nodes that refer to attributes of its call are the call's.
using OnnxAttributes = std::map<std::string, ::onnx::AttributeProto*, std::less<>>;

class NodeContext {
 public:
  struct Node {
    std::string op;
    std::string origin;  // the name of the node, or of its first output
    int version = 0;     // of its operator set
    std::vector<Tensor> inputs = {};
    std::vector<bool> wanted_outputs = {};  // those that something reads
    OnnxAttributes attributes = {};
  };
  NodeContext(Importer& importer, Node node)
      : importer_(importer), node_(std::move(node)), outputs_(node_.wanted_outputs.size()) {}

  // What the node is.
  const std::string& op() const { return node_.op; }
  int version() const { return node_.version; }
  // What made the file, by its own word: "pytorch".
  const std::string& producer() const;
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const { return input(i).exists(); }
  const Tensor& input(int i) const;  // absent past the last one
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  bool wants_output(int i) const {
    return i < num_outputs() && node_.wanted_outputs[static_cast<size_t>(i)];
  }

  // Attributes; one of another kind is a failure.
  bool has(std::string_view attribute) const { return node_.attributes.contains(attribute); }
  int64_t Int(std::string_view name, int64_t otherwise);
  double Float(std::string_view name, double otherwise);
  std::string Text(std::string_view name, std::string otherwise);
  Shape Ints(std::string_view name, Shape otherwise = {});
  std::vector<double> Floats(std::string_view name);
  std::vector<std::string> Texts(std::string_view name);
  Tensor TensorOf(std::string_view name);
  // Int, where a value below `least` or past 2^30 is a failure: so sums of a few can't overflow.
  int64_t Count(std::string_view name, int64_t otherwise, int64_t least = 0);
  // Ints of that many counts, or `otherwise` everywhere.
  Shape Counts(std::string_view name, int count, int64_t otherwise, int64_t least = 0);

  // What must be known while the model is read: elements of an input, by the name that ONNX gives
  // it. Unimplemented where they are computed.
  Shape KnownInts(int i, std::string_view name);
  std::vector<double> KnownFloats(int i, std::string_view name);
  // Of an input of one element.
  int64_t KnownInt(int i, std::string_view name);
  double KnownFloat(int i, std::string_view name);
  // The same of an attribute up to `last_version`, and of an input after it. Absent: {}.
  Shape IntsOfAttributeOrInput(std::string_view attribute, int last_version, int i);

  // Checks; each is a failure where it does not hold.
  void RequireRank(int i, int least, int most = 32);
  // Unimplemented: Kiln does not have the operator for other types.
  void RequireFloat(int i);
  // An axis counted from the end when negative; 0 with a failure where there is none.
  int64_t Axis(int64_t axis, int rank);
  Shape Axes(const Shape& axes, int rank);  // each once, ascending

  bool failed() const { return !status_.ok(); }
  const Status& status() const { return status_; }
  void Fail(Status status);  // as it is
  // "Conv of 'layer1/conv': ..."
  template <typename... Args>
  void Invalid(fmt::format_string<Args...> format, Args&&... args) {
    Fail(AtNode(InvalidArgument(format, std::forward<Args>(args)...)));
  }
  template <typename... Args>
  void Unsupported(fmt::format_string<Args...> format, Args&&... args) {
    Fail(Unimplemented(format, std::forward<Args>(args)...));
  }

  // Nodes of the graph.
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
  // Those that change nothing where there is nothing to change, and of which some have a meaning
  // for tensors without elements.
  Tensor Cast(const Tensor& x, ir::Type type);
  Tensor Reshape(const Tensor& x, Shape shape);
  Tensor Transpose(const Tensor& x, Shape axes);
  Tensor BroadcastTo(const Tensor& x, Shape shape);
  // `extents` elements along one axis.
  Tensor SliceAxis(const Tensor& x, int64_t axis, int64_t begin, int64_t extent,
                   int64_t stride = 1);
  Tensor Concat(std::vector<Tensor> xs, int64_t axis);
  // reduce_sum and its like; over no axes x itself.
  Tensor Reduce(std::string_view op, const Tensor& x, Shape axes, bool keep_dims);
  // The elements of `x` at `ids` of the axis; negative ones count from the end.
  Tensor Gather(const Tensor& x, const Tensor& ids, int64_t axis);
  // Of two shapes; a failure where they don't fit.
  Shape BroadcastShape(const Shape& a, const Shape& b);

  Tensor Scalar(ir::Type type, double value);
  Tensor ScalarLike(const Tensor& x, double value) { return Scalar(x.element(), value); }
  Tensor Constant(ir::Type type, Shape shape, const std::vector<double>& values);
  Tensor Constant(Shape shape, const Shape& values);  // int64

  void SetOutput(int i, Tensor tensor);
  void SetOutput(Tensor tensor) { SetOutput(0, std::move(tensor)); }
  const Tensor& output(int i) const { return outputs_[static_cast<size_t>(i)]; }

  // The graph of an attribute, computed over `inputs`: its outputs.
  ::onnx::GraphProto* Subgraph(std::string_view name);
  std::vector<Tensor> Inline(::onnx::GraphProto& graph, std::vector<Tensor> inputs);

  // "op of 'origin': message".
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
