// Parts of transformers for which ONNX has operators since version 23.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/onnx/element_type.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Returns [batch, sequence, heads size] as [batch, heads, sequence, size].
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

// Repeats the heads of keys or values: each serves a group of query heads that stand side by side.
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

// Returns 0 where a query may look at a key, and -infinity elsewhere.
Tensor MaskBias(NodeContext& n, const Tensor& is_visible, ir::Type type) {
  const double never = -std::numeric_limits<double>::infinity();
  return n.Where(is_visible, n.Scalar(type, 0), n.Scalar(type, never));
}

// Returns 0, 1, 2, ... in the shape of a column or a row of scores.
Tensor Positions(NodeContext& n, Shape shape) {
  Shape values(static_cast<size_t>(std::max(shape[0], shape[1])));
  std::iota(values.begin(), values.end(), 0);
  return n.Constant(std::move(shape), values);
}

// Numbers of the inputs by their purpose.
enum Input : int { kMask = 3, kPastKeys = 4, kPastValues = 5, kNonpadKeys = 6 };

// Tells the keys that a query sees by its position, which is its number plus an offset.
class Positioned {
 public:
  Positioned(NodeContext& n, const Tensor& scores)
      : n_(n),
        keys_(Positions(n, {1, scores.dim(3)})),
        queries_(n.Add(Positions(n, {scores.dim(2), 1}), Offset(scores.dim(2)))) {}

  Tensor UpTo(int64_t right) { return n_.Emit("less_equal", {keys_, Moved(right)}); }
  Tensor From(int64_t left) { return n_.Emit("greater_equal", {keys_, Moved(-left)}); }

 private:
  Tensor Moved(int64_t by) {
    return n_.Add(queries_, n_.Scalar(ir::kInt64, static_cast<double>(by)));
  }

  // Returns the number of keys before the first query. These are the keys of the past, or of the
  // cache without those that the queries themselves have put there; the latter differs in the
  // batch.
  Tensor Offset(int64_t queries) {
    if (n_.has_input(kNonpadKeys)) {
      const Tensor& valid = n_.input(kNonpadKeys);
      return n_.Sub(n_.Reshape(n_.Cast(valid, ir::kInt64), {valid.num_elements(), 1, 1, 1}),
                    n_.Scalar(ir::kInt64, static_cast<double>(queries)));
    }
    const int64_t past = n_.has_input(kPastKeys) ? n_.input(kPastKeys).dim(2) : 0;
    return n_.Scalar(ir::kInt64, static_cast<double>(past));
  }

  NodeContext& n_;
  Tensor keys_, queries_;
};

// Query i sees all keys of the past, and after them the keys up to number i.
Tensor CausalBias(NodeContext& n, const Tensor& scores) {
  const int64_t past = n.has_input(kPastKeys) ? n.input(kPastKeys).dim(2) : 0;
  const Tensor ones = n.BroadcastTo(n.Scalar(ir::kInt32, 1), {scores.dim(2), scores.dim(3)});
  const Tensor lower = n.Emit("triangle", {ones}, {{"upper", int64_t{0}}, {"offset", past}});
  return MaskBias(n, n.Cast(lower, ir::kBool), scores.element());
}

// The sum that is added to the scores. `may_hide_all`: a row of it may be all -infinity.
struct Bias {
  // Absent: nothing is added.
  Tensor sum = {};
  bool may_hide_all = false;
};

void AddTo(NodeContext& n, const Tensor& bias, Bias& sum) {
  sum.sum = sum.sum.exists() ? n.Add(sum.sum, bias) : bias;
}

// Returns the bias of a mask. Bools tell what is seen, other types are added. Keys past the mask's
// last one are not seen.
Tensor GivenMask(NodeContext& n, const Tensor& scores) {
  const Tensor& mask = n.input(kMask);
  const Tensor bias = mask.element().is_bool() ? MaskBias(n, mask, scores.element())
                                               : n.Cast(mask, scores.element());
  if (n.failed() || mask.rank() == 0) return bias;
  const int64_t missing = scores.dim(3) - mask.shape().back();
  // Before version 24 a mask of one key is for all keys.
  if (missing <= 0 || (mask.shape().back() == 1 && n.version() < 24)) return bias;
  Shape before(mask.shape().size(), 0), after = before;
  after.back() = missing;
  return n.Emit(
      "pad", {bias},
      {{"before", before}, {"after", after}, {"value", -std::numeric_limits<double>::infinity()}});
}

// Returns how far a query sees to one side; -1: without end.
int64_t WindowSize(NodeContext& n, std::string_view attribute) {
  const int64_t size = n.Int(attribute, -1);
  if (size < -1) n.Invalid("attribute {} is {}, expected at least -1", attribute, size);
  return size < int64_t{1} << 40 ? size : -1;
}

Bias BiasOf(NodeContext& n, const Tensor& scores) {
  Bias bias;
  if (n.has_input(kMask)) {
    AddTo(n, GivenMask(n, scores), bias);
    bias.may_hide_all = true;
  }
  const int64_t left = WindowSize(n, "left_window_size"),
                right = WindowSize(n, "right_window_size");
  const bool is_causal = n.Int("is_causal", 0) != 0, has_valid = n.has_input(kNonpadKeys);
  if (is_causal && !has_valid) AddTo(n, CausalBias(n, scores), bias);
  if (n.failed() || (left < 0 && right < 0 && !has_valid)) return bias;
  bias.may_hide_all = true;
  Positioned at(n, scores);
  const auto add = [&](const Tensor& is_visible) {
    AddTo(n, MaskBias(n, is_visible, scores.element()), bias);
  };
  if (is_causal && has_valid) add(at.UpTo(0));
  if (left >= 0) add(at.From(left));
  if (right >= 0) add(at.UpTo(right));
  if (has_valid) {
    const Tensor& valid = n.input(kNonpadKeys);
    add(n.Emit("less", {Positions(n, {1, scores.dim(3)}),
                        n.Reshape(n.Cast(valid, ir::kInt64), {valid.num_elements(), 1, 1, 1})}));
  }
  return bias;
}

