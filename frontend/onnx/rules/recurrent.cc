// Recurrent layers, unrolled over the steps of their sequences.
#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// An unrolled step is some ten nodes.
constexpr int64_t kMaxSteps = 512;

using Activation = std::function<Tensor(const Tensor&)>;

Tensor Affine(NodeContext& n, const Tensor& x, double alpha, double beta) {
  return n.Add(n.Mul(x, n.ScalarLike(x, alpha)), n.ScalarLike(x, beta));
}

// Activations by their names. Those with parameters take them from two lists, one after the other.
class Activations {
 public:
  Activations(NodeContext& n, std::vector<std::string> names)
      : n_(n),
        names_(std::move(names)),
        alphas_(n.Floats("activation_alpha")),
        betas_(n.Floats("activation_beta")) {
    for (std::string& name : names_)
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  }

  Activation Next() {
    if (next_ >= names_.size()) {
      n_.Invalid("it has {} activations", names_.size());
      return [](const Tensor& x) { return x; };
    }
    return Make(names_[next_++]);
  }

 private:
  static double Take(std::vector<double>& values, double otherwise) {
    if (values.empty()) return otherwise;
    const double value = values.front();
    values.erase(values.begin());
    return value;
  }

  Activation Plain(std::string op, graph::Attributes attributes = {}) {
    return [this, op = std::move(op), attributes](const Tensor& x) {
      return n_.Emit(op, {x}, attributes);
    };
  }

  Activation Make(const std::string& name) {
    for (const char* plain : {"relu", "tanh", "sigmoid", "softsign", "softplus"})
      if (name == plain) return Plain(plain);
    if (name == "leakyrelu") return Plain("leaky_relu", {{"alpha", Take(alphas_, 0.01)}});
    if (name == "elu") return Plain("elu", {{"alpha", Take(alphas_, 1)}});
    if (name == "thresholdedrelu") return Plain("thresholded_relu", {{"alpha", Take(alphas_, 1)}});
    if (name == "hardsigmoid") {
      const double alpha = Take(alphas_, 0.2), beta = Take(betas_, 0.5);
      return Plain("hard_sigmoid", {{"alpha", alpha}, {"beta", beta}});
    }
    const double alpha = Take(alphas_, 1), beta = Take(betas_, name == "affine" ? 0 : 1);
    if (name == "affine")
      return [this, alpha, beta](const Tensor& x) { return Affine(n_, x, alpha, beta); };
    if (name == "scaledtanh")
      return [this, alpha, beta](const Tensor& x) {
        return Affine(n_, n_.Emit("tanh", {Affine(n_, x, beta, 0)}), alpha, 0);
      };
    n_.Unsupported("the activation '{}'", name);
    return [](const Tensor& x) { return x; };
  }

  NodeContext& n_;
  std::vector<std::string> names_;
  size_t next_ = 0;
  std::vector<double> alphas_, betas_;
};

// Inputs of the steps of one direction. Weights have no axis of directions.
struct Direction {
  // [gates hidden, input], [gates hidden, hidden].
  Tensor w, r;
  // [gates hidden], or absent.
  Tensor w_bias, r_bias;
  // [3 hidden], or absent.
  Tensor peepholes;
  // Initial state: [batch, hidden].
  Tensor h, c;
};

struct State {
  Tensor h, c;
};

// Computes one step from x W^T [batch, gates hidden] and the state before.
using Step = std::function<State(const Direction&, const Tensor& x, const State&)>;

class Layer {
 public:
  Layer(NodeContext& n, int gates, bool has_cell) : n_(n), gates_(gates), has_cell_(has_cell) {}

  // Checks the shapes. If it fails, nothing else may be called.
  void Read() {
    n_.RequireFloat(0);
    for (int i = 0; i < 3; ++i) n_.RequireRank(i, 3, 3);
    if (n_.failed()) return;
    const Tensor &x = n_.input(0), &r = n_.input(2);
    batch_first_ = n_.Int("layout", 0) != 0;
    directions_ = n_.input(1).dim(0);
    hidden_ = r.dim(2);
    steps_ = x.dim(batch_first_ ? 1 : 0);
    batch_ = x.dim(batch_first_ ? 0 : 1);
    const std::string direction = n_.Text("direction", "forward");
    const bool fits = directions_ == (direction == "bidirectional" ? 2 : 1) &&
                      r.dim(0) == directions_ && r.dim(1) == gates_ * hidden_ &&
                      n_.input(1).dim(1) == gates_ * hidden_ && n_.input(1).dim(2) == x.dim(2);
    if (!fits) return n_.Invalid("its weights don't fit its input");
    is_reverse_ = direction == "reverse";
    clip_ = n_.Float("clip", 0);
    if (steps_ > kMaxSteps)
      n_.Unsupported("a sequence of {} steps; up to {} are unrolled", steps_, kMaxSteps);
  }

  int64_t hidden() const { return hidden_; }

