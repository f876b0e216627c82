// Arrays of numpy's files as inputs and outputs of compiled networks, as commands name them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "runtime/network.h"

namespace kiln::client {

struct NamedFile {
  size_t tensor;  // its number
  std::string path;
};

// "x=in.npy", or "in.npy" where there is one tensor. `option`: for messages, "--input".
StatusOr<std::vector<NamedFile>> NamedFiles(const std::vector<std::string>& words,
                                            std::span<const runtime::NetworkTensor> tensors,
                                            std::string_view option);

// "float32[1, 1000]"
std::string TypeText(const runtime::NetworkTensor& tensor);

// Refuses an array of another type or shape than the tensor's.
StatusOr<ir::NDArray> ReadArray(const std::string& path, const runtime::NetworkTensor& tensor);
Status WriteArray(const std::string& path, const ir::NDArray& array);

// One array per input. Those that no file is named for: random ones of the seed (RandomInputs), or
// without a seed refused.
StatusOr<std::vector<ir::NDArray>> InputArrays(const std::vector<std::string>& words,
                                               const runtime::Network& network,
                                               std::optional<uint64_t> seed);

}  // namespace kiln::client
