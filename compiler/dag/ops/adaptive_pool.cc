// Adaptive pooling cuts the image into a given number of windows, whose sizes may differ by an
// element and which may overlap. Global pooling has one window.
#include <numeric>

#include "compiler/dag/ops/pool.h"

namespace kiln::dag {
namespace {

// `windows` windows over `extent` elements. Window o is [floor(o*extent/windows),
// ceil((o+1)*extent/windows)).
struct Cut {
  int64_t extent, windows;

  bool even() const { return extent % windows == 0; }
  int64_t Longest() const {
    if (even()) return extent / windows;
    const int64_t rest = extent % windows;
    return extent / windows + (windows % rest == 0 ? 1 : 2);
  }
  Value Begin(const Value& o) const {
    return even() ? o * (extent / windows) : FloorDiv(o * extent, windows);
  }
  Value End(const Value& o) const { return FloorDiv(o * extent + (extent + windows - 1), windows); }
};

// Returns the element that step `rv` of window o reads, or `outside` past the window's end.
Value Element(OpContext& c, const TensorRef& data, Layout layout, const std::vector<Cut>& cuts,
              Vars v, double outside) {
  std::vector<Value> index(v.begin(), v.begin() + layout.dims + 2);
  std::optional<Value> inside;
  for (size_t d = 0; d < cuts.size(); ++d) {
    const Value& o = v[layout.first() + d];
    const Value at = cuts[d].Begin(o) + v[static_cast<size_t>(layout.dims) + 2 + d];
    index[layout.first() + d] = at;
    if (cuts[d].even()) continue;
    const Value here = at < cuts[d].End(o) && at < cuts[d].extent;
    inside = inside ? *inside && here : here;
  }
  if (!inside) return data.At(index);
  return If(*inside, data.At(index), c.b.Constant(outside, data.type()));
}

// Old keys spell out the size of a window of global pooling.
std::string OldSize(ir::Type type, size_t axis, int64_t extent) {
  return fmt::format(
      "{0}((select((bool)1, ((ax{1} + 1)*{2}), (((ax{1} + 1)*{2}) + 1)) - (ax{1}*{2})))",
      TypeName(type), axis, extent);
}

}  // namespace

TensorRef WriteAdaptivePool(OpContext& c, Layout layout, PoolKind kind,
                            const std::vector<int64_t>& out, const TensorRef& data) {
  const std::vector<int64_t> in = layout.Image(data.shape());
  const int64_t channels = data.shape()[static_cast<size_t>(layout.channel_axis())];
  const bool max = kind == PoolKind::kMax;
  if (!max) c.RequireFloat();
  std::vector<Cut> cuts;
  std::vector<Axis> reduce;
  for (size_t d = 0; d < in.size(); ++d) {
    cuts.push_back({in[d], out[d]});
    reduce.push_back({fmt::format("rv{}", d), cuts[d].Longest()});
  }
  const std::vector<Axis> axes =
      NumberedAxes("ax", Arrange(layout, data.shape()[0], channels, out));
  TensorRef pooled = c.b.Reduce(max ? "adaptive_pool_max" : "adaptive_pool_sum", axes, reduce,
                                max ? Combiner::kMax : Combiner::kSum, [&](Vars v) {
                                  const Value element = Element(c, data, layout, cuts, v,
                                                                max ? LowestValue(c.type) : 0);
                                  return max ? element : c.Widen(element);
                                });
  if (max) return pooled;
  Attrs attrs;
  if (out == std::vector<int64_t>(out.size(), 1)) {
    std::vector<std::string> sizes;
    for (size_t d = 0; d < in.size(); ++d)
      sizes.push_back(OldSize(c.type, layout.first() + d, in[d]));
    std::vector<std::string> names;
    for (const Axis& axis : axes) names.push_back(axis.name);
    attrs.hash_body =
        fmt::format("(adaptive_pool_sum[{}]/{})", fmt::join(names, ", "),
                    sizes.size() == 1 ? sizes[0] : fmt::format("({})", fmt::join(sizes, "*")));
  }
  return c.b.Compute(
      "adaptive_pool_avg", axes,
      [&](Vars v) {
        std::optional<Value> size;
        for (size_t d = 0; d < cuts.size(); ++d) {
          const Value& o = v[layout.first() + d];
          const Value length =
              cuts[d].even() ? c.b.Constant(static_cast<double>(cuts[d].Longest()), c.out_type)
                             : Cast(c.out_type, cuts[d].End(o) - cuts[d].Begin(o));
          size = size ? *size * length : length;
        }
        return Cast(c.type, pooled.At(v) / *size);
      },
      attrs);
}

namespace {

OpInfo Info(Layout layout, PoolKind kind, bool global) {
  std::vector<Parameter> parameters = ImageParameters(layout.dims);
  parameters.push_back({.name = "C", .doc = "channels"});
  if (!global) AddExtents(parameters, layout.dims, "O", "output");
  const char* what = kind == PoolKind::kMax ? "maximum" : "average";
  return {.name = fmt::format("{}_{}_pool{}d_{}", global ? "global" : "adaptive",
                              kind == PoolKind::kMax ? "max" : "avg", layout.dims, layout.Name()),
          .family = "pooling",
          .doc = global ? fmt::format("{} of each image of [{}]", what, layout.ShapeDoc())
                        : fmt::format("{} of each part of the images of [{}], cut evenly", what,
                                      layout.ShapeDoc()),
          .parameters = std::move(parameters),
          .channel_axis = layout.channel_axis(),
          .build = [=](OpContext& c) {
            const std::vector<int64_t> out =
                global ? std::vector<int64_t>(static_cast<size_t>(layout.dims), 1)
                       : ReadExtents(c, layout.dims, "O");
            TensorRef data =
                c.Input(Arrange(layout, c.args["N"], c.args["C"], ReadExtents(c, layout.dims, "")));
            return WriteAdaptivePool(c, layout, kind, out, data);
          }};
}

}  // namespace

std::vector<OpInfo> AdaptivePoolOps() {
  std::vector<OpInfo> ops;
  for (bool global : {true, false}) {
    for (int dims : {2, 1}) {
      if (global && dims == 1) continue;
      for (PoolKind kind : {PoolKind::kMax, PoolKind::kAvg}) {
        for (bool last : {false, true}) ops.push_back(Info({dims, last}, kind, global));
      }
    }
  }
  return ops;
}

}  // namespace kiln::dag
