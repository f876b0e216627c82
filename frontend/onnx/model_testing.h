// For tests of the importer: models put together node by node, and what they compute.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/onnx.pb.h"

namespace kiln::frontend {

::onnx::TensorProto ToProto(const ir::NDArray& array, const std::string& name);

using TestAttribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, ir::NDArray, ::onnx::GraphProto>;
using TestAttributes = std::map<std::string, TestAttribute>;

// Nodes of a graph.
class TestGraph {
 public:
  explicit TestGraph(::onnx::GraphProto* graph) : graph_(graph) {}

  // Extents below 0 are open.
  void Input(const std::string& name, const std::string& type, std::vector<int64_t> shape);
  void Initializer(const std::string& name, const ir::NDArray& array);
  void Ints(const std::string& name, const std::vector<int64_t>& values);  // a list
  // Of an integer type by its name: "uint8", "uint16", "int16", "uint32", "uint64".
  void NarrowInts(const std::string& name, const std::string& type, std::vector<int64_t> shape,
                  const std::vector<int64_t>& values);
  ::onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs,
                          const TestAttributes& attributes = {});
  void Output(const std::string& name);

 private:
  ::onnx::GraphProto* graph_;
};

class TestModel : public TestGraph {
 public:
  explicit TestModel(int version = 17)
      : TestModel(std::make_unique<::onnx::ModelProto>(), version) {}
  ::onnx::ModelProto& proto() { return *proto_; }
  std::string Bytes() const { return proto_->SerializeAsString(); }
  StatusOr<graph::Graph> Import(const ImportOptions& options = {}) const;
  // The outputs by the oracle. Must be fine.
  std::vector<ir::NDArray> Run(const std::vector<ir::NDArray>& inputs,
                               const ImportOptions& options = {}) const;

 private:
  TestModel(std::unique_ptr<::onnx::ModelProto> proto, int version);
  std::unique_ptr<::onnx::ModelProto> proto_;
};

// A graph for an attribute; `fill` adds its nodes.
template <typename Fill>
::onnx::GraphProto Subgraph(Fill fill) {
  ::onnx::GraphProto graph;
  TestGraph nodes(&graph);
  fill(nodes);
  return graph;
}

// The outputs of one node of a model of that version: inputs in order are arrays; those that are
// named in `known` are constants.
struct TestNode {
  std::string op;
  int version = 17;
  TestAttributes attributes = {};
  std::vector<ir::NDArray> inputs = {};
  std::vector<int> known = {};  // inputs that are constants
  int outputs = 1;
  std::string domain = {};
};
StatusOr<std::vector<ir::NDArray>> TryNode(const TestNode& node);
// Must be fine.
std::vector<ir::NDArray> RunNode(const TestNode& node);

ir::NDArray Floats(std::vector<int64_t> shape, std::vector<double> values);
ir::NDArray Ints(std::vector<int64_t> values);
// -3..3, the same for the same seed.
ir::NDArray SmallFloats(std::vector<int64_t> shape, uint64_t seed);
std::vector<double> Doubles(const ir::NDArray& array);

}  // namespace kiln::frontend
