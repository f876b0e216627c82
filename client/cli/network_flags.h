// Flags of networks: their source, and what runs a compiled one.
#pragma once

#include <string>

#include "client/network.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Adds the arguments of a network except for its name and its type.
void AddNetworkArguments(CLI::App& command, NetworkArguments& arguments);

// Adds the order in which a network's kernels take its weights.
void AddLayoutRewrite(CLI::App& command, std::string& layout_rewrite);

// Adds the threads or the GPU that run a compiled network.
void AddExecutor(CLI::App& command, int& threads, int& gpu);

}  // namespace kiln::client
