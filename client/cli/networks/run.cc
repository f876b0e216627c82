// kiln run runs a compiled network on the user's data.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/network_flags.h"
#include "client/cli/networks/commands.h"
#include "client/cli/networks/network_files.h"
#include "client/cli/session_flags.h"
#include "client/compile/network_arrays.h"
#include "client/view/json.h"
#include "runtime/executor.h"

namespace kiln::client {
namespace {

struct RunFlags {
  // Path of a compiled network.
  std::string path;
  // "x=in.npy".
  std::vector<std::string> inputs, outputs;
  // True: inputs that are not given are random.
  bool random = false;
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
};

Status RunNetwork(const RunFlags& flags, bool json) {
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

}  // namespace

Run AddRun(CLI::App& run, SessionFlags& session) {
  const auto flags = std::make_shared<RunFlags>();
  run.description("a compiled network on arrays of numpy's files");
  run.add_option("file", flags->path, "a compiled network (*.kiln)")->required();
  run.add_option("--input", flags->inputs, "an input's array, NAME= where there are several")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  run.add_option("--output", flags->outputs, "where an output's array goes")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  run.add_flag("--random", flags->random, "random numbers for inputs that are not given");
  run.add_option("--seed", flags->seed, "of the random numbers")
      ->check(NotNegative())
      ->capture_default_str();
  AddExecutor(run, flags->threads, flags->gpu);
  session.AddJson(run);
  return Plain([flags](const Session& session) { return RunNetwork(*flags, session.json); });
}

}  // namespace kiln::client
