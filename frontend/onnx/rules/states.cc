// Networks that run step by step and keep a state: caches that are written in place, convolutions
// over the past, and attention whose state is a matrix.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/rules/families.h"

namespace kiln::frontend {
namespace {

// An unrolled step is some ten nodes.
constexpr int64_t kMaxSteps = 512;

// ---- caches

// Returns the number of the update for each place of the cache along the axis: [batch, 1, ...,
// places, ..., 1]. A number may name no update.
Tensor UpdateNumbers(NodeContext& n, const Tensor& cache, int64_t axis, bool circular) {
  Shape places(cache.shape().size(), 1), batch = places;
  places[static_cast<size_t>(axis)] = cache.dim(axis);
  batch[0] = cache.dim(0);
  Shape ids(static_cast<size_t>(cache.dim(axis)));
  std::iota(ids.begin(), ids.end(), 0);
  Tensor numbers = n.Constant(places, ids);
  if (n.has_input(2)) numbers = n.Sub(numbers, n.Reshape(n.Cast(n.input(2), ir::kInt64), batch));
  if (circular) numbers = n.Emit("mod", {numbers, n.Constant({}, {cache.dim(axis)})});
  return numbers;
}

// Writes updates into the cache from a place on, which may differ in the batch.
void TensorScatter(NodeContext& n) {
  n.RequireRank(0, 2);
  n.RequireRank(1, n.input(0).rank(), n.input(0).rank());
  if (n.has_input(2)) n.RequireRank(2, 1, 1);
  const std::string mode = n.Text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    n.Invalid("attribute mode is '{}', expected linear or circular", mode);
  if (n.failed()) return;
  const Tensor &cache = n.input(0), &update = n.input(1);
  const int64_t axis = n.Axis(n.Int("axis", -2), cache.rank());
  if (axis == 0) n.Invalid("axis 0 is that of the batch");
  Shape expected = cache.shape();
  expected[static_cast<size_t>(axis)] = std::min(update.dim(axis), cache.dim(axis));
  if (!n.failed() && update.shape() != expected)
    n.Invalid("an update of {} for a cache of {}", TypeText(update.type), TypeText(cache.type));
  if (n.failed()) return;
  const Tensor numbers = UpdateNumbers(n, cache, axis, mode == "circular");
  const int64_t last = update.dim(axis) - 1;
  const Tensor is_written =
      n.Emit("logical_and", {n.Emit("greater_equal", {numbers, n.Constant({}, {0})}),
                             n.Emit("less_equal", {numbers, n.Constant({}, {last})})});
  const Tensor inside =
      n.Emit("clip", {numbers}, {{"min", 0.0}, {"max", static_cast<double>(last)}});
  const Tensor written =
      n.Emit("gather_elements", {update, n.BroadcastTo(inside, cache.shape())}, {{"axis", axis}});
  n.SetOutput(n.Where(is_written, written, cache));
}

// ---- convolutions

Tensor Activated(NodeContext& n, const Tensor& x) {
  const std::string name = n.Text("activation", "none");
  if (name == "none") return x;
  if (name == "silu" || name == "swish") return n.Emit("silu", {x});
  n.Invalid("attribute activation is '{}', expected silu, swish or none", name);
  return x;
}

// Convolves each channel by itself over the steps so far. The steps before the first one are the
// state, or zeros.
void CausalConvolution(NodeContext& n) {
  n.RequireFloat(0);
  for (int i = 0; i < 2; ++i) n.RequireRank(i, 3, 3);
  if (n.has_input(3)) n.RequireRank(3, 3, 3);
  if (n.failed()) return;
  const Tensor &x = n.input(0), &w = n.input(1);
  const int64_t past = w.dim(2) - 1;
  const Shape state = {x.dim(0), x.dim(1), past};
  if (w.dim(0) != x.dim(1) || w.dim(1) != 1 || (n.has_input(3) && n.input(3).shape() != state)) {
    return n.Invalid("weights of {} and a state of {} for {}", TypeText(w.type),
                     n.has_input(3) ? TypeText(n.input(3).type) : "nothing", TypeText(x.type));
  }
  Tensor all = x;
  if (n.has_input(3)) {
    all = n.Concat({n.input(3), x}, 2);
  } else if (past > 0) {
    all = n.Emit("pad", {x}, {{"before", Shape{0, 0, past}}, {"after", Shape{0, 0, 0}}});
  }
  Tensor y = n.Emit("depthwise_conv", {all, w});
  if (n.has_input(2)) y = n.Add(y, n.Reshape(n.input(2), {1, x.dim(1), 1}));
  n.SetOutput(0, Activated(n, y));
  if (!n.failed()) n.SetOutput(1, n.SliceAxis(all, 2, x.dim(2), past));
}

// ---- linear attention

// Returns [batch, steps, heads size] as [batch, heads, steps, size], in float32.
Tensor Heads(NodeContext& n, const Tensor& x, int64_t heads) {
  if (n.failed() || x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    n.Invalid("{} in {} heads", TypeText(x.type), heads);
    return x;
  }
  const Tensor split = n.Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return n.Transpose(n.Cast(split, ir::kFloat32), {0, 2, 1, 3});
}

class LinearAttention {
 public:
  explicit LinearAttention(NodeContext& n) : n_(n) {}

