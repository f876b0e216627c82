// Scaled dot-product attention: scores of queries and keys, softmax over the keys, and the mean of
// the values by its weights. The sums are divided last, so that the stages form the chain that one
// kernel can compute (compiler/dag/softmax_chain.h).
#include <cmath>
#include <limits>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

TensorRef Attention(OpContext& c) {
  c.RequireFloat();
  const auto or_else = [&](std::string_view name, int64_t value) {
    return c.args[name] == 0 ? value : c.args[name];
  };
  const int64_t batch = c.args["B"], rows = c.args["N"], size = c.args["D"];
  const int64_t keys = or_else("keys", rows), columns = or_else("values", size);
  const bool is_causal = c.args["causal"] != 0, has_mask = c.args["mask"] != 0;
  const double scale = 1 / std::sqrt(static_cast<double>(size));

  TensorRef query = c.Input({batch, rows, size});
  TensorRef key = c.Input({batch, keys, size});
  TensorRef mask = has_mask ? c.Input({rows, keys}) : query;
  const std::vector<Axis> row = {{"b", batch}, {"i", rows}};
  const std::vector<Axis> scores = {{"b", batch}, {"i", rows}, {"j", keys}};
  const std::vector<Axis> result = {{"b", batch}, {"i", rows}, {"c", columns}};

  TensorRef product = c.b.Reduce(
      "attention_scores", scores, {{"k", size}}, Combiner::kSum,
      [&](Vars v) { return c.Widen(query(v[0], v[1], v[3])) * c.Widen(key(v[0], v[2], v[3])); });
  TensorRef logits = c.b.Compute("attention_logits", scores, [&](Vars v) {
    Value x = product.At(v) * scale;
    if (has_mask) x = x + c.Widen(mask(v[1], v[2]));
    if (is_causal) x = Select(v[2] <= v[1], x, -std::numeric_limits<double>::infinity());
    return x;
  });
  TensorRef max = c.b.Reduce("attention_max", row, {{"n", keys}}, Combiner::kMax,
                             [&](Vars v) { return logits(v[0], v[1], v[2]); });
  TensorRef exp = c.b.Compute("attention_exp", scores,
                              [&](Vars v) { return Exp(logits.At(v) - max(v[0], v[1])); });
  TensorRef sum = c.b.Reduce("attention_expsum", row, {{"n", keys}}, Combiner::kSum,
                             [&](Vars v) { return exp(v[0], v[1], v[2]); });
  TensorRef weights = exp;
  if (exp.type() != c.type) {
    weights =
        c.b.Compute("attention_weights", scores, [&](Vars v) { return Cast(c.type, exp.At(v)); });
  }
  TensorRef value = c.Input({batch, keys, columns});
  TensorRef values =
      c.b.Reduce("attention_values", result, {{"n", keys}}, Combiner::kSum, [&](Vars v) {
        return c.Widen(weights(v[0], v[1], v[3])) * c.Widen(value(v[0], v[3], v[2]));
      });
  return c.b.Compute("attention", result, [&](Vars v) { return values.At(v) / sum(v[0], v[1]); });
}

}  // namespace

std::vector<OpInfo> AttentionOps() {
  return {{.name = "attention",
           .family = "matrix products",
           .doc = "softmax(Q K^T / sqrt(D)) V of [B, N, D] queries",
           .parameters = {{.name = "B", .doc = "batch times heads"},
                          {.name = "N", .doc = "queries"},
                          {.name = "D", .doc = "size of a head"},
                          {.name = "causal",
                           .doc = "query i sees keys 0 to i",
                           .min = 0,
                           .max = 1,
                           .default_value = 0},
                          {.name = "keys",
                           .doc = "keys and values; 0: as many as queries",
                           .min = 0,
                           .default_value = 0},
                          {.name = "values",
                           .doc = "size of a value; 0: that of a head",
                           .min = 0,
                           .default_value = 0},
                          {.name = "mask",
                           .doc = "an [N, keys] input is added to the scores",
                           .min = 0,
                           .max = 1,
                           .default_value = 0}},
           .build = Attention}};
}

}  // namespace kiln::dag
