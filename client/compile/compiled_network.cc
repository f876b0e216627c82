#include "client/compile/compiled_network.h"

#include <span>
#include <utility>

#include "runtime/network_file.h"

namespace kiln::client {
namespace {

// Returns the constants in the element orders of the network. `compiled` outlives the function.
runtime::ConstantSource ConstantsOf(const CompiledNetwork& compiled) {
  std::map<int32_t, const Packing*> packing_of;
  for (const runtime::NetworkTensor& constant : compiled.network.constants)
    packing_of[constant.buffer] = constant.packing ? &*constant.packing : nullptr;
  return [&compiled, packing_of = std::move(packing_of), packed = std::vector<std::byte>()](
             int32_t buffer) mutable -> StatusOr<std::span<const std::byte>> {
    const graph::Constant& constant = *compiled.constants.at(buffer);
    const Packing* const packing = packing_of.at(buffer);
    if (packing == nullptr) return constant.bytes();
    const int64_t element_bytes = constant.type().type.bytes();
    packed.resize(static_cast<size_t>(PackedElements(*packing) * element_bytes));
    Pack(*packing, element_bytes, constant.bytes(), packed);
    return packed;
  };
}

}  // namespace

StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled) {
  return runtime::WriteNetwork(path, compiled.network, ConstantsOf(compiled));
}

Status AppendCompiled(AtomicFile& file, const CompiledNetwork& compiled) {
  return runtime::AppendNetwork(file, compiled.network, ConstantsOf(compiled));
}

}  // namespace kiln::client
