// kiln run runs a compiled network on the user's data.
#include <fmt/format.h>

#include "client/cli/commands.h"
#include "client/cli/network_files.h"
#include "client/compile/network_arrays.h"
#include "client/view/json.h"
#include "runtime/executor.h"

namespace kiln::client {

Status RunNetworkCommand(const RunFlags& flags, bool json) {
  runtime::ExecutorOptions options;
  options.threads = flags.threads;
  options.gpu = flags.gpu;
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(flags.path, options));
  KILN_ASSIGN_OR_RETURN(const auto files,
                        NamedFiles(flags.outputs, executor->outputs(), "--output"));
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> inputs,
                        InputArrays(flags.inputs, executor->network(),
                                    flags.random ? std::optional(flags.seed) : std::nullopt));
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> outputs, RunArrays(*executor, inputs));
  for (const NamedFile& file : files)
    KILN_RETURN_IF_ERROR(WriteArray(file.path, outputs[file.tensor]));
  for (const runtime::NetworkTensor& tensor : executor->outputs()) {
    if (json) {
      fmt::print("{{\"output\":{},\"type\":\"{}\"}}\n", JsonString(tensor.name), TypeText(tensor));
    } else {
      fmt::print("{}: {}\n", tensor.name, TypeText(tensor));
    }
  }
  return OkStatus();
}

}  // namespace kiln::client
