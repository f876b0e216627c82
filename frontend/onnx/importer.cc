#include "frontend/onnx/importer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "frontend/onnx/element_type.h"
#include "frontend/onnx/input_types.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

using ::google::protobuf::RepeatedPtrField;
using ::onnx::AttributeProto;

// The newest operator set of ai.onnx whose operators Kiln understands.
constexpr int kLastVersion = 28;
// No operator set has a higher number, so a higher one in a file is nonsense.
constexpr int kMaxVersion = 1000;
constexpr int kMaxDepth = 64;
// Steps off the budget (GraphWriter::Spend) for each node that is looked at, since functions that
// call functions and loops in loops multiply the nodes.
constexpr int64_t kStepsOfNode = 100;

// Maps the names of ONNX's own domain to one.
std::string DomainOf(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

std::string OpText(const std::string& domain, const NodeContext::Node& node) {
  return fmt::format("{} ({} {})", node.op, domain.empty() ? "ai.onnx" : domain, node.version);
}

// Reads the defaults of a function's attributes. Debian's onnx.proto does not know their field.
std::vector<AttributeProto> ReadDefaults(const ::onnx::FunctionProto& function) {
  using ::google::protobuf::internal::WireFormatLite;
  constexpr int kAttributeProtoField = 11;
  std::vector<AttributeProto> defaults;
  const std::string& unknown = function.unknown_fields();
  ::google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(unknown.data()),
                                              static_cast<int>(unknown.size()));
  while (const uint32_t tag = in.ReadTag()) {
    std::string bytes;
    int length = 0;
    if (WireFormatLite::GetTagFieldNumber(tag) != kAttributeProtoField) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
    } else if (!in.ReadVarintSizeAsInt(&length) || !in.ReadString(&bytes, length) ||
               !defaults.emplace_back().ParseFromString(bytes)) {
      break;
    }
  }
  return defaults;
}

// Returns the tensor of a fixed input.
Tensor KnownTensor(const ir::NDArray& array, const std::string& name) {
  if (array.num_elements() == 0) return Tensor::Empty({array.type(), array.shape()});
  return Tensor::Of(graph::Constant::FromArray(array), name);
}

std::vector<std::string> Names(const RepeatedPtrField<::onnx::ValueInfoProto>& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

}  // namespace

Status Importer::ReadVersions(const RepeatedPtrField<::onnx::OperatorSetIdProto>& sets,
                              Versions& versions) {
  for (const auto& set : sets) {
    const std::string domain = DomainOf(set.domain());
    if (set.version() < 1 || set.version() > kMaxVersion) {
      return InvalidArgument("the model has version {} of the operator set {}, expected 1 to {}",
                             set.version(), domain.empty() ? "ai.onnx" : domain, kMaxVersion);
    }
    versions[domain] = static_cast<int>(set.version());
  }
  return OkStatus();
}

Status Importer::ReadFunctions() {
  for (auto& proto : *model_.mutable_functions()) {
    Function function{.proto = &proto, .versions = versions_, .defaults = ReadDefaults(proto)};
    KILN_RETURN_IF_ERROR(ReadVersions(proto.opset_import(), function.versions));
    const auto key = std::pair(DomainOf(proto.domain()), proto.name());
    if (!functions_.emplace(key, std::move(function)).second)
      return InvalidArgument("the model has two functions {}.{}", proto.domain(), proto.name());
  }
  return OkStatus();
}

Status Importer::AddInitializers(::onnx::GraphProto& graph, Scope& scope) {
  for (auto& tensor : *graph.mutable_initializer()) {
    if (!scope.initializers.emplace(tensor.name(), &tensor).second)
      return InvalidArgument("two initializers are called '{}'", tensor.name());
  }
  for (const auto& tensor : graph.sparse_initializer()) scope.sparse[tensor.values().name()] = true;
  return OkStatus();
}

// An input that the graph can't have is reported and becomes missing. So does an input with open
// extents, which AddInputs reports.
StatusOr<Tensor> Importer::AddInput(const InputType& input) {
  StatusOr<ir::Type> element = ElementType(input.element);
  if (!input.kind.empty()) element = Unimplemented("it is {}; Kiln has tensors", input.kind);
  if (!element.ok()) {
    unsupported_.Add(fmt::format("input '{}'", input.name), {},
                     std::string(Message(element.status())));
  }
  if (!element.ok() || input.is_open) return Tensor::Missing();
  return writer_.Input(input.name, {*element, input.shape});
}

// Inputs with initializers become constants, and so do inputs that the options fix.
Status Importer::AddInputs(Scope& scope) {
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  std::unordered_set<std::string> names;
  for (const auto& input : model_.graph().input()) {
    const std::string& name = input.name();
    if (!names.insert(name).second) return InvalidArgument("two inputs are called '{}'", name);
    const auto fixed = options_.input_values.find(name);
    if (fixed != options_.input_values.end()) {
      scope.values[name] = KnownTensor(fixed->second, name);
    } else if (!scope.initializers.contains(name)) {
      inputs.push_back(&input);
    }
  }
  for (const auto& [name, value] : options_.input_values)
    if (!names.contains(name)) return InvalidArgument("the model has no input '{}'", name);
  KILN_ASSIGN_OR_RETURN(const std::vector<InputType> types,
                        ReadInputTypes(inputs, options_.input_shapes, open_inputs_));
  for (const InputType& input : types) {
    KILN_ASSIGN_OR_RETURN(scope.values[input.name], AddInput(input));
  }
  return OkStatus();
}

