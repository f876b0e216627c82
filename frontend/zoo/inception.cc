// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", without the second
// classifier, which is only for training.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {
namespace {

constexpr double kInceptionEpsilon = 2e-5;

struct Layer {
  int64_t channels;
  Window window;
};
using Branch = std::vector<Layer>;

Layer One(int64_t channels) { return {channels, Square(1)}; }
Layer Kept(int64_t channels, int64_t height, int64_t width) {
  return {channels, Same({height, width})};
}
Layer Halved(int64_t channels) { return {channels, Square(3, 2)}; }

ValueId ConvLayer(NetworkWriter& w, ValueId x, const Layer& layer, const std::string& name) {
  return w.ConvNormRelu(x, layer.channels, layer.window, name, kInceptionEpsilon);
}

ValueId WriteBranch(NetworkWriter& w, ValueId x, const Branch& branch, const std::string& name) {
  int number = 1;
  for (const Layer& layer : branch) {
    x = ConvLayer(w, x, layer, fmt::format("{}_conv{}", name, number++));
  }
  return x;
}

std::vector<ValueId> WriteBranches(NetworkWriter& w, ValueId x, const std::string& name,
                                   const std::vector<Branch>& branches) {
  std::vector<ValueId> parts;
  for (const Branch& branch : branches) {
    parts.push_back(WriteBranch(w, x, branch, fmt::format("{}_branch{}", name, parts.size() + 1)));
  }
  return parts;
}

// Writes the branch of a pool that keeps the extents, and a projection.
ValueId Projected(NetworkWriter& w, ValueId pooled, int64_t channels, const std::string& name) {
  return ConvLayer(w, pooled, One(channels), name + "_projection");
}
ValueId AvgProjected(NetworkWriter& w, ValueId x, int64_t channels, const std::string& name) {
  return Projected(w, w.AvgPool(x, Square(3, 1, 1), name + "_pool"), channels, name);
}
ValueId MaxProjected(NetworkWriter& w, ValueId x, int64_t channels, const std::string& name) {
  return Projected(w, w.MaxPool(x, Square(3, 1, 1), name + "_pool"), channels, name);
}

// The modules are named by the extent of the images that they read.
ValueId Module35(NetworkWriter& w, ValueId x, int64_t projection, const std::string& name) {
  std::vector<ValueId> parts = WriteBranches(
      w, x, name,
      {{One(64)}, {One(48), Kept(64, 5, 5)}, {One(64), Kept(96, 3, 3), Kept(96, 3, 3)}});
  parts.push_back(AvgProjected(w, x, projection, name));
  return w.ConcatChannels(std::move(parts), name);
}

ValueId Halve(NetworkWriter& w, ValueId x, const std::vector<Branch>& branches,
              const std::string& name) {
  std::vector<ValueId> parts = WriteBranches(w, x, name, branches);
  parts.push_back(w.MaxPool(x, Square(3, 2), name + "_pool"));
  return w.ConcatChannels(std::move(parts), name);
}

ValueId Module17(NetworkWriter& w, ValueId x, int64_t inner, const std::string& name) {
  std::vector<ValueId> parts = WriteBranches(
      w, x, name,
      {{One(192)},
       {One(inner), Kept(inner, 1, 7), Kept(192, 7, 1)},
       {One(inner), Kept(inner, 7, 1), Kept(inner, 1, 7), Kept(inner, 7, 1), Kept(192, 1, 7)}});
  parts.push_back(AvgProjected(w, x, 192, name));
  return w.ConcatChannels(std::move(parts), name);
}

// Writes a branch that ends in two convolutions of the same values.
void WriteForked(NetworkWriter& w, ValueId x, const Branch& branch, const std::string& name,
                 std::vector<ValueId>& parts) {
  x = WriteBranch(w, x, branch, name);
  parts.push_back(ConvLayer(w, x, Kept(384, 1, 3), name + "_1x3"));
  parts.push_back(ConvLayer(w, x, Kept(384, 3, 1), name + "_3x1"));
}

ValueId Module8(NetworkWriter& w, ValueId x, bool max_pool, const std::string& name) {
  std::vector<ValueId> parts = WriteBranches(w, x, name, {{One(320)}});
  WriteForked(w, x, {One(384)}, name + "_branch2", parts);
  WriteForked(w, x, {One(448), Kept(384, 3, 3)}, name + "_branch3", parts);
  parts.push_back(max_pool ? MaxProjected(w, x, 192, name) : AvgProjected(w, x, 192, name));
  return w.ConcatChannels(std::move(parts), name);
}

ValueId Stem(NetworkWriter& w, ValueId x) {
  x = WriteBranch(w, x, {Halved(32), {32, Square(3)}, Kept(64, 3, 3)}, "stem1");
  x = w.MaxPool(x, Square(3, 2), "pool1");
  x = WriteBranch(w, x, {One(80), {192, Square(3)}}, "stem2");
  return w.MaxPool(x, Square(3, 2), "pool2");
}

void WriteInceptionV3(NetworkWriter& w) {
  w.SetWeightGain(3);
  constexpr int64_t kImage[] = {299, 299};
  ValueId x = Stem(w, w.Images(kImage));
  int number = 0;
  const auto name = [&] { return fmt::format("mixed{}", ++number); };
  for (int64_t projection : {32, 64, 64}) x = Module35(w, x, projection, name());
  x = Halve(w, x, {{Halved(384)}, {One(64), Kept(96, 3, 3), Halved(96)}}, name());
  for (int64_t inner : {128, 160, 160, 192}) x = Module17(w, x, inner, name());
  x = Halve(w, x,
            {{One(192), Halved(320)}, {One(192), Kept(192, 1, 7), Kept(192, 7, 1), Halved(192)}},
            name());
  for (bool max_pool : {false, true}) x = Module8(w, x, max_pool, name());
  w.Classify(w.PooledRows(x), 1000, "fc1");
}

}  // namespace

std::vector<ZooNetwork> InceptionNetworks() {
  return {{.name = "inception_v3",
           .doc = "11 modules of parallel convolutions, 299x299 images, 1000 classes",
           .write = WriteInceptionV3}};
}

}  // namespace kiln::frontend
