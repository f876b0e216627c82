#include "tests/onnx/compiled.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "client/compile/compile_network.h"
#include "compiler/target/target.h"
#include "runtime/executor.h"

namespace kiln {
namespace {

// Compiles and loads a network as `kiln compile` does for CPUs.
StatusOr<std::unique_ptr<runtime::Executor>> LoadCompiled(const graph::Graph& graph,
                                                          uint64_t seed) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget("llvm"));
  KILN_ASSIGN_OR_RETURN(
      const client::CompiledNetwork compiled,
      client::CompileNetwork(graph,
                             {.programs = {.target = target, .seed = seed}, .pack_constants = true},
                             /*archive=*/nullptr));
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("onnx_compiled"));
  const std::string path = folder.Join("network.kiln");
  KILN_RETURN_IF_ERROR(client::WriteCompiled(path, compiled).status());
  // The file is mapped, so it may be removed once it is open. Two threads are the fewest that share
  // loops.
  return runtime::Executor::Load(path, {.threads = 1, .pin = false});
}

StatusOr<std::vector<ir::NDArray>> Run(const graph::Graph& graph,
                                       std::span<const ir::NDArray> inputs, uint64_t seed) {
  KILN_ASSIGN_OR_RETURN(const auto executor, LoadCompiled(graph, seed));
  // Poisoned, so that elements which the run leaves out are seen.
  std::vector<ir::NDArray> outputs;
  for (graph::ValueId id : graph.outputs()) {
    const graph::TensorType& type = graph.value(id).type;
    outputs.emplace_back(type.type, type.shape);
    outputs.back().Poison();
  }
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const ir::NDArray& array : inputs) in.push_back(array.bytes().data());
  for (ir::NDArray& array : outputs) out.push_back(array.mutable_bytes().data());
  KILN_RETURN_IF_ERROR(executor->Run(in, out));
  return outputs;
}

}  // namespace

Evaluator CompiledEvaluator(uint64_t seed) {
  return [seed](const graph::Graph& graph, std::span<const ir::NDArray> inputs) {
    return Run(graph, inputs, seed);
  };
}

}  // namespace kiln
