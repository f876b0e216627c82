#include "client/compile/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/dag/argument_bytes.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

runtime::NetworkTensor TensorOf(const std::string& name, const graph::TensorType& type,
                                int32_t buffer) {
  return {.name = name,
          .dtype = std::string(ir::TypeName(type.type)),
          .shape = type.shape,
          .buffer = buffer};
}

runtime::NetworkLaunch LaunchOf(const codegen::Launch& from) {
  runtime::NetworkLaunch launch{.symbol = from.symbol,
                                .dynamic_shared_bytes = from.dynamic_shared_bytes,
                                .cluster = from.cluster > 1 ? from.cluster : 0,
                                .args = from.args,
                                .tensor_maps = from.tensor_maps,
                                .waits_for_previous = from.waits_for_previous};
  for (size_t d = 0; d < from.grid.size(); ++d) launch.grid[d] = from.grid[d];
  for (size_t d = 0; d < from.block.size(); ++d) launch.block[d] = from.block[d];
  return launch;
}

runtime::KernelSource SourceOf(const search::Choice& choice) {
  switch (choice.source) {
    case search::ChoiceSource::kSet:
    case search::ChoiceSource::kFixed:
    case search::ChoiceSource::kRecord:
      return runtime::KernelSource::kTuned;
    case search::ChoiceSource::kCompatible:
      return runtime::KernelSource::kReused;
    case search::ChoiceSource::kSample:
    case search::ChoiceSource::kNone:
      break;
  }
  return runtime::KernelSource::kUntuned;
}

bool TakesPacked(const codegen::Compiled& compiled) {
  return std::ranges::any_of(compiled.args, [](const codegen::Argument& argument) {
    return argument.packing.has_value();
  });
}

}  // namespace

Assembly::Assembly(const runtime::NetworkTarget& target) {
  network().target = target;
  network().options_text = fmt::format("target {}\n", target.text);
}

int32_t Assembly::AddBuffer(runtime::NetworkBuffer buffer) {
  network().buffers.push_back(buffer);
  return static_cast<int32_t>(network().buffers.size()) - 1;
}

Assembly::Place Assembly::AddInput(const std::string& name, const graph::TensorType& type) {
  const int32_t buffer = AddBuffer({.place = runtime::Place::kInput, .bytes = type.bytes()});
  network().inputs.push_back(TensorOf(name, type, buffer));
  return {.buffer = buffer};
}

Assembly::Place Assembly::AddConstant(const std::string& name, graph::ConstantPtr constant) {
  constants_.push_back({.name = name, .elements = std::move(constant)});
  return {.constant = static_cast<int32_t>(constants_.size()) - 1};
}

int32_t Assembly::BufferOf(Place place, const std::optional<Packing>& packing) {
  if (place.constant >= 0)
    return BufferOf(constants_[static_cast<size_t>(place.constant)], packing);
  KILN_CHECK(!packing, "buffer {} is packed, and is no constant", place.buffer);
  return place.buffer;
}

int32_t Assembly::BufferOf(Constant& constant, const std::optional<Packing>& packing) {
  for (const auto& [held, buffer] : constant.buffers) {
    if (held == packing) return buffer;
  }
  const graph::TensorType& type = constant.elements->type();
  const int64_t bytes = packing ? PackedElements(*packing) * type.type.bytes() : type.bytes();
  const int32_t buffer = AddBuffer({.place = runtime::Place::kConstant, .bytes = bytes});
  network().constants.push_back(TensorOf(constant.name, type, buffer));
  network().constants.back().packing = packing;
  made_.constants[buffer] = constant.elements;
  constant.buffers.emplace_back(packing, buffer);
  return buffer;
}

Assembly::Place Assembly::AddView(Place of, int64_t bytes) {
  const int32_t buffer = BufferOf(of);
  const runtime::NetworkBuffer& lies_in = network().buffers[static_cast<size_t>(buffer)];
  return {.buffer = AddBuffer(
              {.place = runtime::Place::kView,
               .bytes = bytes,
               .viewed = lies_in.place == runtime::Place::kView ? lies_in.viewed : buffer})};
}

Assembly::Place Assembly::AddMade(int64_t bytes, bool leaves) {
  return {.buffer = AddBuffer({.place = leaves ? runtime::Place::kOutput : runtime::Place::kArena,
                               .bytes = bytes})};
}

