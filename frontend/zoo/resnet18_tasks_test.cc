// The tasks of resnet-18 equal those that TVM's auto_scheduler extracts from its own network
// (relay.testing.resnet, NHWC, batch 1, CUDA), as the tutorial on tuning networks prints them.
#include <fmt/format.h>

#include <map>
#include <string>

#include "base/status_testing.h"
#include "frontend/zoo/zoo.h"
#include "graph/passes/passes.h"
#include "graph/tasks.h"

namespace kiln::frontend {
namespace {

struct Known {
  std::string key;
  int weight;
  double flops;
};

const Known kTasks[] = {
    {R"(["2d10de6646307f0e3e5cf4b31c20e69b", [1, 56, 56, 64], [1, 1, 64, 64], [1, 56, 56, 64]])", 1,
     25690112},
    {R"(["f19692ed81d032b1697c08adee62f9a5", [1, 28, 28, 128], [4, 4, 128, 128], [1, 28, 28, 128], [1, 1, 1, 128], [1, 28, 28, 128]])",
     1, 127145984},
    {R"(["0fad1b42d0d33418e0a8d15d3bbad3c9", [1, 56, 56, 64], [1, 1, 64, 128], [1, 28, 28, 128]])",
     1, 12845056},
    {R"(["1097323f3970e5c881ad3a0028ca79cb", [1, 14, 14, 256], [4, 4, 256, 256], [1, 1, 1, 256], [1, 14, 14, 256]])",
     1, 114903040},
    {R"(["0bcf718c0e6566bcd6c3b1437a3b6291", [1, 28, 28, 128], [4, 4, 128, 128], [1, 1, 1, 128], [1, 28, 28, 128]])",
     1, 127045632},
    {R"(["d78e8eb6021c4cdda0ad7775d10f751a", [1, 7, 7, 512], [4, 4, 512, 512], [1, 7, 7, 512], [1, 7, 7, 512]])",
     1, 142107136},
    {R"(["7c2a4f1f432f81c44985590780dfb52d", [1, 56, 56, 64], [6, 6, 64, 64], [1, 1, 1, 64], [1, 56, 56, 64]])",
     2, 128651264},
    {R"(["a3df19e5b88592ef5a9ce584a1ca3010", [1, 7, 7, 512], [4, 4, 512, 512], [1, 7, 7, 512], [1, 1, 1, 512], [1, 1, 1, 512], [1, 7, 7, 512]])",
     1, 142182400},
    {R"(["64b7ce5264a64cb340d78b444b0325e6", [1, 14, 14, 256], [4, 4, 256, 256], [1, 14, 14, 256], [1, 1, 1, 256], [1, 14, 14, 256]])",
     1, 114953216},
    {R"(["7d79c516e212fe1d73f5dbb90eaca2cf", [1, 1000], [1, 1000]])", 1, 4000},
    {R"(["8c53ca2904398da2889aa7508082d7bb", [1, 7, 7, 512], [1, 1, 1, 512]])", 1, 26112},
    {R"(["40b1cf1fd37b0ef111b3cc0247302508", [1, 7, 7, 512], [4, 4, 512, 512], [1, 1, 1, 512], [1, 7, 7, 512]])",
     1, 142132224},
    {R"(["0fad1b42d0d33418e0a8d15d3bbad3c9", [1, 28, 28, 128], [1, 1, 128, 256], [1, 14, 14, 256]])",
     1, 12845056},
    {R"(["07f9fcad27bdd3233f86fe35a5185d33", [1, 14, 14, 256], [3, 3, 256, 512], [1, 1, 1, 512], [1, 7, 7, 512]])",
     1, 115655680},
    {R"(["25577781e50c611c2e45e73c1cb3a6ca", [1, 28, 28, 128], [4, 4, 128, 128], [1, 28, 28, 128], [1, 28, 28, 128]])",
     1, 126945280},
    {R"(["07f9fcad27bdd3233f86fe35a5185d33", [1, 28, 28, 128], [3, 3, 128, 256], [1, 1, 1, 256], [1, 14, 14, 256]])",
     1, 115705856},
    {R"(["6c4f6234946e16bcf9e48bdf289f9200", [1, 56, 56, 64], [6, 6, 64, 64], [1, 56, 56, 64], [1, 1, 1, 64], [1, 56, 56, 64]])",
     1, 128851968},
    {R"(["07f9fcad27bdd3233f86fe35a5185d33", [1, 224, 224, 3], [7, 7, 3, 64], [1, 1, 1, 64], [1, 112, 112, 64]])",
     1, 237633536},
    {R"(["10b8215aaf2e14d47d40b4093e6f41a0", [1, 56, 56, 64], [6, 6, 64, 64], [1, 56, 56, 64], [1, 56, 56, 64]])",
     1, 128450560},
    {R"(["7f3fee61bc3c2604395f5d343b840b7c", [1, 14, 14, 256], [4, 4, 256, 256], [1, 14, 14, 256], [1, 14, 14, 256]])",
     1, 114852864},
    {R"(["6d012ba18a086c11ee2b85c7324e16f2", [1, 112, 112, 64], [1, 1, 1, 64], [1, 56, 56, 64]])",
     1, 2207744},
    {R"(["0fad1b42d0d33418e0a8d15d3bbad3c9", [1, 14, 14, 256], [1, 1, 256, 512], [1, 7, 7, 512]])",
     1, 12845056},
    {R"(["00a059b856ac30ac172b6252254479a6", [1, 512], [1000, 512], [1, 1000], [1, 1000]])", 1,
     1025000},
    {R"(["07f9fcad27bdd3233f86fe35a5185d33", [1, 56, 56, 64], [3, 3, 64, 128], [1, 1, 1, 128], [1, 28, 28, 128]])",
     1, 115806208},
};

TEST(Resnet18Test, HasTheTasksOfTheTutorial) {
  ASSERT_OK_AND_ASSIGN(graph::Graph network, MakeZooNetwork("resnet-18", {}));
  ASSERT_OK_AND_ASSIGN(network,
                       graph::RunPasses(std::move(network),
                                        {.is_gpu = true, .winograd = graph::WinogradRule::kTvm}));
  ASSERT_OK_AND_ASSIGN(const graph::NetworkKernels kernels, graph::ExtractTasks(network));
  std::map<std::string, std::pair<int, double>> found;
  for (const graph::NetworkTask& task : kernels.tasks) {
    if (!task.is_simple)
      found[task.workload_key] = {static_cast<int>(task.kernels.size()), task.dag->flop_count()};
  }
  for (const Known& known : kTasks) {
    const auto it = found.find(known.key);
    EXPECT_TRUE(it != found.end()) << known.key;
    if (it == found.end()) continue;
    EXPECT_EQ(it->second.first, known.weight) << known.key;
    EXPECT_EQ(it->second.second, known.flops) << known.key;
    found.erase(it);
  }
  for (const auto& [key, task] : found) {
    ADD_FAILURE() << "not of the tutorial: " << key << " " << task.first << " " << task.second;
  }
}

}  // namespace
}  // namespace kiln::frontend
