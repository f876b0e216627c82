// Losses of classifiers.
#include <numeric>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Losses and weights of the targets, which the reductions combine.
struct PickedLoss {
  Tensor loss, weights;
};

// Computes -log_probabilities[n, target[n, ...], ...] times the weight of the target; 0 for a
// target that is ignored.
PickedLoss Pick(NodeContext& n, const Tensor& log_probabilities, const Tensor& target,
                const Tensor& class_weights) {
  const Tensor& x = log_probabilities;
  Tensor ids = target, is_ignored;
  if (n.has("ignore_index")) {
    const Tensor ignored = n.ScalarLike(target, static_cast<double>(n.Int("ignore_index", 0)));
    is_ignored = n.Emit("equal", {target, ignored});
    ids = n.Where(is_ignored, n.ScalarLike(target, 0), target);
  }
  Shape shape = target.shape();
  shape.insert(shape.begin() + 1, 1);
  Tensor picked = n.Emit("gather_elements", {x, n.Reshape(ids, shape)}, {{"axis", int64_t{1}}});
  picked = n.Reshape(picked, target.shape());
  Tensor weights = class_weights.exists() ? n.Gather(class_weights, ids, 0)
                                          : n.BroadcastTo(n.ScalarLike(x, 1), target.shape());
  if (is_ignored.exists()) weights = n.Where(is_ignored, n.ScalarLike(x, 0), weights);
  return {n.Mul(n.Emit("negative", {picked}), weights), weights};
}

Tensor Reduced(NodeContext& n, const PickedLoss& picked) {
  const std::string reduction = n.Text("reduction", "mean");
  if (n.failed() || reduction == "none") return picked.loss;
  Shape axes(picked.loss.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  const Tensor sum = n.Reduce("reduce_sum", picked.loss, axes, false);
  if (reduction == "sum") return sum;
  return n.Div(sum, n.Reduce("reduce_sum", picked.weights, axes, false));
}

void RequireClasses(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 2);
  n.RequireRank(1, 1);
  if (n.failed()) return;
  Shape shape = n.input(0).shape();
  shape.erase(shape.begin() + 1);
  if (n.input(1).shape() != shape) n.Invalid("its scores and targets have different shapes");
}

void NegativeLogLikelihood(NodeContext& n) {
  RequireClasses(n);
  if (n.failed()) return;
  n.SetOutput(Reduced(n, Pick(n, n.input(0), n.input(1), n.input(2))));
}

void SoftmaxCrossEntropy(NodeContext& n) {
  RequireClasses(n);
  if (n.failed()) return;
  const Tensor log_probabilities = n.Emit("log_softmax", {n.input(0)}, {{"axis", int64_t{1}}});
  n.SetOutput(Reduced(n, Pick(n, log_probabilities, n.input(1), n.input(2))));
  n.SetOutput(1, log_probabilities);
}

}  // namespace

std::vector<Rule> LossRules() {
  return {{"NegativeLogLikelihoodLoss", NegativeLogLikelihood},
          {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy}};
}

}  // namespace kiln::frontend
