// Reads the graph of a model: finds values by name, applies a rule to each node, and inlines
// functions and branches.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/graph_writer.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/input_types.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/onnx.pb.h"
#include "frontend/onnx/tensor_data.h"
#include "frontend/onnx/unsupported.h"

namespace kiln::frontend {

class Importer {
 public:
  // Most elements of a shape, a list of axes, or the limits of a loop: a longer list is nonsense.
  static constexpr int64_t kMaxKnownInts = int64_t{1} << 20;

  // `model` must outlive this; weights are moved out of it.
  Importer(::onnx::ModelProto& model, const std::string& folder, const ImportOptions& options)
      : model_(model), options_(options), tensors_(folder) {}

  StatusOr<graph::Graph> Import();

  // The following functions are for rules.
  GraphWriter& writer() { return writer_; }
  TensorData& tensors() { return tensors_; }
  // Returns the name of the program that made the file, as the file has it: "pytorch".
  const std::string& producer() const { return model_.producer_name(); }
  // Returns the outputs of a graph inside the current node. That graph sees the values around it.
  StatusOr<std::vector<Tensor>> Inline(::onnx::GraphProto& graph, std::vector<Tensor> inputs);

 private:
  // Versions of operator sets, by domain.
  using Versions = std::map<std::string, int, std::less<>>;
  struct Function {
    ::onnx::FunctionProto* proto = nullptr;
    Versions versions = {};
    std::vector<::onnx::AttributeProto> defaults = {};
  };
  // The names that the nodes of a graph see.
  struct Scope {
    // A function has none.
    Scope* outer = nullptr;
    const Versions* versions = nullptr;
    // Attributes of the call of a function.
    const OnnxAttributes* call = nullptr;
    std::unordered_map<std::string, Tensor> values = {};
    std::unordered_map<std::string, ::onnx::TensorProto*> initializers = {};
    std::unordered_map<std::string, bool> sparse = {};
  };

  Status ReadVersions(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& sets,
                      Versions& versions);
  Status ReadFunctions();
  Status AddInitializers(::onnx::GraphProto& graph, Scope& scope);
  StatusOr<Tensor> AddInput(const InputType& input);
  Status AddInputs(Scope& scope);
  StatusOr<std::vector<Tensor>> ImportGraph(::onnx::GraphProto& graph, Scope& scope);
  StatusOr<std::vector<Tensor>> ImportNodes(
      ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes,
      const std::vector<std::string>& outputs, Scope& scope);
  StatusOr<OnnxAttributes> ReadAttributes(::onnx::NodeProto& proto, const Scope& scope);
  StatusOr<NodeContext::Node> ReadNode(::onnx::NodeProto& proto, Scope& scope,
                                       const std::unordered_set<std::string>& needed);
  // Binds the outputs to their names.
  Status Bind(const ::onnx::NodeProto& proto, const std::vector<Tensor>& outputs, Scope& scope);
  Status ImportNode(::onnx::NodeProto& node, Scope& scope,
                    const std::unordered_set<std::string>& needed);
  StatusOr<std::vector<Tensor>> ApplyRule(const std::string& domain, NodeContext::Node node);
  StatusOr<std::vector<Tensor>> Call(Function& function, NodeContext::Node node);
  StatusOr<Tensor> Lookup(const std::string& name, Scope& scope);
  StatusOr<Tensor> TakeInitializer(const std::string& name, ::onnx::TensorProto& proto);

  ::onnx::ModelProto& model_;
  const ImportOptions& options_;
  TensorData tensors_;
  GraphWriter writer_;
  UnsupportedList unsupported_;
  // Not OK if extents of inputs are not known.
  Status open_inputs_;
  Versions versions_;
  std::map<std::pair<std::string, std::string>, Function> functions_;
  // Scope of the current node.
  Scope* scope_ = nullptr;
  // Depth of functions and of graphs inside nodes.
  int depth_ = 0;
};

}  // namespace kiln::frontend