  // Returns the i-th of gates that stand side by side.
  Tensor Gate(const Tensor& gates, int64_t i) {
    return n_.SliceAxis(gates, gates.rank() - 1, i * hidden_, hidden_);
  }
  // Keeps gates before their activation within [-clip, clip], if there is a clip.
  Tensor Clipped(const Tensor& x) {
    return clip_ > 0 ? n_.Emit("clip", {x}, {{"min", -clip_}, {"max", clip_}}) : x;
  }
  Tensor Product(const Tensor& x, const Tensor& weights) {
    return n_.Emit("matmul", {x, weights}, {{"transpose_b", int64_t{1}}});
  }

  // Runs the step of `make_step`, which takes the next activations, over each direction.
  void Run(const std::function<Step()>& make_step) {
    std::vector<Tensor> ys, hs, cs;
    for (int64_t d = 0; d < directions_ && !n_.failed(); ++d) {
      const Step step = make_step();
      const bool backwards = is_reverse_ || d == 1;
      State last;
      ys.push_back(RunDirection(ReadDirection(d), step, backwards, last));
      hs.push_back(n_.Reshape(last.h, {1, batch_, hidden_}));
      if (has_cell_) cs.push_back(n_.Reshape(last.c, {1, batch_, hidden_}));
    }
    if (n_.failed()) return;
    // The shapes are [steps, directions, batch, hidden] and [directions, batch, hidden].
    const Tensor y = n_.Concat(ys, 1), h = n_.Concat(hs, 0);
    n_.SetOutput(0, batch_first_ ? n_.Transpose(y, {2, 0, 1, 3}) : y);
    n_.SetOutput(1, batch_first_ ? n_.Transpose(h, {1, 0, 2}) : h);
    if (!has_cell_) return;
    const Tensor c = n_.Concat(cs, 0);
    n_.SetOutput(2, batch_first_ ? n_.Transpose(c, {1, 0, 2}) : c);
  }

 private:
  // Returns part d of a tensor along its first axis, without that axis.
  Tensor Part(const Tensor& x, int64_t d) {
    if (!x.exists() || n_.failed()) return x;
    Shape shape(x.shape().begin() + 1, x.shape().end());
    return n_.Reshape(n_.SliceAxis(x, 0, d, 1), std::move(shape));
  }

  Tensor InitialState(int i, int64_t d) {
    const Tensor& x = n_.input(i);
    if (!x.exists()) return n_.BroadcastTo(n_.ScalarLike(n_.input(0), 0), {batch_, hidden_});
    n_.RequireRank(i, 3, 3);
    if (n_.failed()) return x;
    return Part(batch_first_ ? n_.Transpose(x, {1, 0, 2}) : x, d);
  }

  Direction ReadDirection(int64_t d) {
    Direction direction;
    direction.w = Part(n_.input(1), d);
    direction.r = Part(n_.input(2), d);
    const Tensor& bias = n_.input(3);
    if (bias.exists()) {
      n_.RequireRank(3, 2, 2);
      if (bias.dim(1) != 2 * gates_ * hidden_) n_.Invalid("a bias of {}", TypeText(bias.type));
      const Tensor both = Part(bias, d);
      direction.w_bias = n_.SliceAxis(both, 0, 0, gates_ * hidden_);
      direction.r_bias = n_.SliceAxis(both, 0, gates_ * hidden_, gates_ * hidden_);
    }
    direction.h = InitialState(5, d);
    if (has_cell_) {
      direction.c = InitialState(6, d);
      if (n_.has_input(7)) n_.RequireRank(7, 2, 2);
      direction.peepholes = Part(n_.input(7), d);
    }
    return direction;
  }

  // Returns whether step t is inside of each sequence. Absent: all sequences have full length.
  Tensor IsInside(int64_t t) {
    const Tensor& lengths = n_.input(4);
    if (!lengths.exists()) return {};
    const Tensor inside =
        n_.Emit("greater", {lengths, n_.ScalarLike(lengths, static_cast<double>(t))});
    return n_.Reshape(inside, {batch_, 1});
  }

  Tensor RunDirection(const Direction& direction, const Step& step, bool backwards, State& state) {
    const Tensor x = batch_first_ ? n_.Transpose(n_.input(0), {1, 0, 2}) : n_.input(0);
    const Tensor projected = Product(x, direction.w);
    state = {direction.h, direction.c};
    std::vector<Tensor> ys(static_cast<size_t>(steps_));
    for (int64_t i = 0; i < steps_ && !n_.failed(); ++i) {
      const int64_t t = backwards ? steps_ - 1 - i : i;
      State next = step(direction, Part(projected, t), state);
      Tensor y = next.h;
      if (const Tensor inside = IsInside(t); inside.exists()) {
        y = n_.Where(inside, next.h, n_.ScalarLike(next.h, 0));
        next.h = n_.Where(inside, next.h, state.h);
        if (has_cell_) next.c = n_.Where(inside, next.c, state.c);
      }
      state = next;
      ys[static_cast<size_t>(t)] = n_.Reshape(y, {1, 1, batch_, hidden_});
    }
    return n_.Concat(std::move(ys), 0);
  }

