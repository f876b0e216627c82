// Networks by name, as graphs, for tuning and measuring without a user's file. Their weights are
// random numbers of a seed (graph/constant.h), so that a graph costs milliseconds, and no memory
// until it runs.
//
// Pure functions; any thread may call them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/type.h"
#include "graph/graph.h"

namespace kiln::frontend {

struct ZooOptions {
  int64_t batch = 1;
  // True: images are [batch, spatial..., channels] and weights [kernel..., in / groups, out].
  // False: they are [batch, channels, spatial...] and [out, in / groups, kernel...].
  bool channels_last = true;
  // Type of all floats.
  ir::Type dtype = ir::kFloat32;
  uint64_t seed = 1;
  // Number of tokens, for language models.
  int64_t sequence = 128;
};

class NetworkWriter;

struct ZooNetwork {
  std::string name;
  // "18 layers, 224x224 images, 1000 classes".
  std::string doc;
  std::function<void(NetworkWriter&)> write;
};

// Returns the networks in the order for readers; docs/zoo.md describes them. Immutable after the
// first call.
const std::vector<ZooNetwork>& ZooNetworks();

// Refuses an unknown name (NotFound, with the closest names and all names), a type that is no
// float, no batch or tokens, and more tokens than a language model has positions.
StatusOr<graph::Graph> MakeZooNetwork(std::string_view name, const ZooOptions& options);

}  // namespace kiln::frontend
