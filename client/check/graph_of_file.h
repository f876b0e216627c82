// Reads the graph of a compiled network with the constants of its file.
#pragma once

#include <memory>

#include "base/status.h"
#include "graph/graph.h"
#include "runtime/network_file.h"

namespace kiln::client {

// The graph's constants are views of the file; packed constants are unpacked copies. DataLoss: a
// constant of the file differs from the one that the graph's text names; the message says which
// one.
StatusOr<graph::Graph> GraphOfFile(const std::shared_ptr<const runtime::NetworkFile>& file);

}  // namespace kiln::client
