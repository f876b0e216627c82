// Iandola et al., "SqueezeNet", version 1.1: units of a narrow convolution and two wide ones.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

struct Fire {
  // Each of the two wide convolutions makes `expand` channels.
  int64_t squeeze, expand;
  // True: the unit's input is pooled.
  bool pooled;
};
constexpr Fire kFires[] = {
    {16, 64, true},  {16, 64, false},  {32, 128, true},  {32, 128, false},
    {48, 192, true}, {48, 192, false}, {64, 256, false}, {64, 256, false},
};

ValueId WriteFire(NetworkWriter& w, ValueId x, const Fire& fire, const std::string& name) {
  if (fire.pooled) x = w.MaxPool(x, Square(3, 2), name + "_pool");
  x = w.ConvBiasRelu(x, fire.squeeze, Square(1), name + "_squeeze");
  const ValueId narrow = w.ConvBiasRelu(x, fire.expand, Square(1), name + "_expand1x1");
  const ValueId wide = w.ConvBiasRelu(x, fire.expand, Square(3, 1, 1), name + "_expand3x3");
  return w.ConcatChannels({narrow, wide}, name);
}

void WriteSqueezenet(NetworkWriter& w) {
  w.SetWeightGain(2);
  constexpr int64_t kImage[] = {224, 224};
  ValueId x = w.ConvBiasRelu(w.Images(kImage), 64, Square(3, 2, 1), "conv1");
  int number = 1;
  for (const Fire& fire : kFires) x = WriteFire(w, x, fire, fmt::format("fire{}", number++));
  x = w.ConvBiasRelu(x, 1000, Square(1), "conv_final");
  w.Output(w.Softmax(w.PooledRows(x), "probabilities"));
}

}  // namespace

std::vector<ZooNetwork> SqueezenetNetworks() {
  return {{.name = "squeezenet_v1.1",
           .doc = "8 fire units, 224x224 images, 1000 classes",
           .write = WriteSqueezenet}};
}

}  // namespace kiln::frontend
