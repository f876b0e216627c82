// Dosovitskiy et al., "An Image is Worth 16x16 Words".
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/transformer.h"

namespace kiln::frontend {
namespace {

constexpr int64_t kImage[] = {224, 224};
constexpr int64_t kPatch = 16;
constexpr int64_t kPatches = (224 / kPatch) * (224 / kPatch);
constexpr int64_t kTokens = kPatches + 1;
constexpr double kVitEpsilon = 1e-6;

// Returns [batch, patches, features].
ValueId Patches(NetworkWriter& w) {
  const ValueId x = w.ConvBias(w.Images(kImage), kFeatures, Square(kPatch, kPatch), "patch");
  if (w.channels_last()) return w.Reshape(x, {w.batch(), kPatches, kFeatures}, "patches");
  const ValueId columns = w.Reshape(x, {w.batch(), kFeatures, kPatches}, "patch_columns");
  return w.AddOne("transpose", {columns}, {{"axes", std::vector<int64_t>{0, 2, 1}}}, "patches");
}

// A token without content stands in front of the patches. Its row becomes the class.
ValueId Embedded(NetworkWriter& w) {
  const ValueId patches = Patches(w);
  const ValueId token = w.ProductWeight("class_token", {1, 1, kFeatures}, kFeatures);
  const ValueId tokens =
      w.AddOne("broadcast_to", {token}, {{"shape", std::vector<int64_t>{w.batch(), 1, kFeatures}}},
               "class_tokens");
  const ValueId all = w.AddOne("concat", {tokens, patches}, {{"axis", int64_t{1}}}, "tokens");
  const ValueId positions =
      w.ProductWeight("position_embedding", {1, kTokens, kFeatures}, kFeatures);
  return AsRows(w, w.Sum(all, positions, "embedded"), kTokens, "embedded_rows");
}

void WriteVit(NetworkWriter& w) {
  ValueId x = Embedded(w);
  for (int i = 1; i <= kTransformerLayers; ++i) {
    const PreNormLayer layer = {.name = fmt::format("layer{}", i),
                                .tokens = kTokens,
                                .activation = "gelu",
                                .epsilon = kVitEpsilon};
    x = FinishLayer(w, x, NormedHeads(w, x, layer), layer);
  }
  // Only the row of the class token is read, and rows are normalized one by one.
  const ValueId row = RowOfToken(w, x, kTokens, 0, "class");
  w.Classify(LayerNorm(w, row, "norm", kVitEpsilon), 1000, "head");
}

}  // namespace

std::vector<ZooNetwork> VisionTransformerNetworks() {
  return {{.name = "vit-b-16",
           .doc = "12 layers, 768 features, 12 heads, 224x224 images in patches of 16x16, "
                  "1000 classes",
           .write = WriteVit}};
}

}  // namespace kiln::frontend
