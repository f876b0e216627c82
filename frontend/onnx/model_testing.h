// Helps tests of the importer: builds models node by node, and runs them.
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

// Builds the nodes of a graph.
class TestGraph {
 public:
  explicit TestGraph(::onnx::GraphProto* graph) : graph_(graph) {}

  // An extent below 0 is open.
  void Input(const std::string& name, const std::string& type, std::vector<int64_t> shape);
  void Initializer(const std::string& name, const ir::NDArray& array);
  // Adds a list.
  void Ints(const std::string& name, const std::vector<int64_t>& values);
  // Adds integers of the named type: "uint8", "uint16", "int16", "uint32", "uint64".
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
  // Returns the outputs by the oracle. The model must be valid.
  std::vector<ir::NDArray> Run(const std::vector<ir::NDArray>& inputs,
                               const ImportOptions& options = {}) const;

 private:
  TestModel(std::unique_ptr<::onnx::ModelProto> proto, int version);
  std::unique_ptr<::onnx::ModelProto> proto_;
};

// Returns a graph for an attribute; `fill` adds its nodes.
template <typename Fill>
::onnx::GraphProto Subgraph(Fill fill) {
  ::onnx::GraphProto graph;
  TestGraph nodes(&graph);
  fill(nodes);
  return graph;
}

// One node of a model of that version. Its inputs are arrays in order; those that `known` lists are
// constants.
struct TestNode {
  std::string op;
  int version = 17;
  TestAttributes attributes = {};
  std::vector<ir::NDArray> inputs = {};
  // Numbers of the inputs that are constants.
  std::vector<int> known = {};
  int outputs = 1;
  std::string domain = {};
};
StatusOr<std::vector<ir::NDArray>> TryNode(const TestNode& node);
// The node must be valid.
std::vector<ir::NDArray> RunNode(const TestNode& node);

ir::NDArray Floats(std::vector<int64_t> shape, std::vector<double> values);
ir::NDArray Ints(std::vector<int64_t> values);
// Returns numbers from -3 to 3, the same for the same seed.
ir::NDArray SmallFloats(std::vector<int64_t> shape, uint64_t seed);
std::vector<double> Doubles(const ir::NDArray& array);

}  // namespace kiln::frontend
