// Networks of depthwise and pointwise convolutions.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

constexpr int64_t kImage[] = {224, 224};
constexpr int64_t kClasses = 1000;

// Howard et al., "MobileNets".
struct Separable {
  int64_t channels, stride;
};
constexpr Separable kSeparables[] = {
    {64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2},  {512, 1},
    {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1},
};

void WriteMobilenet(NetworkWriter& w) {
  w.SetWeightGain(3);
  ValueId x = w.ConvNormRelu(w.Images(kImage), 32, Square(3, 2, 1), "conv1");
  int block = 1;
  for (const Separable& separable : kSeparables) {
    const std::string name = fmt::format("block{}", block++);
    x = w.DepthwiseConv(x, Square(3, separable.stride, 1), name + "_depthwise");
    x = w.Relu(w.BatchNorm(x, name + "_depthwise_bn"), name + "_depthwise_relu");
    x = w.ConvNormRelu(x, separable.channels, Square(1), name + "_pointwise");
  }
  w.Classify(w.PooledRows(x), kClasses, "fc");
}

// Sandler et al., "MobileNetV2": the blocks of a row repeat; only the first one has the stride.
struct InvertedResiduals {
  int64_t expansion, channels, blocks, stride;
};
constexpr InvertedResiduals kInvertedResiduals[] = {
    {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2},  {6, 64, 4, 2},
    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
};

ValueId NormRelu6(NetworkWriter& w, ValueId x, const std::string& name) {
  const ValueId norm = w.BatchNorm(x, name + "_bn");
  return w.AddOne("clip", {norm}, {{"min", 0.0}, {"max", 6.0}}, name + "_relu6");
}

struct Block {
  std::string name;
  int64_t in, channels, expansion, stride;
};

ValueId InvertedResidual(NetworkWriter& w, ValueId x, const Block& block) {
  ValueId y = x;
  if (block.expansion > 1) {
    const std::string name = block.name + "_expand";
    y = NormRelu6(w, w.Conv(y, block.in * block.expansion, Square(1), name), name);
  }
  const std::string name = block.name + "_depthwise";
  y = NormRelu6(w, w.DepthwiseConv(y, Square(3, block.stride, 1), name), name);
  y = w.Conv(y, block.channels, Square(1), block.name + "_project");
  y = w.BatchNorm(y, block.name + "_project_bn");
  const bool same_shape = block.stride == 1 && block.in == block.channels;
  return same_shape ? w.Sum(y, x, block.name + "_sum") : y;
}

void WriteMobilenetV2(NetworkWriter& w) {
  w.SetWeightGain(2);
  int64_t channels = 32;
  ValueId x = NormRelu6(w, w.Conv(w.Images(kImage), channels, Square(3, 2, 1), "conv1"), "conv1");
  int number = 1;
  for (const InvertedResiduals& row : kInvertedResiduals) {
    for (int64_t i = 0; i < row.blocks; ++i) {
      x = InvertedResidual(w, x,
                           {.name = fmt::format("block{}", number++),
                            .in = channels,
                            .channels = row.channels,
                            .expansion = row.expansion,
                            .stride = i == 0 ? row.stride : 1});
      channels = row.channels;
    }
  }
  x = NormRelu6(w, w.Conv(x, 1280, Square(1), "conv2"), "conv2");
  w.Classify(w.PooledRows(x), kClasses, "fc");
}

}  // namespace

std::vector<ZooNetwork> MobilenetNetworks() {
  return {{.name = "mobilenet",
           .doc = "version 1, 13 depthwise separable blocks, 224x224 images, 1000 classes",
           .write = WriteMobilenet},
          {.name = "mobilenet_v2",
           .doc = "17 inverted residual blocks, 224x224 images, 1000 classes",
           .write = WriteMobilenetV2}};
}

}  // namespace kiln::frontend
