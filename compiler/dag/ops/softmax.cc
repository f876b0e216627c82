// Softmax along one axis: maximum, exponential, sum, quotient.
#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

TensorRef Softmax(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  const size_t axis = c.AxisAt("axis", c.args["axis"]).value_or(0);
  const auto at = static_cast<std::ptrdiff_t>(axis);
  std::vector<int64_t> outer = shape;
  outer.erase(outer.begin() + at);
  const Axis k{"k", shape[axis]};

  // Make the index of the whole tensor from the other axes and k, and the reverse.
  auto insert = [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end() - 1);
    index.insert(index.begin() + at, v.back());
    return index;
  };
  auto without = [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end());
    index.erase(index.begin() + at);
    return index;
  };

  TensorRef x = c.Input(shape);
  TensorRef max = c.b.Reduce("T_softmax_maxelem", NumberedAxes("i", outer), {k}, Combiner::kMax,
                             [&](Vars v) { return c.Widen(x.At(insert(v))); });
  TensorRef exp = c.b.Compute("T_softmax_exp", NumberedAxes("i", shape),
                              [&](Vars v) { return Exp(c.Widen(x.At(v)) - max.At(without(v))); });
  TensorRef sum = c.b.Reduce("T_softmax_expsum", NumberedAxes("i", outer), {k}, Combiner::kSum,
                             [&](Vars v) { return exp.At(insert(v)); });
  return c.b.Compute("T_softmax_norm", NumberedAxes("i", shape),
                     [&](Vars v) { return exp.At(v) / sum.At(without(v)); });
}

}  // namespace

std::vector<OpInfo> SoftmaxOps() {
  return {{.name = "softmax",
           .family = "normalizations",
           .doc = "exp(x - max) / sum along one axis",
           .takes_shape = true,
           .parameters = {{.name = "axis",
                           .doc = "axis; negative: from the end",
                           .min = -8,
                           .max = 7,
                           .default_value = -1}},
           .build = Softmax}};
}

}  // namespace kiln::dag
