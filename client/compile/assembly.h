// Puts a compiled network together: buffers, and kernels over them.
//
// In the order of execution: inputs, then kernels, then outputs; constants and views before what
// reads them. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/compile/compiled_network.h"
#include "client/compile/task_programs.h"
#include "graph/constant.h"
#include "graph/tasks.h"
#include "graph/tensor_type.h"

namespace kiln::client {

class Assembly {
 public:
  // `target`: network_target.h.
  explicit Assembly(const runtime::NetworkTarget& target);

  // The numbers of buffers.
  int32_t AddInput(const std::string& name, const graph::TensorType& type);
  int32_t AddConstant(const std::string& name, graph::ConstantPtr constant);
  int32_t AddView(int32_t of, int64_t bytes);
  // Of what a kernel makes: what leaves the network is written where it goes.
  int32_t AddMade(int64_t bytes, bool leaves);

  // `inputs`, `outputs`: buffers, as the arguments of the task's DAG; -1 for an output that nobody
  // reads. Equal binaries are kept once.
  void AddKernel(const std::string& name, const graph::NetworkTask& task,
                 const TaskProgram& program, std::span<const int32_t> inputs,
                 std::span<const int32_t> outputs);

  // Any buffer may be an output.
  void AddOutput(const std::string& name, const graph::TensorType& type, int32_t buffer);

  // Places the buffers. Refuses what runtime::CheckNetwork refuses.
  StatusOr<CompiledNetwork> Finish(std::string graph_text);

 private:
  runtime::Network& network() { return made_.network; }
  int32_t AddBuffer(runtime::NetworkBuffer buffer);
  int32_t BinaryNumber(const std::string& binary);
  void AddArguments(const codegen::Compiled& compiled, std::span<const int32_t> inputs,
                    std::span<const int32_t> outputs, runtime::NetworkKernel& kernel);

  std::map<std::string, int32_t, std::less<>> binary_of_;
  CompiledNetwork made_;
};

// A network of one kernel: its inputs and outputs are those of the task's DAG, by the names of its
// text. It has no graph.
StatusOr<CompiledNetwork> AssembleOne(const std::string& name, const graph::NetworkTask& task,
                                      const TaskProgram& program,
                                      const runtime::NetworkTarget& target);

}  // namespace kiln::client
