// Huang et al., "Densely Connected Convolutional Networks": each layer reads the results of all
// earlier layers of its block.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

// Channels that a layer adds.
constexpr int64_t kGrowth = 32;
// Channels from which a layer computes them.
constexpr int64_t kBottleneck = 4 * kGrowth;
// Number of layers by block.
constexpr int kDensenet121[] = {6, 12, 24, 16};

ValueId DenseLayer(NetworkWriter& w, ValueId x, const std::string& name) {
  const std::string prefix = name + "_";
  ValueId y = w.Conv(w.NormRelu(x, prefix, 1), kBottleneck, Square(1), prefix + "conv1");
  y = w.Conv(w.NormRelu(y, prefix, 2), kGrowth, Square(3, 1, 1), prefix + "conv2");
  return w.ConcatChannels({x, y}, name);
}

// Halves the channels and the extents.
ValueId Transition(NetworkWriter& w, ValueId x, int64_t channels, int number) {
  const std::string prefix = fmt::format("transition{}_", number);
  x = w.Conv(w.NormRelu(x, prefix, 1), channels, Square(1), prefix + "conv1");
  return w.AvgPool(x, Square(2, 2), prefix + "pool");
}

void WriteDensenet121(NetworkWriter& w) {
  w.SetWeightGain(3);
  constexpr int64_t kImage[] = {224, 224};
  int64_t channels = 64;
  ValueId x = w.ConvNormRelu(w.Images(kImage), channels, Square(7, 2, 3), "conv0");
  x = w.MaxPool(x, Square(3, 2, 1), "pool0");
  int block = 0;
  for (int layers : kDensenet121) {
    if (block > 0) {
      channels /= 2;
      x = Transition(w, x, channels, block);
    }
    ++block;
    for (int i = 1; i <= layers; ++i)
      x = DenseLayer(w, x, fmt::format("block{}_layer{}", block, i));
    channels += layers * kGrowth;
  }
  w.Classify(w.PooledRows(w.NormRelu(x, "", 1)), 1000, "fc");
}

}  // namespace

std::vector<ZooNetwork> DensenetNetworks() {
  return {{.name = "densenet-121",
           .doc = "4 dense blocks of 58 layers, 224x224 images, 1000 classes",
           .write = WriteDensenet121}};
}

}  // namespace kiln::frontend
