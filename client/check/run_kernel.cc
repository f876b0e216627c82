#include "client/check/run_kernel.h"

#include <fmt/format.h>

#include "base/arrays/packing.h"
#include "base/file/file.h"
#include "client/compile/network_arrays.h"
#include "runtime/place_buffers.h"

namespace kiln::client {
namespace {

using runtime::Network;
using runtime::Place;

// Makes a network of the kernel. The caller provides the arguments of the DAG; the remaining
// arguments are the kernel's own.
StatusOr<Network> NetworkOf(const Network& whole, size_t kernel, const dag::Dag& dag) {
  Network network;
  network.target = whole.target;
  runtime::NetworkKernel own = whole.kernels[kernel];
  const std::vector<runtime::KernelArgument>& whole_args = whole.kernels[kernel].args;
  network.binaries = {whole.binaries[static_cast<size_t>(own.binary)]};
  own.binary = 0;
  const std::vector<dag::Tensor>& arguments = dag.arguments();
  for (size_t i = 0; i < own.args.size(); ++i) {
    runtime::NetworkBuffer buffer = whole.buffers[static_cast<size_t>(own.args[i].buffer)];
    buffer = {
        .place = Place::kArena, .bytes = buffer.bytes, .alignment_bytes = buffer.alignment_bytes};
    const auto number = static_cast<int32_t>(i);
    if (i < arguments.size()) {
      runtime::NetworkTensor tensor{.name = fmt::format("{}", i),
                                    .dtype = std::string(ir::TypeName(dag.type(arguments[i]))),
                                    .shape = dag.shape(arguments[i]),
                                    .buffer = number};
      if (const Packing* packing = runtime::PackingOf(whole, whole_args[i].buffer))
        tensor.shape = PackedShape(*packing);
      buffer.place = own.args[i].written ? Place::kOutput : Place::kInput;
      (own.args[i].written ? network.outputs : network.inputs).push_back(std::move(tensor));
    }
    network.buffers.push_back(buffer);
    own.args[i].buffer = number;
  }
  network.kernels.push_back(std::move(own));
  KILN_RETURN_IF_ERROR(runtime::PlaceBuffers(network).status());
  return network;
}

// Returns the inputs of the DAG's placeholders in the kernel's layout.
std::vector<ir::NDArray> AsTaken(const Network& whole, size_t kernel, const dag::Dag& dag,
                                 std::span<const ir::NDArray> inputs) {
  std::vector<ir::NDArray> taken;
  for (size_t i = 0; i < dag.arguments().size(); ++i) {
    if (!dag.op(dag.arguments()[i].op).is_placeholder()) continue;
    const ir::NDArray& plain = inputs[taken.size()];
    const Packing* const packing = runtime::PackingOf(whole, whole.kernels[kernel].args[i].buffer);
    if (packing == nullptr) {
      taken.push_back(plain);
      continue;
    }
    ir::NDArray& packed = taken.emplace_back(plain.type(), PackedShape(*packing));
    Pack(*packing, plain.type().bytes(), plain.bytes(), packed.mutable_bytes());
  }
  return taken;
}

}  // namespace

StatusOr<std::vector<ir::NDArray>> RunKernel(const runtime::NetworkFile& file, size_t kernel,
                                             const dag::Dag& dag,
                                             std::span<const ir::NDArray> inputs,
                                             const runtime::ExecutorOptions& options) {
  KILN_ASSIGN_OR_RETURN(const Network network, NetworkOf(file.network(), kernel, dag));
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-kernel"));
  const std::string path = folder.Join("kernel.kiln");
  const auto no_constants = [](int32_t) -> StatusOr<std::span<const std::byte>> {
    return Internal("a kernel by itself has no constants");
  };
  KILN_RETURN_IF_ERROR(runtime::WriteNetwork(path, network, no_constants).status());
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(path, options));
  return RunArrays(*executor, AsTaken(file.network(), kernel, dag, inputs));
}

}  // namespace kiln::client
