#include "client/cli/network_flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>

namespace kiln::client {

void AddNetworkArguments(CLI::App& command, NetworkArguments& arguments) {
  constexpr char kGroup[] = "Networks";
  command
      .add_option("--batch", arguments.batch, "of network:NAME: number of images or texts at once")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--sequence", arguments.sequence, "of network:NAME: tokens of a text")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--input", arguments.inputs,
                  "of a model: the extents of an input that its file leaves open, for instance "
                  "x=1,3,224,224; any number of them")
      ->type_name("NAME=N,N,...")
      ->allow_extra_args(false)
      ->group(kGroup);
}

void AddLayoutRewrite(CLI::App& command, std::string& layout_rewrite) {
  command
      .add_option("--layout-rewrite", layout_rewrite,
                  "of a network: do kernels take weights as they are, or laid out before in the "
                  "order in which their loops read them [pretransformed for llvm, else none]")
      ->check(CLI::IsMember({kRewriteNone, kRewritePreTransformed}))
      ->group("Networks");
}

void AddExecutor(CLI::App& command, int& threads, int& gpu) {
  command.add_option("--threads", threads, "cores of a CPU; 0 = all")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command.add_option("--gpu", gpu, "which of several GPUs")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

}  // namespace kiln::client
