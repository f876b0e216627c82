// Small networks that are compiled for this CPU: computations as text, called one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "runtime/executor.h"
#include "runtime/network.h"
#include "runtime/network_file.h"

namespace kiln {

// Mistakes abort. Buffers have numbers, as in the network.
class MadeNetwork {
 public:
  MadeNetwork();

  int32_t Input(const std::string& name, std::vector<int64_t> shape, ir::Type type = ir::kFloat32);
  int32_t Constant(const ir::NDArray& array);
  // Adds a kernel that computes the text (compiler/dag/text.h) from these inputs. Its outputs are
  // in new buffers.
  std::vector<int32_t> Call(std::string_view text, const std::vector<int32_t>& inputs);
  // Adds a view with the same elements in another shape.
  int32_t View(int32_t buffer, std::vector<int64_t> shape);
  void Output(const std::string& name, int32_t buffer);

  runtime::Network& network() { return network_; }
  Status Write(const std::string& path);
  // Appends the same bytes to a file.
  Status Append(AtomicFile& file);
  StatusOr<std::shared_ptr<const runtime::NetworkFile>> File();

  // Computes the outputs by the definition of the computations.
  std::vector<ir::NDArray> Reference(const std::vector<ir::NDArray>& inputs) const;
  std::vector<ir::NDArray> RandomInputs(uint64_t seed) const;

 private:
  struct Called {
    dag::DagPtr dag;
    std::vector<int32_t> inputs;
    std::vector<int32_t> outputs;
  };
  runtime::ConstantSource Constants() const;
  int32_t AddBuffer(runtime::Place place, ir::Type type, std::vector<int64_t> shape);

  runtime::Network network_;
  // An array for each buffer. It has the buffer's type and shape, and a constant's elements.
  std::vector<ir::NDArray> values_;
  std::vector<Called> calls_;
  std::vector<std::unique_ptr<std::string>> binaries_;
};

// Returns x [8, 16] -> relu(x W) -> softly in two branches -> y [8, 8], and `hidden`, which is read
// as well.
MadeNetwork MakeSmallPerceptron();

// Runs the network on these inputs, with poisoned outputs.
StatusOr<std::vector<ir::NDArray>> RunNetwork(runtime::Executor& executor,
                                              const std::vector<ir::NDArray>& inputs,
                                              const std::vector<ir::NDArray>& like);

}  // namespace kiln