  void Write() {
    Read();
    if (n_.failed()) return;
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < steps_ && !n_.failed(); ++t) rows.push_back(Step(t));
    const Tensor y = n_.Transpose(n_.Concat(std::move(rows), 2), {0, 2, 1, 3});
    if (n_.failed()) return;
    const Tensor flat = n_.Reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
    n_.SetOutput(0, n_.Cast(flat, n_.input(0).element()));
    n_.SetOutput(1,
                 n_.Cast(state_, n_.has_input(3) ? n_.input(3).element() : n_.input(0).element()));
  }

 private:
  void Read() {
    n_.RequireFloat(0);
    const std::string rule = n_.Text("update_rule", "gated_delta");
    const bool is_known =
        rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta";
    if (!is_known) n_.Invalid("attribute update_rule is '{}'", rule);
    const bool decays = rule.starts_with("gated"), corrects = rule.ends_with("delta");
    if (n_.has_input(4) != decays || n_.has_input(5) != corrects)
      n_.Invalid("update_rule {} with{} decay and with{} beta", rule, n_.has_input(4) ? "" : "out",
                 n_.has_input(5) ? "" : "out");
    const int64_t q_heads = n_.Count("q_num_heads", 0, 1);
    heads_ = n_.Count("kv_num_heads", 0, 1);
    q_ = Heads(n_, n_.input(0), q_heads);
    k_ = Heads(n_, n_.input(1), heads_);
    v_ = Heads(n_, n_.input(2), heads_);
    if (decays) decay_ = Heads(n_, n_.input(4), heads_);
    if (corrects && !n_.failed())
      beta_ = Heads(n_, n_.input(5), n_.input(5).dim(2) == 1 ? 1 : heads_);
    if (n_.failed()) return;
    steps_ = q_.dim(2);
    group_ = q_heads / heads_;
    if (q_heads % heads_ != 0 || k_.dim(3) != q_.dim(3) || k_.dim(2) != steps_ ||
        v_.dim(2) != steps_)
      return n_.Invalid("{}, {} and {} in {} and {} heads", TypeText(n_.input(0).type),
                        TypeText(n_.input(1).type), TypeText(n_.input(2).type), q_heads, heads_);
    if (steps_ > kMaxSteps)
      return n_.Unsupported("{} steps: they are unrolled, up to {}", steps_, kMaxSteps);
    const double scale = n_.Float("scale", 0);
    scale_ = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q_.dim(3)));
    state_ = n_.has_input(3) ? n_.Cast(n_.input(3), ir::kFloat32)
                             : n_.BroadcastTo(n_.Scalar(ir::kFloat32, 0),
                                              {q_.dim(0), heads_, k_.dim(3), v_.dim(3)});
  }

  // Returns step t as [batch, heads, 1, size].
  Tensor At(const Tensor& x, int64_t t) { return n_.SliceAxis(x, 2, t, 1); }
  // Returns [batch, heads, size, 1].
  Tensor Column(const Tensor& x) { return n_.Reshape(x, {x.dim(0), x.dim(1), x.dim(3), 1}); }

  // Returns the result for the queries of step t, and updates the state.
  Tensor Step(int64_t t) {
    const Tensor key = At(k_, t);
    Tensor value = At(v_, t);
    if (decay_.exists()) state_ = n_.Mul(state_, n_.Emit("exp", {Column(At(decay_, t))}));
    if (beta_.exists()) {
      const Tensor there = n_.Emit("matmul", {key, state_});
      value = n_.Mul(At(beta_, t), n_.Sub(value, there));
    }
    if (n_.failed()) return Tensor::Missing();
    state_ = n_.Add(state_, n_.Mul(Column(key), value));
    // The query heads of one state are rows of one product.
    const Tensor query = n_.Reshape(At(q_, t), {q_.dim(0), heads_, group_, q_.dim(3)});
    const Tensor read = n_.Emit("matmul", {query, state_});
    const Tensor scaled = n_.Mul(read, n_.Scalar(ir::kFloat32, scale_));
    return n_.Reshape(scaled, {q_.dim(0), heads_ * group_, 1, v_.dim(3)});
  }

  NodeContext& n_;
  Tensor q_, k_, v_, decay_, beta_, state_;
  int64_t heads_ = 1, group_ = 1, steps_ = 0;
  double scale_ = 1;
};

}  // namespace

std::vector<Rule> StateRules() {
  return {{"TensorScatter", TensorScatter},
          {"CausalConvWithState", CausalConvolution},
          {"LinearAttention", [](NodeContext& n) { LinearAttention(n).Write(); }}};
}

}  // namespace kiln::frontend