void Assembly::AddOutput(const std::string& name, const graph::TensorType& type, Place place) {
  network().outputs.push_back(TensorOf(name, type, BufferOf(place)));
}

int32_t Assembly::BinaryNumber(const codegen::Compiled& compiled) {
  const auto number = static_cast<int32_t>(made_.binaries.size());
  if (!compiled.is_stateful) {
    const auto [found, is_new] = binary_of_.emplace(compiled.binary, number);
    if (!is_new) return found->second;
  }
  made_.binaries.push_back(compiled.binary);
  return number;
}

// Inputs and outputs of the program are the DAG's, in its order; workspaces are the program's own.
void Assembly::AddArguments(const codegen::Compiled& compiled, std::span<const Place> inputs,
                            std::span<const Place> outputs, runtime::NetworkKernel& kernel) {
  size_t input = 0, output = 0;
  for (const codegen::Argument& argument : compiled.args) {
    Place place;
    if (argument.scope == ir::Scope::kInput) place = inputs[input++];
    if (argument.scope == ir::Scope::kOutput) place = outputs[output++];
    if (!place.exists()) place = AddMade(argument.bytes(), /*leaves=*/false);
    const int32_t buffer = BufferOf(place, argument.packing);
    int64_t& alignment = network().buffers[static_cast<size_t>(buffer)].alignment_bytes;
    alignment = std::max<int64_t>(alignment, argument.alignment_bytes);
    kernel.args.push_back({.buffer = buffer, .written = argument.scope != ir::Scope::kInput});
  }
}

void Assembly::AddKernel(const std::string& name, const graph::NetworkTask& task,
                         const TaskProgram& program, std::span<const Place> inputs,
                         std::span<const Place> outputs) {
  const dag::Dag& dag = *program.dag;
  runtime::NetworkKernel kernel{.name = name,
                                .binary = BinaryNumber(program.compiled),
                                .args = {},
                                .launches = {},
                                .workload_key = dag::WorkloadKey(dag),
                                .computation = dag::PrintDag(dag),
                                .record = program.choice.record,
                                .source = SourceOf(program.choice),
                                .expected_s = program.choice.cost_s,
                                .flops = std::max(0.0, dag.flop_count()),
                                .bytes = dag::ArgumentBytes(dag)};
  AddArguments(program.compiled, inputs, outputs, kernel);
  for (const codegen::Launch& launch : program.compiled.launches)
    kernel.launches.push_back(LaunchOf(launch));
  made_.coverage.push_back({.name = kernel.name,
                            .description = task.description,
                            .is_simple = task.is_simple,
                            .source = kernel.source,
                            .record = kernel.record,
                            .expected_s = kernel.expected_s,
                            .reused_from = program.choice.reused_from,
                            .remark = program.remark,
                            .takes_packed = TakesPacked(program.compiled)});
  network().kernels.push_back(std::move(kernel));
}

StatusOr<CompiledNetwork> Assembly::Finish(std::string graph_text) {
  network().graph_text = std::move(graph_text);
  for (const std::string& binary : made_.binaries) network().binaries.push_back(binary);
  KILN_ASSIGN_OR_RETURN(made_.memory, runtime::PlaceBuffers(network()));
  return std::move(made_);
}

StatusOr<CompiledNetwork> AssembleOne(const std::string& name, const graph::NetworkTask& task,
                                      const TaskProgram& program,
                                      const runtime::NetworkTarget& target) {
  Assembly assembly(target);
  const dag::Dag& dag = *program.dag;
  const std::vector<std::string> names = dag::DisplayNames(dag);
  std::vector<Assembly::Place> inputs, outputs;
  std::vector<std::pair<std::string, graph::TensorType>> made;
  for (const dag::Tensor& argument : dag.arguments()) {
    const graph::TensorType type{dag.type(argument), dag.shape(argument)};
    const std::string tensor = dag::TensorName(dag, names, argument);
    if (dag.op(argument.op).is_placeholder()) {
      inputs.push_back(assembly.AddInput(tensor, type));
    } else {
      outputs.push_back(assembly.AddMade(type.bytes(), /*leaves=*/true));
      made.emplace_back(tensor, type);
    }
  }
  assembly.AddKernel(name, task, program, inputs, outputs);
  for (size_t i = 0; i < made.size(); ++i)
    assembly.AddOutput(made[i].first, made[i].second, outputs[i]);
  return assembly.Finish(/*graph_text=*/"");
}

}  // namespace kiln::client
