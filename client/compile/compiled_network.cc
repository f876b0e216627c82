#include "client/compile/compiled_network.h"

#include "runtime/network_file.h"

namespace kiln::client {

StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled) {
  return runtime::WriteNetwork(path, compiled.network,
                               [&](int32_t buffer) -> StatusOr<std::span<const std::byte>> {
                                 return compiled.constants.at(buffer)->bytes();
                               });
}

}  // namespace kiln::client
