// The graph of a compiled network with the constants of its file.
#pragma once

#include <memory>

#include "base/status.h"
#include "graph/graph.h"
#include "runtime/network_file.h"

namespace kiln::client {

// Its constants are views of the file, but those that are packed there: copies. DataLoss: a constant
// of the file is not the one that the text names; which one.
StatusOr<graph::Graph> GraphOfFile(const std::shared_ptr<const runtime::NetworkFile>& file);

}  // namespace kiln::client
