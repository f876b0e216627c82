// Puts a compiled network together: buffers, and kernels over them.
//
// In the order of execution: inputs, then kernels, then outputs; constants and views before what
// reads them. One thread.
//
// A constant has a buffer for each order of its elements in which kernels take it
// (base/packing.h), and one with the elements as they are only where somebody takes it so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/packing.h"
#include "base/status.h"
#include "client/compile/compiled_network.h"
#include "client/compile/task_programs.h"
#include "graph/constant.h"
#include "graph/tasks.h"
#include "graph/tensor_type.h"

namespace kiln::client {

class Assembly {
 public:
  // What is read or written: one of the two, or nothing.
  struct Place {
    int32_t buffer = -1;    // its number
    int32_t constant = -1;  // its number here; its buffers come with its readers
    bool exists() const { return buffer >= 0 || constant >= 0; }
  };

  // `target`: network_target.h.
  explicit Assembly(const runtime::NetworkTarget& target);

  Place AddInput(const std::string& name, const graph::TensorType& type);
  Place AddConstant(const std::string& name, graph::ConstantPtr constant);
  Place AddView(Place of, int64_t bytes);
  // Of what a kernel makes: what leaves the network is written where it goes.
  Place AddMade(int64_t bytes, bool leaves);

  // `inputs`, `outputs`: as the arguments of the program's DAG; nothing for an output that nobody
  // reads. What the program takes packed is a constant. Equal binaries are kept once.
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
    // By the order that they hold; none: as it is.
    std::vector<std::pair<std::optional<Packing>, int32_t>> buffers = {};
  };

  runtime::Network& network() { return made_.network; }
  int32_t AddBuffer(runtime::NetworkBuffer buffer);
  // One for all kernels of the same code, but where runs of it must not share what it keeps: branches of a
  // network run beside each other.
  int32_t BinaryNumber(const codegen::Compiled& compiled);
  // The buffer of a place that exists, which holds a constant in this order.
  int32_t BufferOf(Place place, const std::optional<Packing>& packing = {});
  int32_t BufferOf(Constant& constant, const std::optional<Packing>& packing);
  void AddArguments(const codegen::Compiled& compiled, std::span<const Place> inputs,
                    std::span<const Place> outputs, runtime::NetworkKernel& kernel);

  std::map<std::string, int32_t, std::less<>> binary_of_;
  std::vector<Constant> constants_;
  CompiledNetwork made_;
};

// A network of one kernel: its inputs and outputs are those of the program's DAG, by the names of
// its text. The program takes nothing packed. The network has no graph.
StatusOr<CompiledNetwork> AssembleOne(const std::string& name, const graph::NetworkTask& task,
                                      const TaskProgram& program,
                                      const runtime::NetworkTarget& target);

}  // namespace kiln::client
