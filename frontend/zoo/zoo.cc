#include "frontend/zoo/zoo.h"

#include <algorithm>
#include <utility>

#include "base/text/closest_names.h"
#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

std::vector<ZooNetwork> CollectNetworks() {
  std::vector<ZooNetwork> all;
  for (auto* family :
       {ResnetNetworks, MobilenetNetworks, SqueezenetNetworks, InceptionNetworks, VggNetworks,
        DensenetNetworks, BertNetworks, GptNetworks, VisionTransformerNetworks, MlpNetworks}) {
    for (ZooNetwork& network : family()) all.push_back(std::move(network));
  }
  return all;
}

StatusOr<const ZooNetwork*> FindNetwork(std::string_view name) {
  std::vector<std::string> names;
  for (const ZooNetwork& network : ZooNetworks()) {
    if (network.name == name) return &network;
    names.push_back(network.name);
  }
  return NotFound("there is no network '{}'{}; there are {}", name, DidYouMean(name, names),
                  fmt::join(names, ", "));
}

Status CheckOptions(const ZooOptions& options) {
  if (options.batch < 1) return InvalidArgument("batch of {}, expected at least 1", options.batch);
  if (options.sequence < 1)
    return InvalidArgument("sequence of {} tokens, expected at least 1", options.sequence);
  if (!options.dtype.is_float())
    return InvalidArgument("networks of {}, expected a float type", ir::TypeName(options.dtype));
  return OkStatus();
}

}  // namespace

const std::vector<ZooNetwork>& ZooNetworks() {
  static const std::vector<ZooNetwork> networks = CollectNetworks();
  return networks;
}

StatusOr<graph::Graph> MakeZooNetwork(std::string_view name, const ZooOptions& options) {
  KILN_ASSIGN_OR_RETURN(const ZooNetwork* network, FindNetwork(name));
  KILN_RETURN_IF_ERROR(CheckOptions(options));
  NetworkWriter writer(options);
  network->write(writer);
  StatusOr<graph::Graph> graph = writer.Build();
  if (!graph.ok()) return Annotate(graph.status(), name);
  return graph;
}

}  // namespace kiln::frontend
