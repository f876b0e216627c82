// Radford et al., "Language Models are Unsupervised Multitask Learners": GPT-2 of the small size.
#include <fmt/format.h>

#include "compiler/ir/ndarray.h"
#include "frontend/zoo/families.h"
#include "frontend/zoo/transformer.h"

namespace kiln::frontend {
namespace {

constexpr double kGptEpsilon = 1e-5;
constexpr int64_t kVocabulary = 50257;
constexpr int64_t kPositions = 1024;

struct Embedded {
  // Table of words.
  ValueId table;
  ValueId rows;
};

// Embeds the next `tokens` tokens of sequences that have `earlier` tokens already.
Embedded Embed(NetworkWriter& w, int64_t tokens, int64_t earlier) {
  const ValueId ids = w.Input("ids", {ir::kInt64, {w.batch(), tokens}});
  const ValueId table = Embedding(w, "word_embedding", kVocabulary);
  const ValueId words = LookUp(w, table, ids, "words");
  const ValueId positions =
      TableRows(w, Embedding(w, "position_embedding", kPositions), earlier, tokens, "positions");
  return {table, AsRows(w, w.Sum(words, positions, "embedded"), tokens, "embedded_rows")};
}

// A number far below any score, and finite in all float types.
constexpr double kMasked = -1e4;

// Returns a mask that hides later tokens from each token.
ValueId CausalMask(NetworkWriter& w, int64_t tokens) {
  ir::NDArray mask(w.options().dtype, {tokens, tokens});
  for (int64_t row = 0; row < tokens; ++row) {
    for (int64_t column = row + 1; column < tokens; ++column)
      mask.SetDouble(row * tokens + column, kMasked);
  }
  return w.Constant("causal_mask", graph::Constant::FromArray(std::move(mask)));
}

PreNormLayer Layer(int number, int64_t tokens) {
  return {.name = fmt::format("layer{}", number),
          .tokens = tokens,
          .activation = "gelu_tanh",
          .epsilon = kGptEpsilon};
}

// The table of words is also the weight of the last dense layer.
ValueId Logits(NetworkWriter& w, ValueId rows, ValueId table) {
  return w.AddOne("matmul", {LayerNorm(w, rows, "norm", kGptEpsilon), table},
                  {{"transpose_b", int64_t{1}}}, "logits");
}

bool HasPositions(NetworkWriter& w, int64_t tokens) {
  if (tokens <= kPositions) return true;
  w.Fail(InvalidArgument("{} tokens, there are {} positions", tokens, kPositions));
  return false;
}

void WritePrefill(NetworkWriter& w) {
  const int64_t tokens = w.options().sequence;
  if (!HasPositions(w, tokens)) return;
  auto [table, x] = Embed(w, tokens, 0);
  const ValueId mask = CausalMask(w, tokens);
  for (int i = 1; i <= kTransformerLayers; ++i) {
    PreNormLayer layer = Layer(i, tokens);
    layer.mask = mask;
    x = FinishLayer(w, x, NormedHeads(w, x, layer), layer);
  }
  w.Output(Logits(w, RowOfToken(w, x, tokens, tokens - 1, "last"), table));
}

// Returns the keys or values of the earlier tokens, with the new one at the end.
ValueId Extended(NetworkWriter& w, ValueId added, const std::string& name) {
  const ValueId earlier =
      w.Input(name + "_cache",
              {w.options().dtype, {w.batch(), kHeads, w.options().sequence, kHeadFeatures}});
  return w.AddOne("concat", {earlier, added}, {{"axis", int64_t{2}}}, name + "_all");
}

void WriteDecode(NetworkWriter& w) {
  const int64_t earlier = w.options().sequence;
  if (!HasPositions(w, earlier + 1)) return;
  auto [table, x] = Embed(w, 1, earlier);
  std::vector<ValueId> added;
  for (int i = 1; i <= kTransformerLayers; ++i) {
    const PreNormLayer layer = Layer(i, 1);
    Heads heads = NormedHeads(w, x, layer);
    added.insert(added.end(), {heads.key, heads.value});
    heads.key = Extended(w, heads.key, layer.name + "_keys");
    heads.value = Extended(w, heads.value, layer.name + "_values");
    x = FinishLayer(w, x, heads, layer);
  }
  w.Output(Logits(w, x, table));
  for (ValueId value : added) w.Output(value);
}

}  // namespace

std::vector<ZooNetwork> GptNetworks() {
  return {{.name = "gpt2-small-prefill",
           .doc = "12 layers, 768 features, 12 heads, 50257 words: a sequence to the logits of "
                  "its next token, at most 1024 tokens",
           .write = WritePrefill},
          {.name = "gpt2-small-decode",
           .doc = "gpt2-small, one token behind a sequence whose keys and values are inputs",
           .write = WriteDecode}};
}

}  // namespace kiln::frontend
