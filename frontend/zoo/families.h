// The networks of each family; the registry (zoo.cc) joins them.
#pragma once

#include <vector>

#include "frontend/zoo/zoo.h"

namespace kiln::frontend {

std::vector<ZooNetwork> ResnetNetworks();
std::vector<ZooNetwork> MobilenetNetworks();
std::vector<ZooNetwork> SqueezenetNetworks();
std::vector<ZooNetwork> InceptionNetworks();
std::vector<ZooNetwork> VggNetworks();
std::vector<ZooNetwork> DensenetNetworks();
std::vector<ZooNetwork> BertNetworks();
std::vector<ZooNetwork> GptNetworks();
std::vector<ZooNetwork> VisionTransformerNetworks();
std::vector<ZooNetwork> MlpNetworks();

}  // namespace kiln::frontend
