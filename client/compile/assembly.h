// Puts a compiled network together: buffers, and kernels over them.
//
// Call it in the order of execution: inputs, then kernels, then outputs; constants and views before
// their readers. Not thread-safe.
//
// A constant has a buffer for each element order that kernels want (base/arrays/packing.h), and an
// unpacked buffer only if somebody reads it unpacked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/arrays/packing.h"
#include "base/status.h"
#include "client/compile/compiled_network.h"
#include "client/compile/task_programs.h"
#include "graph/constant.h"
#include "graph/tasks.h"
#include "graph/tensor_type.h"

namespace kiln::client {

class Assembly {
 public:
  // A buffer, a constant or nothing, as an operand of a kernel.
  struct Place {
    // Number of the buffer.
    int32_t buffer = -1;
    // Index in `constants_`. Its buffers are added with its readers.
    int32_t constant = -1;
    bool exists() const { return buffer >= 0 || constant >= 0; }
  };

  // `target` is made by NetworkTargetOf (network_target.h).
  explicit Assembly(const runtime::NetworkTarget& target);

  Place AddInput(const std::string& name, const graph::TensorType& type);
  Place AddConstant(const std::string& name, graph::ConstantPtr constant);
  Place AddView(Place of, int64_t bytes);
  // Adds a result of a kernel. If it leaves the network, the kernel writes it directly to its
  // destination.
  Place AddMade(int64_t bytes, bool leaves);

  // `inputs` and `outputs` match the arguments of the program's DAG; an output that nobody reads
  // has an empty place. Packed inputs of the program must be constants. Equal binaries are kept
  // once.
  void AddKernel(const std::string& name, const graph::NetworkTask& task,
                 const TaskProgram& program, std::span<const Place> inputs,
                 std::span<const Place> outputs);

  // Any place may be an output.
  void AddOutput(const std::string& name, const graph::TensorType& type, Place place);

  // Places the buffers. Refuses what runtime::CheckNetwork refuses.
  StatusOr<CompiledNetwork> Finish(std::string graph_text);

 private:
  struct Constant {
    std::string name;
    graph::ConstantPtr elements;
    // Buffers by the element order that they hold; none: unpacked.
    std::vector<std::pair<std::optional<Packing>, int32_t>> buffers = {};
  };

  runtime::Network& network() { return made_.network; }
  int32_t AddBuffer(runtime::NetworkBuffer buffer);
  // Returns the number of the kernel's binary. Kernels with the same code share a binary, unless
  // the code keeps state while it runs: branches of a network run at the same time.
  int32_t BinaryNumber(const codegen::Compiled& compiled);
  // Returns the buffer of an existing place. If the place is a constant, the buffer has the given
  // order.
  int32_t BufferOf(Place place, const std::optional<Packing>& packing = {});
  int32_t BufferOf(Constant& constant, const std::optional<Packing>& packing);
  void AddArguments(const codegen::Compiled& compiled, std::span<const Place> inputs,
                    std::span<const Place> outputs, runtime::NetworkKernel& kernel);

  std::map<std::string, int32_t, std::less<>> binary_of_;
  std::vector<Constant> constants_;
  CompiledNetwork made_;
};

// Makes a network of one kernel. Its inputs and outputs are those of the program's DAG, with the
// names of the DAG's text. The program takes nothing packed. The network has no graph.
StatusOr<CompiledNetwork> AssembleOne(const std::string& name, const graph::NetworkTask& task,
                                      const TaskProgram& program,
                                      const runtime::NetworkTarget& target);

}  // namespace kiln::client
