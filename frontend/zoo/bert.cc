// Devlin et al., "BERT", where all tokens belong to the first of two texts; and Sanh et al.,
// "DistilBERT", which has half of its layers, no types of texts and no pooled output. All tokens
// count.
#include <fmt/format.h>

#include "frontend/zoo/families.h"
#include "frontend/zoo/transformer.h"

namespace kiln::frontend {
namespace {

constexpr double kBertEpsilon = 1e-12;
constexpr int64_t kVocabulary = 30522;
constexpr int64_t kPositions = 512;

struct Form {
  int layers = kTransformerLayers;
  bool has_types = true, is_pooled = true;
};

ValueId Embedded(NetworkWriter& w, int64_t tokens, bool has_types) {
  const ValueId ids = w.Input("ids", {ir::kInt64, {w.batch(), tokens}});
  const ValueId words = LookUp(w, Embedding(w, "word_embedding", kVocabulary), ids, "words");
  const ValueId positions =
      TableRows(w, Embedding(w, "position_embedding", kPositions), 0, tokens, "positions");
  ValueId sum = w.Sum(words, positions, "words_at");
  if (has_types) {
    const ValueId types = TableRows(w, Embedding(w, "type_embedding", 2), 0, 1, "types");
    sum = w.Sum(sum, types, "embedded");
  }
  return LayerNorm(w, AsRows(w, sum, tokens, "embedded_rows"), "embedded_norm", kBertEpsilon);
}

ValueId ProjectedHeads(NetworkWriter& w, ValueId x, int64_t tokens, const std::string& name) {
  return SplitHeads(w, w.Dense(x, kFeatures, name), tokens, name);
}

ValueId BertLayer(NetworkWriter& w, ValueId x, int64_t tokens, const std::string& name) {
  const std::string attention = name + "_attention";
  const Heads heads = {.query = ProjectedHeads(w, x, tokens, attention + "_query"),
                       .key = ProjectedHeads(w, x, tokens, attention + "_key"),
                       .value = ProjectedHeads(w, x, tokens, attention + "_value")};
  const ValueId context = Attention(w, heads, tokens, graph::kAbsent, attention);
  const ValueId projected = w.Dense(context, kFeatures, attention + "_out");
  x = LayerNorm(w, w.Sum(projected, x, attention + "_sum"), name + "_norm1", kBertEpsilon);
  const ValueId y = FeedForward(w, x, "gelu", name + "_dense");
  return LayerNorm(w, w.Sum(y, x, name + "_sum"), name + "_norm2", kBertEpsilon);
}

void WriteEncoder(NetworkWriter& w, const Form& form) {
  const int64_t tokens = w.options().sequence;
  if (tokens > kPositions)
    return w.Fail(InvalidArgument("{} tokens, there are {} positions", tokens, kPositions));
  ValueId x = Embedded(w, tokens, form.has_types);
  for (int i = 1; i <= form.layers; ++i) x = BertLayer(w, x, tokens, fmt::format("layer{}", i));
  w.Output(w.Reshape(x, {w.batch(), tokens, kFeatures}, "last_hidden_state"));
  if (!form.is_pooled) return;
  const ValueId pooled = w.Dense(RowOfToken(w, x, tokens, 0, "first"), kFeatures, "pooler");
  w.Output(w.AddOne("tanh", {pooled}, {}, "pooled"));
}

}  // namespace

std::vector<ZooNetwork> BertNetworks() {
  return {{.name = "bert-base",
           .doc = "12 layers, 768 features, 12 heads, 30522 words, at most 512 tokens",
           .write = [](NetworkWriter& w) { WriteEncoder(w, {}); }},
          {.name = "distilbert",
           .doc = "6 layers of bert-base, without types of texts and without a pooled output",
           .write = [](NetworkWriter& w) {
             WriteEncoder(w, {.layers = 6, .has_types = false, .is_pooled = false});
           }}};
}

}  // namespace kiln::frontend
