// Maxima and averages of windows and of whole images. If the library has the operator, the DAG is
// the library's.
#include <limits>

#include "compiler/dag/ops/pool.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"
#include "graph/ops/window.h"

namespace kiln::graph {
namespace {

using dag::Layout;
using dag::PoolKind;
using dag::TensorRef;
using dag::Value;
using dag::Vars;

dag::PoolSpec ReadPool(NodeWriter& w, Layout layout, bool counts_padding) {
  const std::vector<int64_t>& kernel = w.Ints("kernel");
  if (std::ssize(kernel) != layout.dims)
    w.Fail("kernel has {} entries, the image {} dimensions", kernel.size(), layout.dims);
  return {.layout = layout,
          .window = ReadWindow(w, kernel),
          .ceil = Flag(w, "ceil"),
          .count_include_pad = counts_padding && Flag(w, "count_include_pad")};
}

std::vector<TensorRef> Pool(NodeWriter& w, PoolKind kind) {
  RequireDomain(w, kind == PoolKind::kMax ? Domain::kNumbers : Domain::kFloats, 0);
  const Layout layout = ReadLayout(w);
  if (!w.ok()) return {w.input(0)};
  const dag::PoolSpec spec = ReadPool(w, layout, kind == PoolKind::kAvg);
  if (!w.ok()) return {w.input(0)};
  dag::OpContext c = w.Context(w.type());
  return {dag::WritePool(c, spec, kind, w.input(0))};
}

// Returns the row-major position in a tensor of that shape.
Value FlatIndex(const std::vector<Value>& index, const std::vector<int64_t>& shape) {
  Value flat = index[0];
  for (size_t d = 1; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

// Returns the index and value of padding, which lose against every element of the image: of equal
// values the smaller index wins.
std::pair<Value, Value> Padding(NodeWriter& w, ir::Type type) {
  const double lowest =
      type.is_float() ? -std::numeric_limits<double>::infinity() : dag::LowestValue(type);
  return {std::numeric_limits<int64_t>::max(), w.b.Constant(lowest, type)};
}

std::vector<TensorRef> MaxPoolIndices(NodeWriter& w) {
  RequireDomain(w, Domain::kNumbers, 0);
  const Layout layout = ReadLayout(w);
  if (!w.ok()) return {w.input(0)};
  const dag::PoolSpec spec = ReadPool(w, layout, false);
  if (!w.ok()) return {w.input(0)};
  const TensorRef& x = w.input(0);
  const dag::Window& window = spec.window;
  dag::OpContext c = w.Context(x.type());
  const std::vector<int64_t> in = layout.Image(x.shape());
  const std::vector<int64_t> out = dag::PoolExtents(c, spec, in);
  if (!w.ok()) return {x};
  std::vector<int64_t> shape = x.shape();
  for (size_t d = 0; d < out.size(); ++d) shape[layout.first() + d] = out[d];
  const std::vector<dag::Axis> axes = dag::NumberedAxes("ax", shape);
  const auto [last_index, lowest] = Padding(w, x.type());
  TensorRef pair =
      w.b.ReduceArg("pool_argmax_temp", axes, dag::NumberedAxes("rv", window.kernel),
                    dag::Combiner::kArgMax, [&](Vars v) {
                      std::vector<Value> index(v.begin(), v.begin() + x.rank());
                      std::optional<Value> inside;
                      for (size_t d = 0; d < out.size(); ++d) {
                        Value& at = index[layout.first() + d];
                        at = window.Position(d, at, v[shape.size() + d]) - window.before[d];
                        const Value here = at >= 0 && at < in[d];
                        inside = inside ? *inside && here : here;
                      }
                      return std::pair(If(*inside, FlatIndex(index, x.shape()), last_index),
                                       If(*inside, x.At(index), lowest));
                    });
  return {w.b.Compute("pool_argmax", axes, [&](Vars v) { return pair.At(v); })};
}

std::vector<TensorRef> GlobalPool(NodeWriter& w, PoolKind kind) {
  RequireDomain(w, kind == PoolKind::kMax ? Domain::kNumbers : Domain::kFloats, 0);
  const Layout layout = ReadLayout(w);
  if (!w.ok()) return {w.input(0)};
  dag::OpContext c = w.Context(w.type());
  const std::vector<int64_t> out(static_cast<size_t>(layout.dims), 1);
  return {dag::WriteAdaptivePool(c, layout, kind, out, w.input(0))};
}

OpDef WindowOp(std::string name, std::string doc, std::vector<AttributeSpec> more,
               std::function<std::vector<TensorRef>(NodeWriter&)> write) {
  std::vector<AttributeSpec> attributes = WindowAttributes();
  attributes.insert(attributes.begin(), IntsAttribute("kernel", "extents of the window"));
  attributes.push_back(IntAttribute("ceil", "1: a last window may reach past the padding", 0));
  for (AttributeSpec& attribute : more) attributes.push_back(std::move(attribute));
  return {.name = std::move(name),
          .family = "pooling",
          .doc = std::move(doc),
          .pattern = OpPattern::kProduct,
          .attributes = std::move(attributes),
          .write = std::move(write)};
}

OpDef GlobalOp(std::string name, std::string doc, PoolKind kind) {
  return {.name = std::move(name),
          .family = "pooling",
          .doc = std::move(doc),
          .pattern = OpPattern::kProduct,
          .attributes = {ChannelsLast()},
          .write = [kind](NodeWriter& w) { return GlobalPool(w, kind); }};
}

}  // namespace

std::vector<OpDef> PoolingOps() {
  return {
      WindowOp("max_pool", "maximum of each window", {},
               [](NodeWriter& w) { return Pool(w, PoolKind::kMax); }),
      WindowOp("avg_pool", "average of each window",
               {IntAttribute("count_include_pad", "1: padding counts as elements of 0", 0)},
               [](NodeWriter& w) { return Pool(w, PoolKind::kAvg); }),
      WindowOp("max_pool_indices",
               "row-major position in x of the first maximum of each window, int64", {},
               MaxPoolIndices),
      GlobalOp("global_avg_pool", "average of each image, whose extents become 1", PoolKind::kAvg),
      GlobalOp("global_max_pool", "maximum of each image, whose extents become 1", PoolKind::kMax)};
}

}  // namespace kiln::graph
