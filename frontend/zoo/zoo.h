// Networks by name, as graphs: what there is to tune and to measure without a file of somebody's
// network. Their weights are random numbers of a seed (graph/constant.h), so that a graph costs
// milliseconds and no memory until it runs.
//
// Pure functions; any thread.
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
  // Images [batch, spatial..., channels] and weights [kernel..., in / groups, out]; else
  // [batch, channels, spatial...] and [out, in / groups, kernel...].
  bool channels_last = true;
  ir::Type dtype = ir::kFloat32;  // of all floats
  uint64_t seed = 1;
  int64_t sequence = 128;  // tokens, of language models
};

class NetworkWriter;

struct ZooNetwork {
  std::string name;
  std::string doc;  // "18 layers, 224x224 images, 1000 classes"
  std::function<void(NetworkWriter&)> write;
};

// In the order in which people read them; docs/zoo.md says what they are. Immutable after the first
// call.
const std::vector<ZooNetwork>& ZooNetworks();

// Refuses a name that there is not (NotFound, with the closest ones and all), a type that is no
// float, no batch or tokens, more tokens than a language model has positions.
StatusOr<graph::Graph> MakeZooNetwork(std::string_view name, const ZooOptions& options);

}  // namespace kiln::frontend
