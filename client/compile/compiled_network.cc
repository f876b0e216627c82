#include "client/compile/compiled_network.h"

#include "runtime/network_file.h"

namespace kiln::client {

StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled) {
  std::map<int32_t, const Packing*> packing_of;
  for (const runtime::NetworkTensor& constant : compiled.network.constants)
    packing_of[constant.buffer] = constant.packing ? &*constant.packing : nullptr;
  std::vector<std::byte> packed;
  return runtime::WriteNetwork(
      path, compiled.network, [&](int32_t buffer) -> StatusOr<std::span<const std::byte>> {
        const graph::Constant& constant = *compiled.constants.at(buffer);
        const Packing* const packing = packing_of.at(buffer);
        if (packing == nullptr) return constant.bytes();
        const int64_t element_bytes = constant.type().type.bytes();
        packed.resize(static_cast<size_t>(PackedElements(*packing) * element_bytes));
        Pack(*packing, element_bytes, constant.bytes(), packed);
        return packed;
      });
}

}  // namespace kiln::client
