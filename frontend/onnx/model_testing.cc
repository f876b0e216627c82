#include "frontend/onnx/model_testing.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/evaluate.h"

namespace kiln::frontend {
namespace {

using ::onnx::AttributeProto;
using ::onnx::TensorProto;

int OnnxType(std::string_view name) {
  const std::pair<std::string_view, int> types[] = {{"float32", TensorProto::FLOAT},
                                                    {"float64", TensorProto::DOUBLE},
                                                    {"float16", TensorProto::FLOAT16},
                                                    {"bfloat16", TensorProto::BFLOAT16},
                                                    {"float8_e4m3fn", 17},
                                                    {"float8_e5m2", 19},
                                                    {"int8", TensorProto::INT8},
                                                    {"int32", TensorProto::INT32},
                                                    {"int64", TensorProto::INT64},
                                                    {"bool", TensorProto::BOOL},
                                                    {"uint8", TensorProto::UINT8},
                                                    {"uint16", TensorProto::UINT16},
                                                    {"int16", TensorProto::INT16},
                                                    {"uint32", TensorProto::UINT32},
                                                    {"uint64", TensorProto::UINT64},
                                                    {"string", TensorProto::STRING}};
  for (const auto& [known, type] : types)
    if (known == name) return type;
  return TensorProto::UNDEFINED;
}

struct AttributeSetter {
  AttributeProto& a;

  void operator()(int64_t value) {
    a.set_type(AttributeProto::INT);
    a.set_i(value);
  }
  void operator()(double value) {
    a.set_type(AttributeProto::FLOAT);
    a.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) {
    a.set_type(AttributeProto::STRING);
    a.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) {
    a.set_type(AttributeProto::INTS);
    for (int64_t value : values) a.add_ints(value);
  }
  void operator()(const std::vector<double>& values) {
    a.set_type(AttributeProto::FLOATS);
    for (double value : values) a.add_floats(static_cast<float>(value));
  }
  void operator()(const std::vector<std::string>& values) {
    a.set_type(AttributeProto::STRINGS);
    for (const std::string& value : values) a.add_strings(value);
  }
  void operator()(const ir::NDArray& value) {
    a.set_type(AttributeProto::TENSOR);
    *a.mutable_t() = ToProto(value, "");
  }
  void operator()(const ::onnx::GraphProto& value) {
    a.set_type(AttributeProto::GRAPH);
    *a.mutable_g() = value;
  }
};

}  // namespace

TensorProto ToProto(const ir::NDArray& array, const std::string& name) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(OnnxType(ir::TypeName(array.type())));
  for (int64_t extent : array.shape()) proto.add_dims(extent);
  proto.set_raw_data(array.bytes().data(), array.bytes().size());
  return proto;
}

void TestGraph::Input(const std::string& name, const std::string& type,
                      std::vector<int64_t> shape) {
  ::onnx::ValueInfoProto& input = *graph_->add_input();
  input.set_name(name);
  auto& tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(OnnxType(type));
  for (int64_t extent : shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (extent >= 0) dim.set_dim_value(extent);
    if (extent < 0) dim.set_dim_param("n");
  }
  tensor.mutable_shape();
}

void TestGraph::Initializer(const std::string& name, const ir::NDArray& array) {
  *graph_->add_initializer() = ToProto(array, name);
}

void TestGraph::Ints(const std::string& name, const std::vector<int64_t>& values) {
  Initializer(name, frontend::Ints(values));
}

void TestGraph::NarrowInts(const std::string& name, const std::string& type,
                           std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  TensorProto& proto = *graph_->add_initializer();
  proto.set_name(name);
  proto.set_data_type(OnnxType(type));
  for (int64_t extent : shape) proto.add_dims(extent);
  const int bytes = type == "uint8" ? 1 : type == "uint64" ? 8 : type == "uint32" ? 4 : 2;
  for (int64_t value : values) {
    for (int i = 0; i < bytes; ++i)
      proto.mutable_raw_data()->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

::onnx::NodeProto& TestGraph::Node(const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs,
                                   const TestAttributes& attributes) {
  ::onnx::NodeProto& node = *graph_->add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const auto& [name, value] : attributes) {
    AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeSetter{attribute}, value);
  }
  return node;
}

void TestGraph::Output(const std::string& name) { graph_->add_output()->set_name(name); }

TestModel::TestModel(std::unique_ptr<::onnx::ModelProto> proto, int version)
    : TestGraph(proto->mutable_graph()), proto_(std::move(proto)) {
  proto_->set_ir_version(8);
  proto_->add_opset_import()->set_version(version);
}

StatusOr<graph::Graph> TestModel::Import(const ImportOptions& options) const {
  return ImportOnnxModel(Bytes(), "", options);
}

std::vector<ir::NDArray> TestModel::Run(const std::vector<ir::NDArray>& inputs,
                                        const ImportOptions& options) const {
  const StatusOr<graph::Graph> graph = Import(options);
  KILN_CHECK(graph.ok(), "{}", std::string(graph.status().message()));
  StatusOr<std::vector<ir::NDArray>> outputs = graph::Evaluate(*graph, inputs);
  KILN_CHECK(outputs.ok(), "{}", std::string(outputs.status().message()));
  return *std::move(outputs);
}

StatusOr<std::vector<ir::NDArray>> TryNode(const TestNode& node) {
  TestModel model(node.version);
  if (!node.domain.empty()) {
    auto& set = *model.proto().add_opset_import();
    set.set_domain(node.domain);
    set.set_version(1);
  }
  std::vector<std::string> inputs, outputs;
  std::vector<ir::NDArray> fed;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::NDArray& array = node.inputs[i];
    inputs.push_back(fmt::format("x{}", i));
    if (std::ranges::find(node.known, static_cast<int>(i)) != node.known.end()) {
      model.Initializer(inputs.back(), array);
    } else if (array.rank() == 1 && array.num_elements() == 0) {
      // An optional input that is not given.
      inputs.back().clear();
    } else {
      model.Input(inputs.back(), std::string(ir::TypeName(array.type())), array.shape());
      fed.push_back(array);
    }
  }
  for (int i = 0; i < node.outputs; ++i) {
    outputs.push_back(fmt::format("y{}", i));
    model.Output(outputs.back());
  }
  model.Node(node.op, inputs, outputs, node.attributes).set_domain(node.domain);
  KILN_ASSIGN_OR_RETURN(const graph::Graph graph, model.Import());
  return graph::Evaluate(graph, fed);
}

std::vector<ir::NDArray> RunNode(const TestNode& node) {
  StatusOr<std::vector<ir::NDArray>> outputs = TryNode(node);
  KILN_CHECK(outputs.ok(), "{}", std::string(outputs.status().message()));
  return *std::move(outputs);
}

ir::NDArray Floats(std::vector<int64_t> shape, std::vector<double> values) {
  return ir::NDArray(ir::kFloat32, std::move(shape), values);
}

ir::NDArray Ints(std::vector<int64_t> values) {
  ir::NDArray array(ir::kInt64, {std::ssize(values)});
  for (int64_t i = 0; i < array.num_elements(); ++i)
    array.Set(i, ir::Value::Int(values[static_cast<size_t>(i)]));
  return array;
}

ir::NDArray SmallFloats(std::vector<int64_t> shape, uint64_t seed) {
  ir::NDArray array(ir::kFloat32, std::move(shape));
  array.FillRandom(seed, ir::RandomKind::kSmallIntegers);
  return array;
}

std::vector<double> Doubles(const ir::NDArray& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.num_elements(); ++i) values.push_back(array.GetDouble(i));
  return values;
}

}  // namespace kiln::frontend
