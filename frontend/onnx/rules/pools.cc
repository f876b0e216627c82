// Pools: the largest, the mean or a norm of the elements under a window.
#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"
#include "frontend/onnx/rules/window.h"

namespace kiln::frontend {
namespace {

graph::Attributes AttributesOf(const Window& window) {
  return {{"kernel", window.kernel},
          {"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations},
          {"ceil", int64_t{window.ceil}}};
}

Window ReadPool(NodeContext& n) {
  n.RequireRank(0, 3);
  if (n.failed()) return {};
  if (!n.has("kernel_shape")) n.Invalid("attribute kernel_shape is missing");
  return ReadWindow(n, n.input(0).shape(), {});
}

// Converts row-major positions in x into positions with reversed spatial axes, where the first one
// varies fastest.
Tensor ColumnMajor(NodeContext& n, const Tensor& ids, const Tensor& x) {
  if (n.failed()) return Tensor::Missing();
  const auto number = [&](int64_t value) { return n.Constant({}, {value}); };
  Tensor rest = ids, position;
  int64_t plane = 1;
  for (int d = 2; d < x.rank(); ++d) plane = MultiplyCounts(plane, x.dim(d));
  int64_t stride = plane;
  for (int d = x.rank() - 1; d >= 2; --d) {
    stride /= x.dim(d);
    const Tensor at = n.Emit("mod", {rest, number(x.dim(d))});
    const Tensor term = n.Mul(at, number(stride));
    position = position.exists() ? n.Add(position, term) : term;
    rest = n.Div(rest, number(x.dim(d)));
  }
  return n.Add(position, n.Mul(rest, number(plane)));
}

void MaxPool(NodeContext& n) {
  const Window window = ReadPool(n);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  n.SetOutput(n.Emit("max_pool", {x}, AttributesOf(window)));
  if (!n.wants_output(1)) return;
  const Tensor ids = n.Emit("max_pool_indices", {x}, AttributesOf(window));
  n.SetOutput(1, n.Int("storage_order", 0) != 0 ? ColumnMajor(n, ids, x) : ids);
}

Tensor AveragePool(NodeContext& n, const Tensor& x, const Window& window, bool counts_pads) {
  graph::Attributes attributes = AttributesOf(window);
  attributes["count_include_pad"] = int64_t{counts_pads};
  return n.Emit("avg_pool", {x}, std::move(attributes));
}

void AveragePoolRule(NodeContext& n) {
  const Window window = ReadPool(n);
  if (n.failed()) return;
  n.SetOutput(AveragePool(n, n.input(0), window, n.Int("count_include_pad", 0) != 0));
}

Rule Global(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            n.RequireRank(0, 3);
            n.SetOutput(n.Emit(name, {n.input(0)}));
          }};
}

// Computes |x|^p.
Tensor PowerOfMagnitude(NodeContext& n, const Tensor& x, double p) {
  if (p == 1) return n.Emit("abs", {x});
  if (p == 2) return n.Emit("square", {x});
  return n.Emit("power", {n.Emit("abs", {x}), n.ScalarLike(x, p)});
}
Tensor Root(NodeContext& n, const Tensor& x, double p) {
  if (p == 1) return x;
  if (p == 2) return n.Emit("sqrt", {x});
  return n.Emit("power", {x, n.ScalarLike(x, 1 / p)});
}
// p is a float in version 1.
double Exponent(NodeContext& n) {
  return n.version() < 2 ? n.Float("p", 2) : static_cast<double>(n.Count("p", 2, 1));
}

// The sum under a window is its mean, pads counted, times its size.
void LpPool(NodeContext& n) {
  const Window window = ReadPool(n);
  const double p = Exponent(n);
  n.RequireFloat(0);
  if (n.failed()) return;
  if (window.ceil) return n.Unsupported("ceil_mode of a norm");
  const Tensor mean = AveragePool(n, PowerOfMagnitude(n, n.input(0), p), window, true);
  const auto size = static_cast<double>(ProductOfCounts(window.kernel));
  n.SetOutput(Root(n, n.Mul(mean, n.ScalarLike(mean, size)), p));
}

void GlobalLpPool(NodeContext& n) {
  n.RequireRank(0, 3);
  n.RequireFloat(0);
  if (n.failed()) return;
  const double p = Exponent(n);
  Shape axes(static_cast<size_t>(n.input(0).rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  const Tensor powers = PowerOfMagnitude(n, n.input(0), p);
  n.SetOutput(Root(n, n.Reduce("reduce_sum", powers, axes, true), p));
}

// Returns the smallest input that the pool may have had.
Shape UnpooledShape(NodeContext& n, const Window& window) {
  const Tensor& x = n.input(0);
  Shape shape = {x.dim(0), x.dim(1)};
  const size_t rank = window.kernel.size();
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back((x.dim(static_cast<int64_t>(d) + 2) - 1) * window.strides[d] - window.pads[d] -
                    window.pads[rank + d] + window.kernel[d]);
    if (shape.back() < 1) n.Invalid("its pads are larger than its input");
  }
  return shape;
}

// Puts each element back where the pool found it; the rest is 0. The indices count the elements of
// the smallest output; a larger requested output has more elements at its ends.
void MaxUnpool(NodeContext& n) {
  n.RequireRank(1, 3);
  const Window window = ReadPool(n);
  if (n.failed()) return;
  const Shape shape = UnpooledShape(n, window);
  const Shape wanted = n.has_input(2) ? n.KnownInts(2, "output_shape") : shape;
  if (n.failed()) return;
  const Tensor &x = n.input(0), &ids = n.input(1);
  const Tensor zeros = n.BroadcastTo(n.ScalarLike(x, 0), {ProductOfCounts(shape)});
  const Tensor flat =
      n.Emit("scatter_elements",
             {zeros, n.Reshape(ids, {ids.num_elements()}), n.Reshape(x, {x.num_elements()})},
             {{"axis", int64_t{0}}, {"mode", std::string("none")}});
  const Tensor y = n.Reshape(flat, shape);
  if (wanted == shape) return n.SetOutput(y);
  Shape more(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    more[d] = d < wanted.size() ? wanted[d] - shape[d] : -1;
    if (more[d] < 0 || wanted.size() != shape.size())
      return n.Invalid("an output of [{}], expected at least [{}]", fmt::join(wanted, ", "),
                       fmt::join(shape, ", "));
  }
  n.SetOutput(n.Emit("pad", {y}, {{"before", Shape(shape.size(), 0)}, {"after", more}}));
}

}  // namespace

std::vector<Rule> PoolRules() {
  return {{"MaxPool", MaxPool},
          {"AveragePool", AveragePoolRule},
          {"LpPool", LpPool},
          {"GlobalLpPool", GlobalLpPool},
          {"MaxUnpool", MaxUnpool},
          Global("GlobalAveragePool", "global_avg_pool"),
          Global("GlobalMaxPool", "global_max_pool")};
}

}  // namespace kiln::frontend
