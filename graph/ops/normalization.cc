// Softmax, and normalization by means and variances.
#include <cmath>

#include "compiler/dag/limits.h"
#include "compiler/dag/ops/image.h"
#include "compiler/dag/ops/normalize.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"
#include "graph/ops/window.h"

namespace kiln::graph {
namespace {

using dag::Combiner;
using dag::TensorRef;
using dag::Value;
using dag::Vars;

AttributeSpec AxisOf(std::string doc, int64_t value) {
  return IntAttribute("axis", std::move(doc) + "; negative: from the end", value);
}
AttributeSpec Epsilon() {
  return FloatAttribute("epsilon", "added to what the root is taken of", 1e-5);
}

// ---- softmax

std::vector<TensorRef> Softmax(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  RequireDomain(w, Domain::kFloats, 0);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  if (!w.ok()) return {x};
  dag::OpArgs args;
  args.SetShape(x.shape());
  args.Set("axis", static_cast<int64_t>(axis));
  return {w.Library("softmax", args, {x})};
}

// Computes x - max - log(sum of exp(x - max)): no exponential overflows, and no logarithm is of 0.
std::vector<TensorRef> LogSoftmax(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  RequireDomain(w, Domain::kFloats, 0);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  if (!w.ok()) return {x};
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const dag::OpContext c = w.Context(x.type());
  std::vector<int64_t> outer = x.shape();
  outer.erase(outer.begin() + at);
  const std::vector<dag::Axis> axes = dag::NumberedAxes("i", outer);
  const dag::Axis k{"k", x.shape()[axis]};
  const auto element = [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end() - 1);
    index.insert(index.begin() + at, v.back());
    return c.Widen(x.At(index));
  };
  TensorRef max = w.b.Reduce("T_softmax_maxelem", axes, {k}, Combiner::kMax, element);
  TensorRef sum = w.b.Reduce("T_softmax_expsum", axes, {k}, Combiner::kSum, [&](Vars v) {
    return Exp(element(v) - max.At(v.first(outer.size())));
  });
  return {w.b.Compute("T_log_softmax_norm", dag::NumberedAxes("i", x.shape()), [&](Vars v) {
    std::vector<Value> row(v.begin(), v.end());
    row.erase(row.begin() + at);
    return Cast(x.type(), c.Widen(x.At(v)) - max.At(row) - Log(sum.At(row)));
  })};
}

// ---- over the last axes

// Requires that input i, which scales or shifts elements, broadcasts to that shape.
void RequireBroadcasts(NodeWriter& w, int i, std::span<const int64_t> to) {
  if (!w.has_input(i)) return;
  RequireDomain(w, Domain::kFloats, i);
  if (BroadcastsTo(w.shape(i), to)) return;
  w.Fail("input {} of shape [{}] does not broadcast to [{}]", i, fmt::join(w.shape(i), ", "),
         fmt::join(to, ", "));
}

std::vector<TensorRef> NormalizeRows(NodeWriter& w, bool center) {
  const TensorRef& x = w.input(0);
  RequireDomain(w, Domain::kFloats, 0);
  const dag::NormSpec spec{w.Axis("axis", w.Int("axis"), x.rank()), w.Float("epsilon")};
  if (!w.ok()) return {x};
  const std::span<const int64_t> inner = std::span(x.shape()).subspan(spec.axis);
  for (int i : {1, 2}) RequireBroadcasts(w, i, inner);
  if (!w.ok()) return {x};
  dag::OpContext c = w.Context(x.type());
  const TensorRef* scale = w.has_input(1) ? &w.input(1) : nullptr;
  const TensorRef* bias = w.has_input(2) ? &w.input(2) : nullptr;
  const TensorRef y =
      center ? dag::WriteLayerNorm(c, spec, x, scale, bias) : dag::WriteRmsNorm(c, spec, x, scale);
  return {w.ok() ? w.Converted(y, x.type()) : x};
}

OpDef RowNorm(std::string name, std::string doc, bool center) {
  return {.name = std::move(name),
          .family = "normalizations",
          .doc = std::move(doc),
          .pattern = OpPattern::kOpaque,
          .max_inputs = center ? 3 : 2,
          .attributes = {AxisOf("the first normalized axis, all after it are too", -1), Epsilon()},
          .write = [center](NodeWriter& w) { return NormalizeRows(w, center); }};
}

// ---- with a number for each channel

// Requires that inputs from `first` on are vectors of that many numbers.
void RequireVectors(NodeWriter& w, int first, int64_t channels) {
  for (int i = first; i < w.num_inputs(); ++i) {
    RequireDomain(w, Domain::kFloats, i);
    if (w.shape(i) == std::vector<int64_t>{channels}) continue;
    w.Fail("input {} of shape [{}], expected [{}]: a number for each channel", i,
           fmt::join(w.shape(i), ", "), channels);
  }
}

std::vector<TensorRef> BatchNorm(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  RequireDomain(w, Domain::kFloats, 0);
  const dag::NormSpec spec{w.Axis("axis", w.Int("axis"), x.rank()), w.Float("epsilon")};
  if (!w.ok()) return {x};
  RequireVectors(w, 1, x.shape()[spec.axis]);
  if (!w.ok()) return {x};
  dag::OpContext c = w.Context(x.type());
  return {dag::WriteBatchNorm(
      c, spec, x,
      {.mean = w.input(3), .variance = w.input(4), .gamma = w.input(1), .beta = w.input(2)})};
}

// Batch, channels and an image of any number of dimensions. The channels form groups that are
// normalized together.
struct Groups {
  dag::Layout layout;
  // Channels of a group.
  int64_t channels;
  std::vector<dag::Axis> outer = {}, reduce = {};
  // Number of elements that are normalized together.
  double size = 1;
};

Groups ReadGroups(NodeWriter& w, int64_t groups) {
  const TensorRef& x = w.input(0);
  Groups g{.layout = {x.rank() - 2, Flag(w, "channels_last")}, .channels = 1};
  const int64_t channels = x.shape()[static_cast<size_t>(g.layout.channel_axis())];
  if (channels % groups != 0) w.Fail("groups = {} must divide {} channels", groups, channels);
  g.channels = channels / groups;
  g.outer = dag::NumberedAxes("ax", std::vector<int64_t>{x.shape()[0], groups});
  if (g.channels > 1 || g.layout.dims == 0) g.reduce.push_back({"kc", g.channels});
  for (const dag::Axis& axis : dag::NumberedAxes("k", g.layout.Image(x.shape())))
    g.reduce.push_back(axis);
  for (const dag::Axis& axis : g.reduce) g.size *= static_cast<double>(axis.extent);
  return g;
}

// Returns the element at the variables of a sum over a group: batch, group, and the rest.
Value ElementOf(const Groups& g, const TensorRef& x, Vars v) {
  const bool has_channel = g.reduce[0].name == "kc";
  const Vars image = v.subspan(has_channel ? 3 : 2);
  const Value channel = has_channel ? v[1] * g.channels + v[2] : v[1];
  return x.At(dag::Arrange<Value>(g.layout, v[0], channel, {image.begin(), image.end()}));
}

std::vector<TensorRef> NormalizeGroups(NodeWriter& w, const std::string& stage, int64_t groups) {
  const TensorRef &x = w.input(0), &scale = w.input(1), &bias = w.input(2);
  const Groups g = ReadGroups(w, groups);
  RequireVectors(w, 1, g.channels * groups);
  if (!w.ok()) return {x};
  const dag::OpContext c = w.Context(x.type());
  const double epsilon = w.Float("epsilon");
  TensorRef sum = w.b.Reduce(stage + "_sum", g.outer, g.reduce, Combiner::kSum,
                             [&](Vars v) { return c.Widen(ElementOf(g, x, v)); });
  TensorRef mean =
      w.b.Compute(stage + "_mean", g.outer, [&](Vars v) { return sum.At(v) * (1.0 / g.size); });
  TensorRef squares =
      w.b.Reduce(stage + "_squares", g.outer, g.reduce, Combiner::kSum, [&](Vars v) {
        const Value distance = c.Widen(ElementOf(g, x, v)) - mean(v[0], v[1]);
        return distance * distance;
      });
  return {w.b.Compute(stage, dag::NumberedAxes("ax", x.shape()), [&](Vars v) {
    const Value& channel = v[static_cast<size_t>(g.layout.channel_axis())];
    const Value group = FloorDiv(channel, g.channels);
    const Value factor = Rsqrt(squares(v[0], group) * (1.0 / g.size) + epsilon);
    return Cast(x.type(),
                (c.Widen(x.At(v)) - mean(v[0], group)) * factor * c.Widen(scale(channel)) +
                    c.Widen(bias(channel)));
  })};
}

std::vector<TensorRef> InstanceNorm(NodeWriter& w) {
  RequireDomain(w, Domain::kFloats, 0);
  RequireRank(w, 0, 3, dag::kMaxAxes);
  const bool last = Flag(w, "channels_last");
  if (!w.ok()) return {w.input(0)};
  return NormalizeGroups(w, "T_instance_norm", last ? w.shape(0).back() : w.shape(0)[1]);
}

std::vector<TensorRef> GroupNorm(NodeWriter& w) {
  RequireDomain(w, Domain::kFloats, 0);
  RequireRank(w, 0, 2, dag::kMaxAxes);
  const int64_t groups = IntBetween(w, "groups", 1, dag::kMaxExtent);
  if (!w.ok()) return {w.input(0)};
  return NormalizeGroups(w, "T_group_norm", groups);
}

// ---- across channels

// Computes x / (bias + alpha / size * the sum of squares of `size` channels around it) to the beta.
std::vector<TensorRef> LocalResponseNorm(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  RequireDomain(w, Domain::kFloats, 0);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  const int64_t size = IntBetween(w, "size", 1, dag::kMaxExtent);
  if (!w.ok()) return {x};
  const dag::OpContext c = w.Context(x.type());
  const std::vector<dag::Axis> axes = dag::NumberedAxes("ax", x.shape());
  TensorRef sum = w.b.Reduce("T_lrn_squares", axes, {{"k", size}}, Combiner::kSum, [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end() - 1);
    Value& at = index[axis];
    at = at + v.back() - (size - 1) / 2;
    const Value element =
        If(at >= 0 && at < x.shape()[axis], x.At(index), w.b.Constant(0, x.type()));
    return c.Widen(element) * c.Widen(element);
  });
  const double alpha = w.Float("alpha") / static_cast<double>(size);
  return {w.b.Compute("T_lrn", axes, [&](Vars v) {
    return Cast(x.type(), c.Widen(x.At(v)) / Pow(sum.At(v) * alpha + w.Float("bias"),
                                                 w.b.Constant(w.Float("beta"), c.out_type)));
  })};
}