StatusOr<Tensor> Importer::TakeInitializer(const std::string& name, ::onnx::TensorProto& proto) {
  StatusOr<Tensor> tensor = tensors_.Take(proto);
  if (tensor.status().code() != StatusCode::kUnimplemented) return tensor;
  unsupported_.Add(fmt::format("initializer '{}'", name), {},
                   std::string(Message(tensor.status())));
  return Tensor::Missing();
}

StatusOr<Tensor> Importer::Lookup(const std::string& name, Scope& scope) {
  for (Scope* s = &scope; s != nullptr; s = s->outer) {
    const auto value = s->values.find(name);
    if (value != s->values.end()) return value->second;
    if (s->sparse.contains(name)) {
      unsupported_.Add(fmt::format("initializer '{}'", name), {}, std::string("a sparse tensor"));
      return Tensor::Missing();
    }
    const auto initializer = s->initializers.find(name);
    if (initializer == s->initializers.end()) continue;
    KILN_ASSIGN_OR_RETURN(Tensor tensor, TakeInitializer(name, *initializer->second));
    return s->values.emplace(name, std::move(tensor)).first->second;
  }
  return InvalidArgument("'{}' is not an input, an initializer or the output of a node", name);
}

StatusOr<std::vector<Tensor>> Importer::ApplyRule(const std::string& domain,
                                                  NodeContext::Node node) {
  const std::string what = OpText(domain, node), origin = node.origin;
  const size_t num_outputs = node.wanted_outputs.size();
  const auto unsupported = [&](std::string reason) {
    unsupported_.Add(what, origin, std::move(reason));
    return std::vector<Tensor>(num_outputs, Tensor::Missing());
  };
  const Rule* rule = FindRule(domain, node.op);
  if (domain.empty() && node.version > kLastVersion) {
    return unsupported(
        fmt::format("Kiln knows what operators mean up to operator set {}: export the model with "
                    "opset {} or below",
                    kLastVersion, kLastVersion));
  }
  if (rule == nullptr) return unsupported(WhyUnsupported(domain, node.op));
  if (std::ranges::any_of(node.inputs, [](const Tensor& input) { return input.is_missing(); }))
    return std::vector<Tensor>(num_outputs, Tensor::Missing());
  NodeContext context(*this, std::move(node));
  rule->translate(context);
  if (context.status().code() == StatusCode::kUnimplemented)
    return unsupported(std::string(Message(context.status())));
  KILN_RETURN_IF_ERROR(context.status());
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < num_outputs; ++i) {
    outputs.push_back(context.output(static_cast<int>(i)));
    if (context.wants_output(static_cast<int>(i)) && !outputs.back().exists())
      outputs = unsupported(fmt::format("Kiln does not compute its output {}", i));
  }
  return outputs;
}

StatusOr<std::vector<Tensor>> Importer::Call(Function& function, NodeContext::Node node) {
  ::onnx::FunctionProto& proto = *function.proto;
  if (++depth_ > kMaxDepth)
    return InvalidArgument("function {} calls itself, or calls are too deep", proto.name());
  OnnxAttributes attributes;
  for (AttributeProto& value : function.defaults) attributes[value.name()] = &value;
  for (const auto& [name, value] : node.attributes) attributes[name] = value;
  Scope scope{.versions = &function.versions, .call = &attributes};
  for (int i = 0; i < proto.input_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    scope.values[proto.input(i)] = at < node.inputs.size() ? node.inputs[at] : Tensor();
  }
  const std::vector<std::string> names(proto.output().begin(), proto.output().end());
  StatusOr<std::vector<Tensor>> outputs = ImportNodes(*proto.mutable_node(), names, scope);
  --depth_;
  if (outputs.ok()) outputs->resize(node.wanted_outputs.size());
  return outputs;
}

// Attributes that refer to attributes of the called function take the values of the call.
StatusOr<OnnxAttributes> Importer::ReadAttributes(::onnx::NodeProto& proto, const Scope& scope) {
  OnnxAttributes attributes;
  for (AttributeProto& attribute : *proto.mutable_attribute()) {
    AttributeProto* value = &attribute;
    if (const std::string& name = attribute.ref_attr_name(); !name.empty()) {
      if (scope.call == nullptr)
        return InvalidArgument("attribute {} stands for one of a function", attribute.name());
      const auto it = scope.call->find(name);
      if (it == scope.call->end()) continue;
      value = it->second;
    }
    if (!attributes.emplace(attribute.name(), value).second)
      return InvalidArgument("it has attribute {} twice", attribute.name());
  }
  return attributes;
}

