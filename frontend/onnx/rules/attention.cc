// Parts of transformers that ONNX has as operators of their own, since version 23.
#include <cmath>
#include <limits>

#include "frontend/onnx/element_type.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// [batch, sequence, heads size] as [batch, heads, sequence, size].
Tensor SplitHeads(NodeContext& n, const Tensor& x, int64_t heads) {
  if (n.failed() || x.rank() == 4) return x;
  if (heads < 1 || x.dim(2) % heads != 0) {
    n.Invalid("{} in {} heads", TypeText(x.type), heads);
    return x;
  }
  const Tensor split = n.Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return n.Transpose(split, {0, 2, 1, 3});
}

Tensor MergeHeads(NodeContext& n, const Tensor& x) {
  if (n.failed()) return x;
  return n.Reshape(n.Transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

// Each head of keys or values serves a group of query heads that stand side by side.
Tensor ForQueryHeads(NodeContext& n, const Tensor& x, int64_t heads) {
  if (n.failed() || x.dim(1) == heads) return x;
  if (heads % x.dim(1) != 0) {
    n.Invalid("{} heads of queries for {} of keys", heads, x.dim(1));
    return x;
  }
  const int64_t group = heads / x.dim(1);
  const Tensor spread = n.BroadcastTo(n.Reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2), x.dim(3)}),
                                      {x.dim(0), x.dim(1), group, x.dim(2), x.dim(3)});
  return n.Reshape(spread, {x.dim(0), heads, x.dim(2), x.dim(3)});
}

Tensor WithPast(NodeContext& n, const Tensor& past, const Tensor& x) {
  return past.exists() ? n.Concat({past, x}, 2) : x;
}

// 0 where a query may look at a key, else -infinity.
Tensor MaskBias(NodeContext& n, const Tensor& is_visible, ir::Type type) {
  const double never = -std::numeric_limits<double>::infinity();
  return n.Where(is_visible, n.Scalar(type, 0), n.Scalar(type, never));
}

// Query i sees all keys of the past, and after them those up to the i-th.
Tensor CausalBias(NodeContext& n, int64_t queries, int64_t keys, int64_t past, ir::Type type) {
  const Tensor ones = n.BroadcastTo(n.Scalar(ir::kInt32, 1), {queries, keys});
  const Tensor lower = n.Emit("triangle", {ones}, {{"upper", int64_t{0}}, {"offset", past}});
  return MaskBias(n, n.Cast(lower, ir::kBool), type);
}

// What is added to the scores; absent: nothing.
Tensor Bias(NodeContext& n, const Tensor& scores) {
  Tensor bias;
  if (n.has_input(3)) {
    const Tensor& mask = n.input(3);
    bias = mask.element().is_bool() ? MaskBias(n, mask, scores.element()) : mask;
  }
  if (n.Int("is_causal", 0) == 0) return bias;
  const Tensor causal = CausalBias(n, scores.dim(2), scores.dim(3),
                                   n.has_input(4) ? n.input(4).dim(2) : 0, scores.element());
  return bias.exists() ? n.Add(bias, causal) : causal;
}

Tensor Softcapped(NodeContext& n, const Tensor& x, double cap) {
  if (cap <= 0) return x;
  const Tensor limit = n.ScalarLike(x, cap);
  return n.Mul(n.Emit("tanh", {n.Div(x, limit)}), limit);
}

ir::Type SoftmaxType(NodeContext& n, ir::Type otherwise) {
  if (!n.has("softmax_precision")) return otherwise;
  const auto number = static_cast<int>(std::clamp<int64_t>(n.Int("softmax_precision", 0), -1, 99));
  const StatusOr<ir::Type> type = ElementType(number);
  if (!type.ok()) n.Fail(type.status());
  return type.value_or(otherwise);
}

// Scores of each query and key, and what becomes of them; output 3 is one of the stages.
Tensor Probabilities(NodeContext& n, const Tensor& q, const Tensor& k) {
  const double scale =
      n.has("scale") ? n.Float("scale", 1) : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  const Tensor factor = n.ScalarLike(q, std::sqrt(scale));
  Tensor scores =
      n.Emit("matmul", {n.Mul(q, factor), n.Mul(k, factor)}, {{"transpose_b", int64_t{1}}});
  std::vector<Tensor> stages = {scores};
  if (const Tensor bias = Bias(n, scores); bias.exists()) scores = n.Add(scores, bias);
  stages.push_back(scores);
  scores = Softcapped(n, scores, n.Float("softcap", 0));
  stages.push_back(scores);
  const Tensor wide = n.Cast(scores, SoftmaxType(n, q.element()));
  const Tensor y = n.Cast(n.Emit("softmax", {wide}, {{"axis", int64_t{3}}}), q.element());
  stages.push_back(y);
  const auto stage =
      static_cast<size_t>(std::clamp<int64_t>(n.Int("qk_matmul_output_mode", 0), 0, 3));
  if (!n.failed()) n.SetOutput(3, stages[stage]);
  return y;
}

