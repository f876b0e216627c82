// kiln run: a compiled network on data of the user's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/units.h"
#include "client/cli/commands.h"
#include "client/npy.h"
#include "compiler/ir/ndarray.h"
#include "runtime/executor.h"

namespace kiln::client {
namespace {

// "x=in.npy", or "in.npy" for the only one.
struct NamedFile {
  std::string tensor, path;
};

StatusOr<std::vector<NamedFile>> NamedFiles(const std::vector<std::string>& words,
                                            std::span<const runtime::NetworkTensor> tensors,
                                            std::string_view what) {
  std::vector<std::string> names;
  for (const runtime::NetworkTensor& tensor : tensors) names.push_back(tensor.name);
  std::vector<NamedFile> files;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    NamedFile file{.tensor = word.substr(0, std::min(equals, word.size())), .path = {}};
    if (equals != std::string::npos) {
      file.path = word.substr(equals + 1);
    } else if (tensors.size() == 1) {
      file = {.tensor = names[0], .path = word};
    }
    if (file.path.empty() || std::ranges::find(names, file.tensor) == names.end()) {
      return InvalidArgument("--{} {}: expected NAME=FILE.npy with one of the names {}", what, word,
                             fmt::join(names, ", "));
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::string TypeText(const runtime::NetworkTensor& tensor) {
  return fmt::format("{}[{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

int64_t BytesOf(const runtime::Network& network, const runtime::NetworkTensor& tensor) {
  return network.buffers[static_cast<size_t>(tensor.buffer)].bytes;
}

StatusOr<std::vector<NpyArray>> Inputs(const RunFlags& flags, const runtime::Executor& executor) {
  KILN_ASSIGN_OR_RETURN(const auto files, NamedFiles(flags.inputs, executor.inputs(), "input"));
  std::map<std::string, std::string> path_of;
  for (const NamedFile& file : files) path_of[file.tensor] = file.path;
  std::vector<NpyArray> arrays;
  for (const runtime::NetworkTensor& tensor : executor.inputs()) {
    if (path_of.contains(tensor.name)) {
      KILN_ASSIGN_OR_RETURN(NpyArray array, ReadNpy(path_of.at(tensor.name)));
      if (array.dtype != tensor.dtype || array.shape != tensor.shape) {
        return InvalidArgument("{} has {}[{}], input {} is {}", path_of.at(tensor.name),
                               array.dtype, fmt::join(array.shape, ", "), tensor.name,
                               TypeText(tensor));
      }
      arrays.push_back(std::move(array));
      continue;
    }
    if (!flags.random) {
      return InvalidArgument(
          "input {} ({}) is not given: --input {}=FILE.npy, or --random for random numbers",
          tensor.name, TypeText(tensor), tensor.name);
    }
    KILN_ASSIGN_OR_RETURN(const ir::Type type, ir::ParseType(tensor.dtype));
    ir::NDArray random(type, tensor.shape);
    random.FillRandom(flags.seed + arrays.size());
    arrays.push_back({.dtype = tensor.dtype,
                      .shape = tensor.shape,
                      .bytes = {random.bytes().begin(), random.bytes().end()}});
  }
  return arrays;
}

}  // namespace

Status RunNetworkCommand(const RunFlags& flags, bool json) {
  runtime::ExecutorOptions options;
  options.threads = flags.threads;
  options.gpu = flags.gpu;
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(flags.path, options));
  KILN_ASSIGN_OR_RETURN(const auto files, NamedFiles(flags.outputs, executor->outputs(), "output"));
  KILN_ASSIGN_OR_RETURN(const std::vector<NpyArray> inputs, Inputs(flags, *executor));
  std::vector<NpyArray> outputs;
  for (const runtime::NetworkTensor& tensor : executor->outputs()) {
    outputs.push_back({.dtype = tensor.dtype, .shape = tensor.shape, .bytes = {}});
    outputs.back().bytes.resize(static_cast<size_t>(BytesOf(executor->network(), tensor)));
  }
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const NpyArray& array : inputs) in.push_back(array.bytes.data());
  for (NpyArray& array : outputs) out.push_back(array.bytes.data());
  KILN_RETURN_IF_ERROR(executor->Run(in, out));
  for (const NamedFile& file : files) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (executor->outputs()[i].name == file.tensor)
        KILN_RETURN_IF_ERROR(WriteNpy(file.path, outputs[i]));
    }
  }
  for (const runtime::NetworkTensor& tensor : executor->outputs()) {
    if (json) {
      fmt::print("{{\"output\":\"{}\",\"type\":\"{}\"}}\n", tensor.name, TypeText(tensor));
    } else {
      fmt::print("{}: {}\n", tensor.name, TypeText(tensor));
    }
  }
  return OkStatus();
}

}  // namespace kiln::client
