// Reductions over axes, and the places of extremes.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// The axes of a reduction.
struct Reduction {
  Shape axes;
  bool keep_dims = true;
  // True: the result is x, or the reduction's function of each element.
  bool is_none = false;
};

// Axes are an attribute up to `last_version`, an input after it. Without axes all axes are reduced,
// unless an attribute says otherwise.
Reduction ReadReduction(NodeContext& n, int last_version) {
  n.RequireRank(0, 0);
  const Shape axes = n.IntsOfAttributeOrInput("axes", last_version, 1);
  Reduction reduction;
  if (n.failed()) return reduction;
  const int rank = n.input(0).rank();
  reduction.keep_dims = n.Int("keepdims", 1) != 0;
  reduction.is_none = axes.empty() && n.Int("noop_with_empty_axes", 0) != 0;
  reduction.axes = n.Axes(axes, rank);
  if (axes.empty() && !reduction.is_none) {
    reduction.axes.resize(static_cast<size_t>(rank));
    std::iota(reduction.axes.begin(), reduction.axes.end(), 0);
  }
  return reduction;
}

// The last versions with attributes.
constexpr int kReduceSum = 12, kOtherReductions = 17;

// The graph sums int8 and bool in int32; ONNX keeps the type.
Tensor Reduced(NodeContext& n, std::string_view op, const Tensor& x, const Reduction& reduction) {
  const Tensor y = n.Reduce(op, x, reduction.axes, reduction.keep_dims);
  return n.Cast(y, x.element());
}

Rule Plain(std::string op, std::string name, int last_version) {
  return {std::move(op), [name = std::move(name), last_version](NodeContext& n) {
            const Reduction reduction = ReadReduction(n, last_version);
            if (n.failed()) return;
            n.SetOutput(Reduced(n, name, n.input(0), reduction));
          }};
}

// Bools go through int8.
Rule Extreme(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            const Reduction reduction = ReadReduction(n, kOtherReductions);
            if (n.failed()) return;
            const Tensor& x = n.input(0);
            const bool goes_by_int8 = x.element().is_bool() && !x.is_empty();
            const Tensor wide = goes_by_int8 ? n.Cast(x, ir::kInt8) : x;
            n.SetOutput(n.Cast(Reduced(n, name, wide, reduction), x.element()));
          }};
}

// Rule for a function of a sum of a function of the elements.
Rule OfSum(std::string op, std::string before, std::string after) {
  return {std::move(op), [=](NodeContext& n) {
            const Reduction reduction = ReadReduction(n, kOtherReductions);
            if (n.failed()) return;
            const Tensor x = before.empty() ? n.input(0) : n.Emit(before, {n.input(0)});
            Tensor y = Reduced(n, "reduce_sum", x, reduction);
            if (!after.empty()) y = n.Emit(after, {y});
            n.SetOutput(y);
          }};
}

// The root is for floats: for whole numbers it is taken in float64.
void ReduceL2(NodeContext& n) {
  const Reduction reduction = ReadReduction(n, kOtherReductions);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Tensor sum = Reduced(n, "reduce_sum", n.Emit("square", {x}), reduction);
  const ir::Type type = x.element().is_float() ? x.element() : ir::kFloat64;
  n.SetOutput(n.Cast(n.Emit("sqrt", {n.Cast(sum, type)}), x.element()));
}

// Subtracts the largest element before the exponentials, so that none overflows, and adds it to
// their logarithm. An infinite element is not subtracted.
void ReduceLogSumExp(NodeContext& n) {
  const Reduction reduction = ReadReduction(n, kOtherReductions);
  n.RequireFloat(0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Tensor largest = n.Reduce("reduce_max", x, reduction.axes, true);
  if (n.failed()) return;
  const Tensor most = n.Where(n.Emit("is_inf", {largest}), n.ScalarLike(largest, 0), largest);
  const Tensor sum = n.Reduce("reduce_sum", n.Emit("exp", {n.Sub(x, most)}), reduction.axes, true);
  const Tensor y = n.Add(n.Emit("log", {sum}), most);
  if (n.failed() || reduction.keep_dims) return n.SetOutput(y);
  Shape shape;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (std::ranges::find(reduction.axes, d) == reduction.axes.end()) shape.push_back(x.dim(d));
  n.SetOutput(n.Reshape(y, std::move(shape)));
}

Rule ArgExtreme(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            n.RequireRank(0, 0);
            if (n.failed()) return;
            const int64_t axis = n.Axis(n.Int("axis", 0), n.input(0).rank());
            const Tensor y = n.Emit(name, {n.input(0)},
                                    {{"axis", axis},
                                     {"keep_dims", n.Int("keepdims", 1)},
                                     {"last", n.Int("select_last_index", 0)}});
            n.SetOutput(n.Cast(y, ir::kInt64));
          }};
}

Rule Cumulative(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            n.RequireRank(0, 1);
            const int64_t axis = n.KnownInt(1, "axis");
            if (n.failed()) return;
            const Tensor& x = n.input(0);
            const Tensor y = n.Emit(name, {x},
                                    {{"axis", n.Axis(axis, x.rank())},
                                     {"exclusive", n.Int("exclusive", 0)},
                                     {"reverse", n.Int("reverse", 0)}});
            n.SetOutput(n.Cast(y, x.element()));
          }};
}

}  // namespace

std::vector<Rule> ReductionRules() {
  return {Plain("ReduceSum", "reduce_sum", kReduceSum),
          Plain("ReduceMean", "reduce_mean", kOtherReductions),
          Plain("ReduceProd", "reduce_prod", kOtherReductions),
          Extreme("ReduceMax", "reduce_max"),
          Extreme("ReduceMin", "reduce_min"),
          OfSum("ReduceL1", "abs", ""),
          OfSum("ReduceSumSquare", "square", ""),
          OfSum("ReduceLogSum", "", "log"),
          {"ReduceL2", ReduceL2},
          {"ReduceLogSumExp", ReduceLogSumExp},
          ArgExtreme("ArgMax", "arg_max"),
          ArgExtreme("ArgMin", "arg_min"),
          Cumulative("CumSum", "cumsum"),
          Cumulative("CumProd", "cumprod")};
}

}  // namespace kiln::frontend