OpDef ChannelNorm(std::string name, std::string doc, int inputs, OpPattern pattern,
                  std::vector<AttributeSpec> attributes,
                  std::vector<TensorRef> (*write)(NodeWriter&)) {
  return {.name = std::move(name),
          .family = "normalizations",
          .doc = std::move(doc),
          .pattern = pattern,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .attributes = std::move(attributes),
          .write = write};
}

}  // namespace

std::vector<OpDef> NormalizationOps() {
  constexpr OpPattern kOpaque = OpPattern::kOpaque;
  return {ChannelNorm("softmax", "exp(x - max) / sum along an axis", 1, kOpaque,
                      {AxisOf("axis", -1)}, Softmax),
          ChannelNorm("log_softmax", "logarithm of softmax", 1, kOpaque, {AxisOf("axis", -1)},
                      LogSoftmax),
          RowNorm("layer_norm",
                  "(x - mean) / sqrt(variance) scale + bias over the last axes; scale and bias "
                  "broadcast to them",
                  true),
          RowNorm("rms_norm", "x / sqrt(mean of squares) scale over the last axes", false),
          ChannelNorm("batch_norm",
                      "(x - mean) / sqrt(variance) scale + bias; inputs: x, scale, bias, mean, "
                      "variance, vectors along one axis",
                      5, OpPattern::kBroadcast, {AxisOf("axis of the channels", 1), Epsilon()},
                      BatchNorm),
          ChannelNorm("instance_norm",
                      "each image of each channel by its mean and variance; inputs: x, scale, bias",
                      3, kOpaque, {Epsilon(), ChannelsLast()}, InstanceNorm),
          ChannelNorm(
              "group_norm",
              "groups of channels by their mean and variance; inputs: x, scale, bias of each "
              "channel",
              3, kOpaque, {IntAttribute("groups", "how many there are"), Epsilon(), ChannelsLast()},
              GroupNorm),
          ChannelNorm(
              "lrn", "x / (bias + alpha / size * sum of squares of channels around it) ^ beta", 1,
              kOpaque,
              {IntAttribute("size", "channels that are summed"),
               FloatAttribute("alpha", "factor of the sum", 1e-4),
               FloatAttribute("beta", "exponent", 0.75),
               FloatAttribute("bias", "added to the sum", 1.0), AxisOf("axis of the channels", 1)},
              LocalResponseNorm)};
}

}  // namespace kiln::graph
