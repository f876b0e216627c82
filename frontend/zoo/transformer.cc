#include "frontend/zoo/transformer.h"

#include <cmath>

namespace kiln::frontend {

// The numbers have the size of a dense layer's weights, since GPT-2 uses its table as such weights.
ValueId Embedding(NetworkWriter& w, std::string name, int64_t rows) {
  return w.ProductWeight(std::move(name), {rows, kFeatures}, kFeatures);
}

ValueId TableRows(NetworkWriter& w, ValueId table, int64_t first, int64_t count, std::string name) {
  return w.AddOne("slice", {table},
                  {{"begin", std::vector<int64_t>{first, 0}},
                   {"extents", std::vector<int64_t>{count, kFeatures}},
                   {"strides", std::vector<int64_t>{1, 1}}},
                  std::move(name));
}

ValueId LookUp(NetworkWriter& w, ValueId table, ValueId ids, std::string name) {
  return w.AddOne("gather", {table, ids}, {{"axis", int64_t{0}}}, std::move(name));
}

ValueId AsRows(NetworkWriter& w, ValueId x, int64_t tokens, std::string name) {
  return w.Reshape(x, {w.batch() * tokens, kFeatures}, std::move(name));
}

ValueId RowOfToken(NetworkWriter& w, ValueId rows, int64_t tokens, int64_t token,
                   const std::string& name) {
  const ValueId all = w.Reshape(rows, {w.batch(), tokens, kFeatures}, name + "_sequences");
  const ValueId one = w.AddOne("slice", {all},
                               {{"begin", std::vector<int64_t>{0, token, 0}},
                                {"extents", std::vector<int64_t>{w.batch(), 1, kFeatures}},
                                {"strides", std::vector<int64_t>{1, 1, 1}}},
                               name + "_slice");
  return AsRows(w, one, 1, name);
}

ValueId LayerNorm(NetworkWriter& w, ValueId x, const std::string& name, double epsilon) {
  const ValueId scale = w.Scale(name + "_scale", {kFeatures});
  const ValueId bias = w.Bias(name + "_bias", {kFeatures});
  return w.AddOne("layer_norm", {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}},
                  name);
}

namespace {

ValueId Transposed(NetworkWriter& w, ValueId x, const std::string& name) {
  return w.AddOne("transpose", {x}, {{"axes", std::vector<int64_t>{0, 2, 1, 3}}}, name);
}

ValueId JoinHeads(NetworkWriter& w, ValueId x, int64_t tokens, const std::string& name) {
  return AsRows(w, Transposed(w, x, name + "_by_token"), tokens, name + "_rows");
}

ValueId Scores(NetworkWriter& w, const Heads& heads, ValueId mask, const std::string& name) {
  const ValueId factor = w.Constant(
      name + "_factor", graph::Constant::Scalar(w.options().dtype,
                                                1 / std::sqrt(static_cast<double>(kHeadFeatures))));
  const ValueId products = w.AddOne("matmul", {heads.query, heads.key},
                                    {{"transpose_b", int64_t{1}}}, name + "_products");
  const ValueId scores = w.AddOne("mul", {products, factor}, {}, name + "_scores");
  return mask == graph::kAbsent ? scores : w.Sum(scores, mask, name + "_masked");
}

}  // namespace

ValueId SplitHeads(NetworkWriter& w, ValueId rows, int64_t tokens, const std::string& name) {
  const ValueId by_token =
      w.Reshape(rows, {w.batch(), tokens, kHeads, kHeadFeatures}, name + "_by_token");
  return Transposed(w, by_token, name + "_heads");
}

ValueId Attention(NetworkWriter& w, const Heads& heads, int64_t tokens, ValueId mask,
                  const std::string& name) {
  const ValueId shares = w.Softmax(Scores(w, heads, mask, name), name + "_shares");
  const ValueId context = w.AddOne("matmul", {shares, heads.value}, {}, name + "_context");
  return JoinHeads(w, context, tokens, name + "_context");
}

ValueId FeedForward(NetworkWriter& w, ValueId x, const std::string& activation,
                    const std::string& name) {
  const ValueId hidden = w.Dense(x, kHiddenUnits, name + "1");
  return w.Dense(w.AddOne(activation, {hidden}, {}, name + "_" + activation), kFeatures,
                 name + "2");
}

Heads NormedHeads(NetworkWriter& w, ValueId x, const PreNormLayer& layer) {
  const std::string name = layer.name + "_attention";
  const ValueId normed = LayerNorm(w, x, layer.name + "_norm1", layer.epsilon);
  const std::vector<ValueId> parts =
      w.Add("split", {w.Dense(normed, 3 * kFeatures, name + "_qkv")},
            {{"axis", int64_t{-1}}, {"sizes", std::vector<int64_t>(3, kFeatures)}},
            {name + "_query", name + "_key", name + "_value"});
  return {.query = SplitHeads(w, parts[0], layer.tokens, name + "_query"),
          .key = SplitHeads(w, parts[1], layer.tokens, name + "_key"),
          .value = SplitHeads(w, parts[2], layer.tokens, name + "_value")};
}

ValueId FinishLayer(NetworkWriter& w, ValueId x, const Heads& heads, const PreNormLayer& layer) {
  const ValueId context = Attention(w, heads, layer.tokens, layer.mask, layer.name + "_attention");
  const ValueId projected = w.Dense(context, kFeatures, layer.name + "_attention_out");
  x = w.Sum(projected, x, layer.name + "_attention_sum");
  const ValueId normed = LayerNorm(w, x, layer.name + "_norm2", layer.epsilon);
  const ValueId y = FeedForward(w, normed, layer.activation, layer.name + "_dense");
  return w.Sum(y, x, layer.name + "_sum");
}

}  // namespace kiln::frontend
