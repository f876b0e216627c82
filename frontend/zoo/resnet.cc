// Residual networks whose units normalize before they convolve (He et al., "Identity Mappings in
// Deep Residual Networks"). The layers are those of TVM's relay.testing.resnet and resnet_3d, since
// TVM's tutorials tune the tasks of these networks.
#include <fmt/format.h>

#include <array>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

constexpr double kResnetEpsilon = 2e-5;
// Convolutions of a unit lose some of the mean square, and the unit adds the rest to its input.
constexpr double kResnetGain = 1.5;
constexpr int64_t kClasses = 1000;

struct Depth {
  int layers;
  // Number of units by stage.
  std::array<int, 4> units;
  bool bottleneck;
};
constexpr Depth kDepths[] = {
    {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
};
constexpr int64_t kStemChannels = 64;
// Channels of a stage's units. Bottleneck units have four times as many at their end.
constexpr int64_t kStageChannels[] = {64, 128, 256, 512};

struct UnitConv {
  int64_t kernel, channels, stride;
};

std::vector<UnitConv> UnitConvs(int64_t channels, int64_t stride, bool bottleneck) {
  if (bottleneck) return {{1, channels, stride}, {3, channels, 1}, {1, 4 * channels, 1}};
  return {{3, channels, stride}, {3, channels, 1}};
}

struct Unit {
  std::string name;
  // Number of spatial axes.
  int rank;
  std::vector<UnitConv> convs;
  // True: the shortcut is a convolution with the input of the first convolution.
  bool changes_shape;
};

ValueId Shortcut(NetworkWriter& w, ValueId x, ValueId activated, const Unit& unit) {
  if (!unit.changes_shape) return x;
  return w.Conv(activated, unit.convs.back().channels,
                Cube(unit.rank, 1, unit.convs.front().stride), unit.name + "_sc");
}

ValueId Residual(NetworkWriter& w, ValueId x, const Unit& unit) {
  ValueId first = graph::kAbsent, y = x;
  int number = 0;
  for (const UnitConv& conv : unit.convs) {
    ++number;
    const ValueId activated = w.NormRelu(y, unit.name + "_", number, kResnetEpsilon);
    if (number == 1) first = activated;
    y = w.Conv(activated, conv.channels, Cube(unit.rank, conv.kernel, conv.stride, conv.kernel / 2),
               fmt::format("{}_conv{}", unit.name, number));
  }
  return w.Sum(y, Shortcut(w, x, first, unit), unit.name + "_sum");
}

ValueId Stages(NetworkWriter& w, ValueId x, const Depth& depth, int rank) {
  for (size_t stage = 0; stage < depth.units.size(); ++stage) {
    for (int i = 0; i < depth.units[stage]; ++i) {
      const bool first = i == 0;
      const int64_t stride = first && stage > 0 ? 2 : 1;
      x = Residual(w, x,
                   {.name = fmt::format("stage{}_unit{}", stage + 1, i + 1),
                    .rank = rank,
                    .convs = UnitConvs(kStageChannels[stage], stride, depth.bottleneck),
                    .changes_shape = first});
    }
  }
  return x;
}

void Head(NetworkWriter& w, ValueId x) {
  w.Classify(w.PooledRows(w.NormRelu(x, "", 1, kResnetEpsilon)), kClasses, "fc1");
}

void WriteResnet(NetworkWriter& w, const Depth& depth) {
  w.SetWeightGain(kResnetGain);
  constexpr int64_t kImage[] = {224, 224};
  ValueId x = w.UnscaledBatchNorm(w.Images(kImage), "bn_data", kResnetEpsilon);
  x = w.Conv(x, kStemChannels, Square(7, 2, 3), "conv0");
  x = w.MaxPool(w.NormRelu(x, "", 0, kResnetEpsilon), Square(3, 2, 1), "pool0");
  Head(w, Stages(w, x, depth, /*rank=*/2));
}

// Writes a network for videos. The first stage reads them without a pool.
void WriteResnet3d(NetworkWriter& w, const Depth& depth) {
  w.SetWeightGain(kResnetGain);
  constexpr int64_t kVideo[] = {16, 112, 112};
  ValueId x = w.UnscaledBatchNorm(w.Images(kVideo), "bn_data", kResnetEpsilon);
  const Window window = {.kernel = {3, 7, 7}, .strides = {1, 2, 2}, .pads = {1, 3, 3}};
  x = w.Conv(x, kStemChannels, window, "conv0");
  Head(w, Stages(w, w.NormRelu(x, "", 0, kResnetEpsilon), depth, /*rank=*/3));
}

}  // namespace

std::vector<ZooNetwork> ResnetNetworks() {
  std::vector<ZooNetwork> networks;
  for (const Depth& depth : kDepths) {
    networks.push_back(
        {.name = fmt::format("resnet-{}", depth.layers),
         .doc = fmt::format("{} layers, pre-activation {}units, 224x224 images, {} classes",
                            depth.layers, depth.bottleneck ? "bottleneck " : "", kClasses),
         .write = [depth](NetworkWriter& w) { WriteResnet(w, depth); }});
  }
  networks.push_back({.name = "resnet3d-18",
                      .doc = "18 layers, 16 frames of 112x112, 1000 classes",
                      .write = [](NetworkWriter& w) { WriteResnet3d(w, kDepths[0]); }});
  return networks;
}

}  // namespace kiln::frontend