StatusOr<NodeContext::Node> Importer::ReadNode(::onnx::NodeProto& proto, Scope& scope,
                                               const std::unordered_set<std::string>& needed) {
  NodeContext::Node node{.op = proto.op_type(), .origin = NodeLabel(proto)};
  for (const std::string& name : proto.input()) {
    node.inputs.emplace_back();
    if (name.empty()) continue;
    KILN_ASSIGN_OR_RETURN(node.inputs.back(), Lookup(name, scope));
  }
  for (const std::string& name : proto.output()) {
    node.wanted_outputs.push_back(!name.empty() && needed.contains(name));
    node.named_outputs += name.empty() ? 0 : 1;
  }
  KILN_ASSIGN_OR_RETURN(node.attributes, ReadAttributes(proto, scope));
  const auto version = scope.versions->find(DomainOf(proto.domain()));
  node.version = version == scope.versions->end() ? 1 : version->second;
  return node;
}

Status Importer::Bind(const ::onnx::NodeProto& proto, const std::vector<Tensor>& outputs,
                      Scope& scope) {
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    if (name.empty()) continue;
    const Tensor& output = outputs[static_cast<size_t>(i)];
    if (scope.initializers.contains(name) || !scope.values.emplace(name, output).second)
      return InvalidArgument("its output '{}' is a value that is there already", name);
    if (output.exists()) writer_.Name(output, name);
  }
  return OkStatus();
}

Status Importer::ImportNode(::onnx::NodeProto& proto, Scope& scope,
                            const std::unordered_set<std::string>& needed) {
  const auto annotate = [&](const Status& status) {
    return Annotate(status, fmt::format("{} of '{}'", proto.op_type(), NodeLabel(proto)));
  };
  StatusOr<NodeContext::Node> node = ReadNode(proto, scope, needed);
  if (!node.ok()) return annotate(node.status());
  scope_ = &scope;
  const std::string domain = DomainOf(proto.domain());
  const auto function = functions_.find(std::pair(domain, proto.op_type()));
  const bool is_call = function != functions_.end() && FindRule(domain, proto.op_type()) == nullptr;
  KILN_ASSIGN_OR_RETURN(
      const std::vector<Tensor> outputs,
      is_call ? Call(function->second, *std::move(node)) : ApplyRule(domain, *std::move(node)));
  return annotate(Bind(proto, outputs, scope));
}

StatusOr<std::vector<Tensor>> Importer::ImportNodes(RepeatedPtrField<::onnx::NodeProto>& nodes,
                                                    const std::vector<std::string>& outputs,
                                                    Scope& scope) {
  KILN_ASSIGN_OR_RETURN(const NodeOrder order, OrderNodes(nodes, outputs));
  KILN_RETURN_IF_ERROR(writer_.Spend(MultiplyCounts(order.num_visited, kStepsOfNode)));
  for (::onnx::NodeProto* node : order.nodes)
    KILN_RETURN_IF_ERROR(ImportNode(*node, scope, order.needed));
  std::vector<Tensor> tensors;
  for (const std::string& name : outputs) {
    StatusOr<Tensor> tensor = Lookup(name, scope);
    if (!tensor.ok()) return Annotate(tensor.status(), "an output of the graph");
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

StatusOr<std::vector<Tensor>> Importer::Inline(::onnx::GraphProto& graph,
                                               std::vector<Tensor> inputs) {
  if (static_cast<int>(inputs.size()) != graph.input_size()) {
    return InvalidArgument("graph '{}' has {} inputs, expected {}", graph.name(),
                           graph.input_size(), inputs.size());
  }
  if (++depth_ > kMaxDepth) return InvalidArgument("graphs inside nodes are too deep");
  Scope* const outer = scope_;
  Scope scope{.outer = outer, .versions = outer->versions, .call = outer->call};
  KILN_RETURN_IF_ERROR(AddInitializers(graph, scope));
  for (int i = 0; i < graph.input_size(); ++i)
    scope.values[graph.input(i).name()] = inputs[static_cast<size_t>(i)];
  StatusOr<std::vector<Tensor>> outputs =
      ImportNodes(*graph.mutable_node(), Names(graph.output()), scope);
  scope_ = outer;
  --depth_;
  return outputs;
}

StatusOr<graph::Graph> Importer::Import() {
  KILN_RETURN_IF_ERROR(ReadVersions(model_.opset_import(), versions_));
  KILN_RETURN_IF_ERROR(ReadFunctions());
  ::onnx::GraphProto& graph = *model_.mutable_graph();
  Scope scope{.versions = &versions_};
  KILN_RETURN_IF_ERROR(AddInitializers(graph, scope));
  KILN_RETURN_IF_ERROR(AddInputs(scope));
  const std::vector<std::string> names = Names(graph.output());
  KILN_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                        ImportNodes(*graph.mutable_node(), names, scope));
  if (!unsupported_.empty()) return unsupported_.ToStatus();
  KILN_RETURN_IF_ERROR(open_inputs_);
  for (size_t i = 0; i < outputs.size(); ++i)
    KILN_RETURN_IF_ERROR(
        Annotate(writer_.Output(outputs[i], names[i]), fmt::format("output '{}'", names[i])));
  return writer_.Build();
}

}  // namespace kiln::frontend
