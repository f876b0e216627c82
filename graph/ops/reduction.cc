// Sums and the like over axes, positions of extrema, running sums.
#include <algorithm>

#include "base/numbers/integers.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"

namespace kiln::graph {
namespace {

using dag::Combiner;
using dag::TensorRef;
using dag::Value;
using dag::Vars;

AttributeSpec KeepDims() {
  return IntAttribute("keep_dims", "1: reduced axes stay, with extent 1; 0: they go", 1);
}

// ---- sums, products, extrema, means

// Writes the library's operator over the axes. 16-bit floats are reduced in float32.
TensorRef Reduced(NodeWriter& w, std::string_view op, const TensorRef& x,
                  const std::vector<size_t>& axes) {
  dag::OpArgs args;
  args.SetShape(x.shape());
  for (size_t axis : axes) args.Append("axis", static_cast<int64_t>(axis));
  args.Set("keepdims", Flag(w, "keep_dims") ? 1 : 0);
  return w.Library(op, args, {x});
}

// Divides and rounds towards zero.
TensorRef Divided(NodeWriter& w, const TensorRef& sum, int64_t count) {
  return w.b.Compute("T_divide", dag::NumberedAxes("ax", sum.shape()), [&](Vars v) {
    const Value x = sum.At(v);
    return Select(x < 0, 0 - FloorDiv(0 - x, count), FloorDiv(x, count));
  });
}

TensorRef MeanOfInts(NodeWriter& w, const TensorRef& x, const std::vector<size_t>& axes) {
  int64_t count = 1;
  for (size_t axis : axes) count = MultiplyCounts(count, x.shape()[axis]);
  return Divided(w, Reduced(w, "sum", w.Converted(x, ir::kInt64), axes), count);
}

std::vector<size_t> AllAxes(int rank) {
  std::vector<size_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(static_cast<size_t>(i));
  return axes;
}

std::vector<TensorRef> Reduce(NodeWriter& w, std::string_view op) {
  const TensorRef& x = w.input(0);
  const bool orders = op == "max" || op == "min";
  RequireDomain(w, orders ? Domain::kAny : Domain::kNumbers, 0);
  std::vector<size_t> axes = w.Axes("axes", w.Ints("axes"), x.rank());
  if (!w.ok()) return {x};
  if (w.Ints("axes").empty()) axes = AllAxes(x.rank());
  // A scalar has no axes.
  if (axes.empty()) return {x};
  const bool whole = x.type().is_int();
  const TensorRef reduced = whole && op == "mean" ? MeanOfInts(w, x, axes)
                            // A bool counts as 0 or 1.
                            : x.type().is_bool() ? Reduced(w, op, w.Converted(x, ir::kInt32), axes)
                                                 : Reduced(w, op, x, axes);
  return {w.ok() ? w.Converted(reduced, x.type()) : x};
}

OpDef Reduction(std::string name, std::string doc, std::string_view op) {
  return {.name = std::move(name),
          .family = "reductions",
          .doc = std::move(doc),
          .pattern = OpPattern::kReduction,
          .attributes = {IntsAttribute("axes", "axes to reduce; none: all", std::vector<int64_t>()),
                         KeepDims()},
          .write = [op](NodeWriter& w) { return Reduce(w, op); }};
}

// ---- positions of extrema

// Returns 32 bits if they suffice: reductions of such pairs are cheaper on GPUs.
ir::Type PositionType(int64_t extent) { return extent <= INT32_MAX ? ir::kInt32 : ir::kInt64; }

std::vector<TensorRef> ArgReduce(NodeWriter& w, Combiner combiner) {
  const TensorRef& x = w.input(0);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  const bool keep = Flag(w, "keep_dims"), last = Flag(w, "last");
  if (!w.ok()) return {x};
  const int64_t extent = x.shape()[axis];
  const ir::Type type = PositionType(extent);
  std::vector<int64_t> shape = x.shape();
  shape[axis] = 1;
  if (!keep) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::vector<dag::Axis> axes = dag::NumberedAxes("ax", shape);
  // The smaller number wins if values are equal. If numbers count from the end, that is the later
  // element.
  const auto number = [&](const Value& k) { return last ? (extent - 1) - k : k; };
  TensorRef pair = w.b.ReduceArg(
      "p0_red_temp", axes, {{fmt::format("k{}", axis), extent}}, combiner, [&](Vars v) {
        std::vector<Value> index(v.begin(), v.end() - 1);
        if (!keep) index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), Value(0));
        index[axis] = v.back();
        const Value element = x.At(index);
        return std::pair(Cast(type, number(v.back())),
                         x.type().is_bool() ? Cast(ir::kInt32, element) : element);
      });
  return {
      w.b.Compute("p0_red", axes, [&](Vars v) { return number(Cast(ir::kInt64, pair.At(v))); })};
}

