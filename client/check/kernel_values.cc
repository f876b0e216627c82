#include "client/check/kernel_values.h"

#include <algorithm>
#include <limits>

#include "base/arrays/unpack.h"
#include "base/numbers/integers.h"
#include "compiler/dag/text.h"

namespace kiln::client {
namespace {

using ir::NDArray;
using runtime::Network;

ir::NDArray ArrayOf(const ir::Type type, const std::vector<int64_t>& shape,
                    std::span<const std::byte> bytes) {
  NDArray array(type, shape);
  std::ranges::copy(bytes, array.mutable_bytes().begin());
  return array;
}

// Returns whether the buffer holds an array of this type and shape, packed or not.
bool Holds(const Network& network, int32_t buffer, ir::Type type,
           const std::vector<int64_t>& shape) {
  const Packing* const packing = runtime::PackingOf(network, buffer);
  if (packing != nullptr && packing->shape != shape) return false;
  const int64_t elements = packing != nullptr ? PackedElements(*packing) : ProductOfCounts(shape);
  return runtime::RegionOf(network, buffer).bytes == MultiplyCounts(elements, type.bytes());
}

int32_t RootOf(const Network& network, int32_t buffer) {
  return runtime::RegionOf(network, buffer).root;
}

}  // namespace

StatusOr<dag::DagPtr> ComputationOf(const Network& network, size_t kernel) {
  const runtime::NetworkKernel& of = network.kernels[kernel];
  auto dag = dag::ParseDag(of.computation);
  if (!dag.ok()) {
    return DataLoss("the computation of kernel {} does not parse: {}", of.name,
                    Message(dag.status()));
  }
  const std::vector<dag::Tensor>& arguments = (*dag)->arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_input = (*dag)->op(arguments[i].op).is_placeholder();
    if (i < of.args.size() && of.args[i].written != is_input &&
        Holds(network, of.args[i].buffer, (*dag)->type(arguments[i]),
              (*dag)->shape(arguments[i]))) {
      continue;
    }
    return DataLoss("argument {} of kernel {} is not that of its computation", i, of.name);
  }
  return dag;
}

KernelValues::KernelValues(const runtime::NetworkFile& file, std::span<const NDArray> inputs)
    : file_(file), last_reader_(file.network().buffers.size(), 0) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = inputs[i].bytes();
    bytes_[network().inputs[i].buffer].assign(bytes.begin(), bytes.end());
  }
  for (size_t k = 0; k < network().kernels.size(); ++k) {
    for (const runtime::KernelArgument& arg : network().kernels[k].args)
      last_reader_[static_cast<size_t>(RootOf(network(), arg.buffer))] = k;
  }
  for (const runtime::NetworkTensor& output : network().outputs)
    last_reader_[static_cast<size_t>(RootOf(network(), output.buffer))] =
        std::numeric_limits<size_t>::max();
}

std::span<const std::byte> KernelValues::BytesOf(int32_t buffer) const {
  const runtime::Region region = runtime::RegionOf(network(), buffer);
  const runtime::NetworkBuffer& root = network().buffers[static_cast<size_t>(region.root)];
  const auto size = static_cast<size_t>(region.bytes);
  if (root.place == runtime::Place::kConstant)
    return file_.constants().subspan(static_cast<size_t>(root.offset + region.offset), size);
  return std::span(bytes_.at(region.root)).subspan(static_cast<size_t>(region.offset), size);
}

std::vector<NDArray> KernelValues::InputsOf(size_t kernel, const dag::Dag& dag) const {
  std::vector<NDArray> inputs;
  const auto& args = network().kernels[kernel].args;
  for (size_t i = 0; i < dag.arguments().size(); ++i) {
    const dag::Tensor& argument = dag.arguments()[i];
    if (!dag.op(argument.op).is_placeholder()) continue;
    const int32_t buffer = args[i].buffer;
    const Packing* const packing = runtime::PackingOf(network(), buffer);
    if (packing == nullptr) {
      inputs.push_back(ArrayOf(dag.type(argument), dag.shape(argument), BytesOf(buffer)));
      continue;
    }
    NDArray& array = inputs.emplace_back(dag.type(argument), dag.shape(argument));
    Unpack(*packing, array.type().bytes(), BytesOf(buffer), array.mutable_bytes());
  }
  return inputs;
}

void KernelValues::SetOutputsOf(size_t kernel, const dag::Dag& dag,
                                std::span<const NDArray> outputs) {
  const auto& args = network().kernels[kernel].args;
  size_t output = 0;
  for (size_t i = 0; i < dag.arguments().size(); ++i) {
    if (dag.op(dag.arguments()[i].op).is_placeholder()) continue;
    const std::span<const std::byte> made = outputs[output++].bytes();
    const runtime::Region region = runtime::RegionOf(network(), args[i].buffer);
    std::vector<std::byte>& bytes = bytes_[region.root];
    bytes.resize(static_cast<size_t>(network().buffers[static_cast<size_t>(region.root)].bytes));
    std::ranges::copy(made, bytes.begin() + region.offset);
  }
  std::erase_if(bytes_, [&](const auto& value) {
    return last_reader_[static_cast<size_t>(value.first)] <= kernel;
  });
}

std::vector<NDArray> KernelValues::Outputs() const {
  std::vector<NDArray> outputs;
  for (const runtime::NetworkTensor& tensor : network().outputs) {
    // The type was checked when the network was loaded.
    const ir::Type type = *ir::ParseType(tensor.dtype);
    outputs.push_back(ArrayOf(type, tensor.shape, BytesOf(tensor.buffer)));
  }
  return outputs;
}

}  // namespace kiln::client
