// Reductions over any axes.
#include <algorithm>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

struct Domain {
  // Indexed by input axis.
  std::vector<bool> reduced;
  std::vector<int64_t> out_shape;
  // Axes like k0, k2, numbered as the input's axes.
  std::vector<Axis> reduce_axes;
  int64_t size = 1;
};

Domain ReadDomain(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  Domain d;
  d.reduced.assign(shape.size(), c.args.list("axis").empty());
  for (int64_t axis : c.args.list("axis")) {
    if (const std::optional<size_t> at = c.AxisAt("axis", axis)) d.reduced[*at] = true;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (d.reduced[i]) {
      d.reduce_axes.push_back({fmt::format("k{}", i), shape[i]});
      d.size *= shape[i];
    }
    if (!d.reduced[i]) d.out_shape.push_back(shape[i]);
    if (d.reduced[i] && c.args["keepdims"] != 0) d.out_shape.push_back(1);
  }
  return d;
}

// Returns the index of the input from the operator's variables.
std::vector<Value> InputIndex(OpContext& c, const Domain& d, Vars v) {
  std::vector<Value> index;
  size_t out = 0, reduce = d.out_shape.size();
  for (bool reduced : d.reduced) {
    index.push_back(reduced ? v[reduce++] : v[out]);
    if (!reduced || c.args["keepdims"] != 0) ++out;
  }
  return index;
}

TensorRef ReductionOp(OpContext& c, Combiner combiner, bool mean) {
  const Domain d = ReadDomain(c);
  TensorRef x = c.Input(c.args.shape());
  TensorRef reduced = c.b.Reduce("p0_red", NumberedAxes("ax", d.out_shape), d.reduce_axes, combiner,
                                 [&](Vars v) { return c.Widen(x.At(InputIndex(c, d, v))); });
  if (!mean) return reduced;
  return c.b.Compute("T_divide", NumberedAxes("ax", d.out_shape), [&](Vars v) {
    return reduced.At(v) / c.b.Constant(static_cast<double>(d.size), c.out_type);
  });
}

TensorRef ArgReduction(OpContext& c, Combiner combiner) {
  const Domain d = ReadDomain(c);
  TensorRef x = c.Input(c.args.shape());
  TensorRef pair = c.b.ReduceArg(
      "p0_red_temp", NumberedAxes("ax", d.out_shape), d.reduce_axes, combiner, [&](Vars v) {
        Value flat = v[d.out_shape.size()];
        for (size_t i = 1; i < d.reduce_axes.size(); ++i) {
          flat = flat * d.reduce_axes[i].extent + v[d.out_shape.size() + i];
        }
        return std::pair(Cast(ir::kInt32, flat), x.At(InputIndex(c, d, v)));
      });
  if (d.size > INT32_MAX)
    c.Fail("{} over {} elements: its index is 32 bits wide", CombinerName(combiner), d.size);
  return c.b.Compute("p0_red", NumberedAxes("ax", d.out_shape), [&](Vars v) { return pair.At(v); });
}

OpInfo Info(std::string name, std::string doc, std::function<TensorRef(OpContext&)> build) {
  return {.name = std::move(name),
          .family = "reductions",
          .doc = std::move(doc),
          .takes_shape = true,
          .parameters = {{.name = "axis",
                          .doc = "axes to reduce, one axis= each; none: all",
                          .min = -8,
                          .max = 7,
                          .default_value = std::nullopt,
                          .list = true},
                         {.name = "keepdims",
                          .doc = "reduced axes stay, with extent 1",
                          .min = 0,
                          .max = 1,
                          .default_value = 0}},
          .build = std::move(build)};
}

}  // namespace

std::vector<OpInfo> ReduceOps() {
  return {
      Info("sum", "sum over axes",
           [](OpContext& c) { return ReductionOp(c, Combiner::kSum, false); }),
      Info("mean", "average over axes",
           [](OpContext& c) { return ReductionOp(c, Combiner::kSum, true); }),
      Info("max", "maximum over axes",
           [](OpContext& c) { return ReductionOp(c, Combiner::kMax, false); }),
      Info("min", "minimum over axes",
           [](OpContext& c) { return ReductionOp(c, Combiner::kMin, false); }),
      Info("prod", "product over axes",
           [](OpContext& c) { return ReductionOp(c, Combiner::kProd, false); }),
      Info("argmax", "index of the first maximum, int32",
           [](OpContext& c) { return ArgReduction(c, Combiner::kArgMax); }),
      Info("argmin", "index of the first minimum, int32",
           [](OpContext& c) { return ArgReduction(c, Combiner::kArgMin); }),
  };
}

}  // namespace kiln::dag
