#include "tests/runtime/made_network.h"

#include "base/file/file.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"
#include "runtime/cpu_features.h"
#include "runtime/network_file.h"
#include "runtime/place_buffers.h"

namespace kiln {
namespace {

using ir::NDArray;
using runtime::Place;

template <typename T>
T Checked(StatusOr<T> result, std::string_view what) {
  KILN_CHECK(result.ok(), "{}: {}", what, Message(result.status()));
  return *std::move(result);
}

codegen::Compiled Compile(const dag::DagPtr& dag, std::string_view text) {
  const ir::Program program = Checked(lower::Lower(schedule::State(dag), {}), text);
  const target::Target target = Checked(codegen::ResolveCpu({}), text);
  return Checked(codegen::CompileLlvm(program, target), text);
}

}  // namespace

MadeNetwork::MadeNetwork() {
  network_.target = {.kind = "cpu",
                     .arch = std::string(runtime::HostArch()),
                     .device = runtime::HostCpuName(),
                     .features = {},
                     .text = "llvm -mcpu=native"};
  for (std::string_view feature : runtime::KnownCpuFeatures()) {
    if (runtime::HasCpuFeature(feature)) network_.target.features.emplace_back(feature);
  }
}

int32_t MadeNetwork::AddBuffer(Place place, ir::Type type, std::vector<int64_t> shape) {
  values_.emplace_back(type, std::move(shape));
  network_.buffers.push_back(
      {.place = place, .bytes = static_cast<int64_t>(values_.back().bytes().size())});
  return static_cast<int32_t>(values_.size()) - 1;
}

int32_t MadeNetwork::Input(const std::string& name, std::vector<int64_t> shape, ir::Type type) {
  const int32_t buffer = AddBuffer(Place::kInput, type, shape);
  network_.inputs.push_back({name, std::string(ir::TypeName(type)), std::move(shape), buffer});
  return buffer;
}

int32_t MadeNetwork::Constant(const NDArray& array) {
  const int32_t buffer = AddBuffer(Place::kConstant, array.type(), array.shape());
  values_.back() = array;
  return buffer;
}

std::vector<int32_t> MadeNetwork::Call(std::string_view text, const std::vector<int32_t>& inputs) {
  const dag::DagPtr dag = Checked(dag::ParseDag(text), text);
  const codegen::Compiled compiled = Compile(dag, text);
  runtime::NetworkKernel kernel;
  kernel.name = fmt::format("kernel{}", network_.kernels.size());
  kernel.binary = static_cast<int32_t>(network_.binaries.size());
  binaries_.push_back(std::make_unique<std::string>(compiled.binary));
  network_.binaries.push_back(*binaries_.back());
  Called called{.dag = dag, .inputs = inputs, .outputs = {}};
  size_t next_input = 0;
  for (const codegen::Argument& arg : compiled.args) {
    if (arg.scope == ir::Scope::kInput) {
      kernel.args.push_back({inputs.at(next_input++), false});
      continue;
    }
    kernel.args.push_back({AddBuffer(Place::kArena, arg.type, arg.shape), true});
    if (arg.scope == ir::Scope::kOutput) called.outputs.push_back(kernel.args.back().buffer);
  }
  KILN_CHECK(next_input == inputs.size(), "{} inputs for\n{}", inputs.size(), text);
  kernel.launches = {{.symbol = compiled.launches[0].symbol, .args = compiled.launches[0].args}};
  network_.kernels.push_back(std::move(kernel));
  calls_.push_back(called);
  return called.outputs;
}

int32_t MadeNetwork::View(int32_t buffer, std::vector<int64_t> shape) {
  const int32_t view =
      AddBuffer(Place::kView, values_[static_cast<size_t>(buffer)].type(), std::move(shape));
  network_.buffers.back().viewed = buffer;
  return view;
}

void MadeNetwork::Output(const std::string& name, int32_t buffer) {
  const auto number = static_cast<size_t>(buffer);
  if (network_.buffers[number].place == Place::kArena) {
    network_.buffers[number].place = Place::kOutput;
  }
  network_.outputs.push_back(
      {name, std::string(ir::TypeName(values_[number].type())), values_[number].shape(), buffer});
}

Status MadeNetwork::Write(const std::string& path) {
  KILN_RETURN_IF_ERROR(runtime::PlaceBuffers(network_).status());
  return runtime::WriteNetwork(path, network_, Constants()).status();
}

Status MadeNetwork::Append(AtomicFile& file) {
  KILN_RETURN_IF_ERROR(runtime::PlaceBuffers(network_).status());
  return runtime::AppendNetwork(file, network_, Constants());
}

runtime::ConstantSource MadeNetwork::Constants() const {
  return [this](int32_t buffer) -> StatusOr<std::span<const std::byte>> {
    return values_[static_cast<size_t>(buffer)].bytes();
  };
}

StatusOr<std::shared_ptr<const runtime::NetworkFile>> MadeNetwork::File() {
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln_network"));
  KILN_RETURN_IF_ERROR(Write(folder.Join("net.kiln")));
  // The file is mapped, so it outlives its name.
  return runtime::NetworkFile::Open(folder.Join("net.kiln"));
}

std::vector<NDArray> MadeNetwork::RandomInputs(uint64_t seed) const {
  std::vector<NDArray> inputs;
  for (const runtime::NetworkTensor& input : network_.inputs) {
    inputs.push_back(values_[static_cast<size_t>(input.buffer)]);
    inputs.back().FillRandom(seed + inputs.size());
  }
  return inputs;
}

std::vector<NDArray> MadeNetwork::Reference(const std::vector<NDArray>& inputs) const {
  std::vector<NDArray> values = values_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[static_cast<size_t>(network_.inputs[i].buffer)] = inputs[i];
  }
  // The elements of a view are those of its buffer at the moment of reading.
  const auto value = [&](int32_t buffer) {
    NDArray& array = values[static_cast<size_t>(buffer)];
    const runtime::NetworkBuffer& placed = network_.buffers[static_cast<size_t>(buffer)];
    if (placed.place == Place::kView) {
      const auto bytes = values[static_cast<size_t>(placed.viewed)].bytes();
      std::copy(bytes.begin(), bytes.end(), array.mutable_bytes().begin());
    }
    return array;
  };
  for (const Called& call : calls_) {
    std::vector<NDArray> arguments;
    for (int32_t input : call.inputs) arguments.push_back(value(input));
    std::vector<NDArray> results = Checked(dag::Evaluate(*call.dag, arguments), "evaluate");
    for (size_t i = 0; i < results.size(); ++i) {
      values[static_cast<size_t>(call.outputs[i])] = std::move(results[i]);
    }
  }
  std::vector<NDArray> outputs;
  for (const runtime::NetworkTensor& output : network_.outputs) {
    outputs.push_back(value(output.buffer));
  }
  return outputs;
}

