#include "client/cli/networks/network_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "client/compile/network_arrays.h"
#include "client/npy.h"

namespace kiln::client {

StatusOr<std::vector<NamedFile>> NamedFiles(const std::vector<std::string>& words,
                                            std::span<const runtime::NetworkTensor> tensors,
                                            std::string_view option) {
  std::vector<std::string> names;
  for (const runtime::NetworkTensor& tensor : tensors) names.push_back(tensor.name);
  std::vector<NamedFile> files;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    std::string name = word.substr(0, std::min(equals, word.size())), path;
    if (equals != std::string::npos) {
      path = word.substr(equals + 1);
    } else if (tensors.size() == 1) {
      path = std::exchange(name, names[0]);
    }
    const auto found = std::ranges::find(names, name);
    if (path.empty() || found == names.end()) {
      return InvalidArgument("{} {}: expected NAME=FILE.npy with one of the names {}", option, word,
                             fmt::join(names, ", "));
    }
    files.push_back({static_cast<size_t>(found - names.begin()), std::move(path)});
  }
  return files;
}

std::string TypeText(const runtime::NetworkTensor& tensor) {
  return fmt::format("{}[{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

StatusOr<ir::NDArray> ReadArray(const std::string& path, const runtime::NetworkTensor& tensor) {
  KILN_ASSIGN_OR_RETURN(const NpyArray file, ReadNpy(path));
  const std::string_view wanted = NpyDtype(tensor.dtype);
  const bool is_of_type = file.dtype == wanted || file.dtype == tensor.dtype;
  if (!is_of_type || file.shape != tensor.shape) {
    return InvalidArgument("{} has {}[{}], {} is {}{}", path, file.dtype,
                           fmt::join(file.shape, ", "), tensor.name, TypeText(tensor),
                           wanted == tensor.dtype ? "" : fmt::format(", as {}: its bits", wanted));
  }
  KILN_ASSIGN_OR_RETURN(const graph::TensorType type, TypeOf(tensor));
  ir::NDArray array(type.type, type.shape);
  std::ranges::copy(file.bytes, array.mutable_bytes().begin());
  return array;
}

Status WriteArray(const std::string& path, const ir::NDArray& array) {
  return WriteNpy(path, {.dtype = std::string(ir::TypeName(array.type())),
                         .shape = array.shape(),
                         .bytes = {array.bytes().begin(), array.bytes().end()}});
}

StatusOr<std::vector<ir::NDArray>> InputArrays(const std::vector<std::string>& words,
                                               const runtime::Network& network,
                                               std::optional<uint64_t> seed) {
  KILN_ASSIGN_OR_RETURN(const auto files, NamedFiles(words, network.inputs, "--input"));
  std::vector<ir::NDArray> arrays(network.inputs.size());
  std::vector<bool> given(network.inputs.size());
  for (const NamedFile& file : files) {
    KILN_ASSIGN_OR_RETURN(arrays[file.tensor], ReadArray(file.path, network.inputs[file.tensor]));
    given[file.tensor] = true;
  }
  const auto missing = static_cast<size_t>(std::ranges::find(given, false) - given.begin());
  if (missing == given.size()) return arrays;
  if (!seed.has_value()) {
    const runtime::NetworkTensor& tensor = network.inputs[missing];
    return InvalidArgument(
        "input {} ({}) is not given: --input {}=FILE.npy, or --random for random numbers",
        tensor.name, TypeText(tensor), tensor.name);
  }
  KILN_ASSIGN_OR_RETURN(std::vector<ir::NDArray> random, RandomInputs(network, *seed));
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!given[i]) arrays[i] = std::move(random[i]);
  }
  return arrays;
}

}  // namespace kiln::client
