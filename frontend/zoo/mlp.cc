// A multilayer perceptron, small enough for every test.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

void WriteMlp(NetworkWriter& w) {
  ValueId x = w.Input("data", {w.options().dtype, {w.batch(), 784}});
  int number = 1;
  for (int64_t units : {512, 256}) {
    const std::string name = fmt::format("fc{}", number++);
    x = w.Relu(w.Dense(x, units, name), name + "_relu");
  }
  w.Classify(x, 10, "fc3");
}

}  // namespace

std::vector<ZooNetwork> MlpNetworks() {
  return {{.name = "mlp", .doc = "dense layers of 784, 512, 256 and 10 units", .write = WriteMlp}};
}

}  // namespace kiln::frontend