// Returns for each query whether it sees a key at all. Absent: all queries do.
Tensor SeesAny(NodeContext& n, const Bias& bias) {
  if (n.failed() || !bias.may_hide_all || bias.sum.rank() == 0) return {};
  const Tensor best = n.Reduce("reduce_max", bias.sum, {bias.sum.rank() - 1}, true);
  const Tensor sees =
      n.Emit("not_equal", {best, n.ScalarLike(best, -std::numeric_limits<double>::infinity())});
  if (!n.failed() && sees.is_known()) {
    bool all = true;
    for (int64_t i = 0; i < sees.num_elements(); ++i) all = all && sees.constant->At(i) != 0;
    if (all) return {};
  }
  return sees;
}

// Returns x with 0 in the rows of queries that see nothing, for which a softmax gives no numbers.
Tensor WithoutHidden(NodeContext& n, const Tensor& sees, const Tensor& x) {
  if (n.failed() || !sees.exists()) return x;
  return n.Where(sees, x, n.ScalarLike(x, 0));
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

// Weights of each key for each query. Rows that see nothing are not yet removed.
struct Weights {
  Tensor weights = {};
  // Result of SeesAny.
  Tensor sees = {};
};

// Computes the scores of each query and key, and the weights. Output 3 is one of the stages.
Weights WeightsOf(NodeContext& n, const Tensor& q, const Tensor& k) {
  const double scale =
      n.has("scale") ? n.Float("scale", 1) : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  const Tensor factor = n.ScalarLike(q, std::sqrt(scale));
  Tensor scores =
      n.Emit("matmul", {n.Mul(q, factor), n.Mul(k, factor)}, {{"transpose_b", int64_t{1}}});
  std::vector<Tensor> stages = {scores};
  // The cap comes before the mask, or hidden keys would be seen a little.
  scores = Softcapped(n, scores, n.Float("softcap", 0));
  stages.push_back(scores);
  if (n.failed()) return {};
  const Bias bias = BiasOf(n, scores);
  if (bias.sum.exists()) scores = n.Add(scores, bias.sum);
  stages.push_back(scores);
  const Tensor wide = n.Cast(scores, SoftmaxType(n, q.element()));
  Weights y = {.weights = n.Cast(n.Emit("softmax", {wide}, {{"axis", int64_t{3}}}), q.element()),
               .sees = SeesAny(n, bias)};
  const int64_t stage = n.Int("qk_matmul_output_mode", 0);
  if (stage < 0 || stage > 3) {
    n.Invalid("attribute qk_matmul_output_mode is {}, expected 0 to 3", stage);
  } else if (n.wants_output(3)) {
    n.SetOutput(
        3, stage == 3 ? WithoutHidden(n, y.sees, y.weights) : stages[static_cast<size_t>(stage)]);
  }
  return y;
}

void RequireCaches(NodeContext& n) {
  const bool has_keys = n.has_input(kPastKeys), has_values = n.has_input(kPastValues);
  if (has_keys != has_values)
    n.Invalid("it has past_{} alone, expected keys and values", has_keys ? "key" : "value");
  if (has_keys && n.has_input(kNonpadKeys))
    n.Invalid("it has nonpad_kv_seqlen and past_key, expected one of them");
  if (n.has_input(kNonpadKeys)) n.RequireRank(kNonpadKeys, 1, 1);
  for (int i : {kPastKeys, kPastValues})
    if (n.has_input(i)) n.RequireRank(i, 4, 4);
}

void Attention(NodeContext& n) {
  n.RequireFloat(0);
  for (int i = 0; i < 3; ++i) n.RequireRank(i, 3, 4);
  RequireCaches(n);
  if (n.failed()) return;
  const bool are_merged = n.input(0).rank() == 3;
  const Tensor q = SplitHeads(n, n.input(0), n.Int("q_num_heads", 0));
  const int64_t kv_heads = n.Int("kv_num_heads", 0);
  const Tensor k = WithPast(n, n.input(kPastKeys), SplitHeads(n, n.input(1), kv_heads));
  const Tensor v = WithPast(n, n.input(kPastValues), SplitHeads(n, n.input(2), kv_heads));
  if (n.failed()) return;
  n.SetOutput(1, k);
  n.SetOutput(2, v);
  const Weights w = WeightsOf(n, q, ForQueryHeads(n, k, q.dim(1)));
  const Tensor y =
      WithoutHidden(n, w.sees, n.Emit("matmul", {w.weights, ForQueryHeads(n, v, q.dim(1))}));
  n.SetOutput(are_merged ? MergeHeads(n, y) : y);
}

// Returns cosines or sines for [batch, heads, sequence, half]: rows of a table by position, or
// those of each element of the batch.
Tensor Angles(NodeContext& n, const Tensor& cache, int64_t half) {
  Tensor table = n.has_input(3) ? n.Gather(cache, n.input(3), 0) : cache;
  if (n.failed() || table.rank() != 3) {
    n.Invalid("its tables are {}", TypeText(cache.type));
    return table;
  }
  table = n.SliceAxis(table, 2, 0, std::min(half, table.dim(2)));
  return n.Reshape(table, {table.dim(0), 1, table.dim(1), table.dim(2)});
}

// Turns pairs of elements, side by side or from two halves, by the angle of their position.
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