void Attention(NodeContext& n) {
  n.RequireFloat(0);
  for (int i = 0; i < 3; ++i) n.RequireRank(i, 3, 4);
  for (int i = 4; i < 6; ++i)
    if (n.has_input(i)) n.RequireRank(i, 4, 4);
  if (n.failed()) return;
  const bool are_merged = n.input(0).rank() == 3;
  const Tensor q = SplitHeads(n, n.input(0), n.Int("q_num_heads", 0));
  const int64_t kv_heads = n.Int("kv_num_heads", 0);
  const Tensor k = WithPast(n, n.input(4), SplitHeads(n, n.input(1), kv_heads));
  const Tensor v = WithPast(n, n.input(5), SplitHeads(n, n.input(2), kv_heads));
  if (n.failed()) return;
  n.SetOutput(1, k);
  n.SetOutput(2, v);
  const Tensor weights = Probabilities(n, q, ForQueryHeads(n, k, q.dim(1)));
  const Tensor y = n.Emit("matmul", {weights, ForQueryHeads(n, v, q.dim(1))});
  n.SetOutput(are_merged ? MergeHeads(n, y) : y);
}

// Cosines or sines for [batch, heads, sequence, half]: rows of a table by position, or of each
// element of the batch.
Tensor Angles(NodeContext& n, const Tensor& cache, int64_t half) {
  Tensor table = n.has_input(3) ? n.Gather(cache, n.input(3), 0) : cache;
  if (n.failed() || table.rank() != 3) {
    n.Invalid("its tables are {}", TypeText(cache.type));
    return table;
  }
  table = n.SliceAxis(table, 2, 0, std::min(half, table.dim(2)));
  return n.Reshape(table, {table.dim(0), 1, table.dim(1), table.dim(2)});
}

// Pairs of elements, side by side or from two halves, turned by the angle of their position.
Tensor Rotated(NodeContext& n, const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const int64_t half = x.dim(3) / 2;
  const bool interleaves = n.Int("interleaved", 0) != 0;
  const auto part = [&](int64_t i) {
    return n.SliceAxis(x, 3, interleaves ? i : i * half, half, interleaves ? 2 : 1);
  };
  const Tensor a = part(0), b = part(1);
  const Tensor real = n.Sub(n.Mul(cosine, a), n.Mul(sine, b));
  const Tensor imaginary = n.Add(n.Mul(sine, a), n.Mul(cosine, b));
  if (!interleaves) return n.Concat({real, imaginary}, 3);
  if (n.failed()) return x;
  Shape column = real.shape();
  column.push_back(1);
  return n.Reshape(n.Concat({n.Reshape(real, column), n.Reshape(imaginary, column)}, 4), x.shape());
}

void RotaryEmbedding(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 3, 4);
  for (int i = 1; i < 3; ++i) n.RequireRank(i, 2, 3);
  if (n.failed()) return;
  const bool are_merged = n.input(0).rank() == 3;
  const Tensor x = SplitHeads(n, n.input(0), n.Int("num_heads", 0));
  const int64_t asked = n.Int("rotary_embedding_dim", 0), size = asked == 0 ? x.dim(3) : asked;
  if (!n.failed() && (size < 2 || size % 2 != 0 || size > x.dim(3)))
    n.Invalid("it rotates {} elements of {}", size, TypeText(x.type));
  if (n.failed()) return;
  const Tensor cosine = Angles(n, n.input(1), size / 2), sine = Angles(n, n.input(2), size / 2);
  Tensor y = Rotated(n, n.SliceAxis(x, 3, 0, size), cosine, sine);
  if (size < x.dim(3)) y = n.Concat({y, n.SliceAxis(x, 3, size, x.dim(3) - size)}, 3);
  n.SetOutput(are_merged ? MergeHeads(n, y) : y);
}

}  // namespace

std::vector<Rule> AttentionRules() {
  return {{"Attention", Attention}, {"RotaryEmbedding", RotaryEmbedding}};
}

}  // namespace kiln::frontend