MadeNetwork MakeSmallPerceptron() {
  MadeNetwork made;
  const int32_t x = made.Input("x", {8, 16});
  NDArray weights(ir::kFloat32, {16, 8});
  weights.FillRandom(1);
  const int32_t hidden = made.Call(
      "input A: float32[8, 16]\n"
      "input B: float32[16, 8]\n"
      "C[i: 8, j: 8] = sum(k: 16) A[i, k] * B[k, j]\n"
      "D[i: 8, j: 8] = max(C[i, j], 0.0)\n",
      {x, made.Constant(weights)})[0];
  const std::string_view twice = "input A: float32[8, 8]\nB[i: 8, j: 8] = A[i, j] * 2.0\n";
  const std::string_view flat_less_one = "input A: float32[64]\nB[i: 64] = A[i] - 1.0\n";
  const std::string_view add =
      "input A: float32[8, 8]\ninput B: float32[8, 8]\nC[i: 8, j: 8] = A[i, j] + B[i, j]\n";
  const int32_t left = made.Call(twice, {hidden})[0];
  const int32_t right = made.Call(flat_less_one, {made.View(hidden, {64})})[0];
  made.Output("y", made.Call(add, {left, made.View(right, {8, 8})})[0]);
  made.Output("hidden", hidden);
  return made;
}

StatusOr<std::vector<NDArray>> RunNetwork(runtime::Executor& executor,
                                          const std::vector<NDArray>& inputs,
                                          const std::vector<NDArray>& like) {
  std::vector<NDArray> outputs = like;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const NDArray& input : inputs) in.push_back(input.bytes().data());
  for (NDArray& output : outputs) {
    output.Poison();
    out.push_back(output.mutable_bytes().data());
  }
  KILN_RETURN_IF_ERROR(executor.Run(in, out));
  return outputs;
}

}  // namespace kiln
