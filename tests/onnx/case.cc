#include "tests/onnx/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <set>

#include "base/file/file.h"
#include "base/hash/xxh3.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/tensor_data.h"
#include "graph/evaluate.h"
#include "graph/node_dag.h"

namespace kiln {
namespace {

using Kind = CaseResult::Kind;
using Arrays = std::vector<ir::NDArray>;

using Values = ::google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto>;

// Reads the tensor of a file for a value of the model. Older data has elements of bfloat16 as
// uint16.
StatusOr<ir::NDArray> ReadArray(const std::string& path, const ::onnx::ValueInfoProto* value) {
  KILN_ASSIGN_OR_RETURN(::onnx::TensorProto proto, frontend::ReadTensorFile(path));
  const bool is_bfloat16 =
      value != nullptr && value->type().tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16;
  if (is_bfloat16) proto.set_data_type(::onnx::TensorProto::BFLOAT16);
  KILN_ASSIGN_OR_RETURN(const frontend::Tensor tensor, frontend::TensorData("").Take(proto));
  if (tensor.is_empty()) return ir::NDArray(tensor.element(), tensor.shape());
  return tensor.constant->ToArray();
}

// Reads prefix_0.pb, prefix_1.pb, ... as long as there are files.
StatusOr<Arrays> ReadArrays(const std::string& folder, std::string_view prefix,
                            const std::vector<const ::onnx::ValueInfoProto*>& values) {
  Arrays arrays;
  for (size_t i = 0;; ++i) {
    const std::string path = JoinPath(folder, fmt::format("{}_{}.pb", prefix, i));
    if (!FileExists(path)) return arrays;
    KILN_ASSIGN_OR_RETURN(ir::NDArray array,
                          ReadArray(path, i < values.size() ? values[i] : nullptr));
    arrays.push_back(std::move(array));
  }
}

// Returns the inputs that must be fed, in order: inputs without initializers.
std::vector<const ::onnx::ValueInfoProto*> FedInputs(const ::onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  for (const auto& input : graph.input())
    if (!initializers.contains(input.name())) inputs.push_back(&input);
  return inputs;
}

// Returns ONNX's own tolerances, wider for values near 0 and for 16-bit floats.
ir::Tolerance ToleranceOf(ir::Type type) {
  if (type == ir::kBFloat16) return {.relative = 1e-2, .absolute = 1e-2};
  if (type == ir::kFloat16) return {.relative = 2e-3, .absolute = 1e-3};
  return {.relative = 1e-3, .absolute = 1e-5};
}

Status CompareAll(const Arrays& found, const Arrays& expected) {
  if (found.size() < expected.size())
    return Internal("{} outputs, expected {}", found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    KILN_RETURN_IF_ERROR(ir::Compare(found[i], expected[i], ToleranceOf(expected[i].type()),
                                     fmt::format("output {}", i)));
  }
  return OkStatus();
}

// Cases of onnx 1.16 whose outputs contradict the operator's description.
struct WrongData {
  std::string_view name, why;
};
constexpr WrongData kWrongData[] = {
    {"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
     "it divides by elements past the padding too, which later versions don't"},
    {"test_qlinearmatmul_2D_int8_float16", "its int8 wraps around where it should saturate"},
    {"test_qlinearmatmul_2D_int8_float32", "its int8 wraps around where it should saturate"},
    {"test_qlinearmatmul_3D_int8_float16", "its int8 wraps around where it should saturate"},
    {"test_qlinearmatmul_3D_int8_float32", "its int8 wraps around where it should saturate"},
};

const WrongData* FindWrongData(const std::string& folder) {
  const std::string name = std::filesystem::path(folder).filename().string();
  const auto* found = std::ranges::find(kWrongData, name, &WrongData::name);
  return found == std::end(kWrongData) ? nullptr : found;
}

// Returns about the number of the oracle's steps: operations, and elements that are made.
double StepsOf(const graph::Graph& graph) {
  double steps = 0;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const int nodes[] = {i};
    const auto node = graph::MakeNodeDag(graph, nodes, graph.node(i).outputs);
    if (node.ok()) steps += std::max(node->dag->flop_count(), 0.0);
    for (graph::ValueId id : graph.node(i).outputs)
      steps += static_cast<double>(graph.value(id).type.num_elements());
  }
  return steps;
}

struct DataSet {
  std::map<std::string, ir::NDArray> inputs;
  // Names of the inputs in their order.
  std::vector<std::string> names;
  // Inputs whose extents the model leaves open.
  std::set<std::string> open_inputs;
  Arrays outputs;
};

bool IsOpen(const ::onnx::ValueInfoProto& input) {
  const auto& tensor = input.type().tensor_type();
  return !tensor.has_shape() || std::ranges::any_of(tensor.shape().dim(), [](const auto& dim) {
    return !dim.has_dim_value();
  });
}

StatusOr<DataSet> ReadDataSet(const std::string& model_path, const std::string& folder) {
  KILN_ASSIGN_OR_RETURN(const ::onnx::ModelProto model, frontend::ReadModelFile(model_path));
  const auto fed = FedInputs(model.graph());
  std::vector<const ::onnx::ValueInfoProto*> made;
  for (const auto& output : model.graph().output()) made.push_back(&output);
  DataSet data;
  KILN_ASSIGN_OR_RETURN(Arrays inputs, ReadArrays(folder, "input", fed));
  KILN_ASSIGN_OR_RETURN(data.outputs, ReadArrays(folder, "output", made));
  for (const auto* input : fed) {
    data.names.push_back(input->name());
    if (IsOpen(*input)) data.open_inputs.insert(input->name());
  }
  for (size_t i = 0; i < std::min(inputs.size(), data.names.size()); ++i)
    data.inputs[data.names[i]] = std::move(inputs[i]);
  return data;
}

// Scalars and lists among the inputs may describe shapes. Those from number `first` on are fixed to
// their values; if shapes depend on data, inputs of all ranks are. All others have the shapes of
// the data if the model does not give their shapes.
frontend::ImportOptions OptionsFor(const DataSet& data, size_t first, int most_dimensions) {
  frontend::ImportOptions options;
  for (size_t i = 0; i < data.names.size(); ++i) {
    const auto it = data.inputs.find(data.names[i]);
    if (it == data.inputs.end()) continue;
    if (i >= first && it->second.rank() <= most_dimensions) {
      options.input_values.insert(*it);
    } else if (data.open_inputs.contains(it->first)) {
      options.input_shapes[it->first] = it->second.shape();
    }
  }
  return options;
}

CaseResult RunGraph(const graph::Graph& graph, const DataSet& data, const CaseOptions& options,
                    Kind pass) {
  if (const double steps = StepsOf(graph); steps > options.max_steps)
    return {Kind::kTooLarge, fmt::format("about {:.1e} steps", steps)};
  Arrays inputs;
  for (graph::ValueId id : graph.inputs()) {
    const graph::Value& value = graph.value(id);
    const auto it = data.inputs.find(value.name);
    const bool is_read = !graph.readers(id).empty() || graph.is_output(id);
    if (it == data.inputs.end() && is_read)
      return {Kind::kFail, fmt::format("no data for input {}", value.name)};
    // An input that nothing reads may have any shape in the data.
    inputs.push_back(is_read ? it->second : ir::NDArray(value.type.type, value.type.shape));
  }
  const StatusOr<Arrays> outputs =
      options.evaluate ? options.evaluate(graph, inputs) : graph::Evaluate(graph, inputs);
  if (!outputs.ok()) return {Kind::kFail, std::string(Message(outputs.status()))};
  const Status status = CompareAll(*outputs, data.outputs);
  if (!status.ok()) return {Kind::kFail, std::string(Message(status))};
  return {pass, {}};
}

CaseResult RunDataSet(const std::string& model, const std::string& folder,
                      const CaseOptions& options) {
  const StatusOr<DataSet> data = ReadDataSet(model, folder);
  const auto import = [&](size_t first_fixed, int most_dimensions = 1) {
    return frontend::ImportOnnx(model, data.ok() ? OptionsFor(*data, first_fixed, most_dimensions)
                                                 : frontend::ImportOptions());
  };
  StatusOr<graph::Graph> graph = import(SIZE_MAX);
  const Status first = graph.status();
  // Many cases have inputs that networks have as constants.
  for (size_t fixed : {1, 0})
    if (data.ok() && graph.status().code() == StatusCode::kUnimplemented) graph = import(fixed);
  const bool depends_on_data =
      Message(graph.status()).find("depends on data") != std::string_view::npos;
  if (data.ok() && !graph.ok() && depends_on_data) graph = import(0, INT_MAX);
  if (!graph.ok()) {
    const bool lacks = first.code() == StatusCode::kUnimplemented;
    const Status& said = lacks ? first : graph.status();
    return {lacks ? Kind::kUnsupported : Kind::kFail, std::string(Message(said))};
  }
  if (!data.ok()) return {Kind::kFail, std::string(Message(data.status()))};
  return RunGraph(*graph, *data, options, first.ok() ? Kind::kPass : Kind::kPassFixed);
}

// Returns the first item that a message of the importer lists.
std::string FirstLack(const std::string& message) {
  const size_t start = message.find("\n  ");
  if (start == std::string::npos) return message;
  std::string line = message.substr(start + 3, message.find('\n', start + 1) - start - 3);
  // Leaves out the node.
  const size_t at = line.find(" at '"), colon = line.find("': ", at);
  if (at != std::string::npos && colon != std::string::npos) line.erase(at, colon + 1 - at);
  return line;
}

}  // namespace