  NodeContext& n_;
  int gates_;
  bool has_cell_;
  bool batch_first_ = false, is_reverse_ = false;
  int64_t directions_ = 1, hidden_ = 1, steps_ = 1, batch_ = 1;
  double clip_ = 0;
};

Tensor Plus(NodeContext& n, const Tensor& x, const Tensor& bias) {
  return bias.exists() ? n.Add(x, bias) : x;
}

Activations ReadActivations(NodeContext& n, const std::vector<std::string>& otherwise) {
  std::vector<std::string> names = n.Texts("activations");
  if (names.empty()) {
    // Both directions have the same activations.
    names = otherwise;
    names.insert(names.end(), otherwise.begin(), otherwise.end());
  }
  return {n, std::move(names)};
}

void Rnn(NodeContext& n) {
  Layer layer(n, 1, false);
  layer.Read();
  Activations activations = ReadActivations(n, {"tanh"});
  if (n.failed()) return;
  layer.Run([&]() -> Step {
    return [&, f = activations.Next()](const Direction& d, const Tensor& x, const State& state) {
      const Tensor sum = n.Add(x, layer.Product(state.h, d.r));
      return State{f(layer.Clipped(Plus(n, Plus(n, sum, d.w_bias), d.r_bias))), {}};
    };
  });
}

// The gates are z, r, h.
void Gru(NodeContext& n) {
  Layer layer(n, 3, false);
  layer.Read();
  Activations activations = ReadActivations(n, {"sigmoid", "tanh"});
  const bool resets_product = n.Int("linear_before_reset", 0) != 0;
  if (n.failed()) return;
  layer.Run([&]() -> Step {
    Activation f = activations.Next(), g = activations.Next();
    return [&, f, g](const Direction& d, const Tensor& x, const State& state) {
      const Tensor &h = state.h, wx = Plus(n, x, d.w_bias);
      const int64_t hidden = layer.hidden();
      const Tensor r_gates = n.SliceAxis(d.r, 0, 0, 2 * hidden);
      const Tensor r_hidden = n.SliceAxis(d.r, 0, 2 * hidden, hidden);
      const Tensor bias_gates =
          d.r_bias.exists() ? n.SliceAxis(d.r_bias, 0, 0, 2 * hidden) : Tensor();
      const Tensor bias_hidden =
          d.r_bias.exists() ? n.SliceAxis(d.r_bias, 0, 2 * hidden, hidden) : Tensor();
      const Tensor rh = Plus(n, layer.Product(h, r_gates), bias_gates);
      const Tensor z = f(layer.Clipped(n.Add(layer.Gate(wx, 0), layer.Gate(rh, 0))));
      const Tensor r = f(layer.Clipped(n.Add(layer.Gate(wx, 1), layer.Gate(rh, 1))));
      const Tensor from_h = resets_product
                                ? n.Mul(r, Plus(n, layer.Product(h, r_hidden), bias_hidden))
                                : Plus(n, layer.Product(n.Mul(r, h), r_hidden), bias_hidden);
      const Tensor candidate = g(layer.Clipped(n.Add(layer.Gate(wx, 2), from_h)));
      const Tensor rest = n.Sub(n.ScalarLike(z, 1), z);
      return State{n.Add(n.Mul(rest, candidate), n.Mul(z, h)), {}};
    };
  });
}

// The gates are i, o, f, c; the peepholes are i, o, f.
void Lstm(NodeContext& n) {
  Layer layer(n, 4, true);
  layer.Read();
  Activations activations = ReadActivations(n, {"sigmoid", "tanh", "tanh"});
  const bool couples = n.Int("input_forget", 0) != 0;
  if (n.failed()) return;
  layer.Run([&]() -> Step {
    Activation f = activations.Next(), g = activations.Next(), h = activations.Next();
    return [&, f, g, h](const Direction& d, const Tensor& x, const State& state) {
      Tensor gates = n.Add(x, layer.Product(state.h, d.r));
      gates = Plus(n, Plus(n, gates, d.w_bias), d.r_bias);
      const auto peek = [&](int64_t gate, const Tensor& cell) {
        const Tensor sum = layer.Gate(gates, gate);
        const Tensor seen =
            d.peepholes.exists() ? n.Add(sum, n.Mul(layer.Gate(d.peepholes, gate), cell)) : sum;
        return layer.Clipped(seen);
      };
      const Tensor in = f(peek(0, state.c));
      const Tensor forget = couples ? n.Sub(n.ScalarLike(in, 1), in) : f(peek(2, state.c));
      const Tensor candidate = g(layer.Clipped(layer.Gate(gates, 3)));
      const Tensor c = n.Add(n.Mul(forget, state.c), n.Mul(in, candidate));
      const Tensor out = f(peek(1, c));
      return State{n.Mul(out, h(c)), c};
    };
  });
}

}  // namespace

std::vector<Rule> RecurrentRules() { return {{"RNN", Rnn}, {"GRU", Gru}, {"LSTM", Lstm}}; }

}  // namespace kiln::frontend
