// Reads and writes numpy's files as inputs and outputs of compiled networks, as commands name them.
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
  // Number of the tensor.
  size_t tensor;
  std::string path;
};

// Parses "x=in.npy", or "in.npy" if there is only one tensor. `option` is for messages: "--input".
StatusOr<std::vector<NamedFile>> NamedFiles(const std::vector<std::string>& words,
                                            std::span<const runtime::NetworkTensor> tensors,
                                            std::string_view option);

// Returns "float32[1, 1000]".
std::string TypeText(const runtime::NetworkTensor& tensor);

// Refuses an array of another type or shape than the tensor's.
StatusOr<ir::NDArray> ReadArray(const std::string& path, const runtime::NetworkTensor& tensor);
Status WriteArray(const std::string& path, const ir::NDArray& array);

// Returns one array per input. Inputs without a file are random with the seed (RandomInputs);
// without a seed they are refused.
StatusOr<std::vector<ir::NDArray>> InputArrays(const std::vector<std::string>& words,
                                               const runtime::Network& network,
                                               std::optional<uint64_t> seed);

}  // namespace kiln::client