bool Shard::Has(std::string_view name) const {
  return Xxh3(name) % static_cast<uint64_t>(count) == static_cast<uint64_t>(index);
}

std::vector<std::string> FindCases(const std::string& folder, Shard shard) {
  std::vector<std::string> cases;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (FileExists(JoinPath(entry.path().string(), "model.onnx")) &&
        shard.Has(entry.path().filename().string()))
      cases.push_back(entry.path().string());
  }
  std::ranges::sort(cases);
  return cases;
}

CaseResult RunCase(const std::string& folder, const CaseOptions& options) {
  CaseResult result;
  for (int i = 0;; ++i) {
    const std::string data = JoinPath(folder, fmt::format("test_data_set_{}", i));
    if (i > 0 && !FileExists(data)) return result;
    result = RunDataSet(JoinPath(folder, "model.onnx"), data, options);
    const WrongData* wrong = result.kind == Kind::kFail ? FindWrongData(folder) : nullptr;
    if (wrong != nullptr) return {Kind::kWrongData, std::string(wrong->why)};
    if (result.kind != Kind::kPass && result.kind != Kind::kPassFixed) return result;
  }
}

void Count(const std::string& name, const CaseResult& result, Tally& tally) {
  switch (result.kind) {
    case Kind::kPassFixed:
      ++tally.fixed;
      [[fallthrough]];
    case Kind::kPass:
      ++tally.pass;
      return;
    case Kind::kUnsupported:
      ++tally.unsupported;
      tally.lacks.push_back(FirstLack(result.detail));
      return;
    case Kind::kTooLarge:
      ++tally.too_large;
      return;
    case Kind::kWrongData:
      ++tally.wrong_data;
      return;
    case Kind::kFail:
      ++tally.fail;
      tally.failures.push_back(fmt::format("{}: {}", name, result.detail));
      return;
  }
}

}  // namespace kiln