OpDef ArgReduction(std::string name, std::string doc, Combiner combiner) {
  return {
      .name = std::move(name),
      .family = "reductions",
      .doc = std::move(doc),
      .pattern = OpPattern::kReduction,
      .attributes = {IntAttribute("axis", "axis to reduce; negative: from the end", 0), KeepDims(),
                     IntAttribute("last", "1: of equal values the last one, not the first", 0)},
      .write = [combiner](NodeWriter& w) { return ArgReduce(w, combiner); }};
}

// ---- running sums and products

std::vector<TensorRef> Cumulative(NodeWriter& w, Combiner combiner) {
  const TensorRef& x = w.input(0);
  RequireDomain(w, Domain::kNumbers, 0);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  const bool exclusive = Flag(w, "exclusive"), reverse = Flag(w, "reverse");
  if (!w.ok()) return {x};
  const dag::OpContext c = w.Context(x.type());
  const bool adds = combiner == Combiner::kSum;
  TensorRef sum = w.b.Reduce(
      adds ? "T_cumsum" : "T_cumprod", dag::NumberedAxes("ax", x.shape()), {{"k", x.shape()[axis]}},
      combiner, [&](Vars v) {
        std::vector<Value> index(v.begin(), v.end() - 1);
        const Value &k = v.back(), i = index[axis];
        index[axis] = k;
        const Value counts = reverse ? (exclusive ? k > i : k >= i) : (exclusive ? k < i : k <= i);
        return Select(counts, c.Widen(x.At(index)), w.b.Constant(adds ? 0 : 1, c.out_type));
      });
  return {w.Converted(sum, x.type())};
}

OpDef CumulativeOp(std::string name, std::string doc, Combiner combiner) {
  return {.name = std::move(name),
          .family = "reductions",
          .doc = std::move(doc),
          .pattern = OpPattern::kOpaque,
          .attributes = {IntAttribute("axis", "axis; negative: from the end"),
                         IntAttribute("exclusive", "1: without the element itself", 0),
                         IntAttribute("reverse", "1: from each element on to the end", 0)},
          .write = [combiner](NodeWriter& w) { return Cumulative(w, combiner); }};
}

}  // namespace

std::vector<OpDef> ReductionOps() {
  return {
      Reduction("reduce_sum", "sum over axes", "sum"),
      Reduction("reduce_prod", "product over axes", "prod"),
      Reduction("reduce_max", "maximum over axes", "max"),
      Reduction("reduce_min", "minimum over axes", "min"),
      Reduction("reduce_mean", "average over axes; of whole numbers towards zero", "mean"),
      ArgReduction("arg_max", "position of the maximum along an axis, int64", Combiner::kArgMax),
      ArgReduction("arg_min", "position of the minimum along an axis, int64", Combiner::kArgMin),
      CumulativeOp("cumsum", "sum of the elements up to each one along an axis", Combiner::kSum),
      CumulativeOp("cumprod", "product of the elements up to each one along an axis",
                   Combiner::kProd)};
}

}  // namespace kiln::graph
