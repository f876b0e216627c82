// Simonyan and Zisserman, "Very Deep Convolutional Networks", configuration D.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

struct Stage {
  int convs;
  int64_t channels;
};
constexpr Stage kVgg16[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};

ValueId DenseRelu(NetworkWriter& w, ValueId x, int64_t units, const std::string& name) {
  return w.Relu(w.Dense(x, units, name), name + "_relu");
}

void WriteVgg16(NetworkWriter& w) {
  w.SetWeightGain(2);
  constexpr int64_t kImage[] = {224, 224};
  ValueId x = w.Images(kImage);
  int stage = 1;
  for (const auto& [convs, channels] : kVgg16) {
    for (int i = 1; i <= convs; ++i) {
      x = w.ConvBiasRelu(x, channels, Square(3, 1, 1), fmt::format("conv{}_{}", stage, i));
    }
    x = w.MaxPool(x, Square(2, 2), fmt::format("pool{}", stage++));
  }
  x = w.Reshape(x, {w.batch(), 7 * 7 * 512}, "flat");
  x = DenseRelu(w, DenseRelu(w, x, 4096, "fc6"), 4096, "fc7");
  w.Classify(x, 1000, "fc8");
}

}  // namespace

std::vector<ZooNetwork> VggNetworks() {
  return {{.name = "vgg-16",
           .doc = "13 convolutions, 3 dense layers, 224x224 images, 1000 classes",
           .write = WriteVgg16}};
}

}  // namespace kiln::frontend
