// The largest elements, in order.
#include <algorithm>
#include <numeric>

#include "base/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Every element is compared with every other one of its row.
constexpr int64_t kMaxComparisons = int64_t{1} << 30;

// Which of two elements comes first, and which two are equal. As in numpy's and PyTorch's order, a NaN
// is larger than all numbers and equal to a NaN.
struct Order {
  Tensor better, equal;  // the other one than the element itself; bools
};
Order OrderOf(NodeContext& n, const Tensor& self, const Tensor& other, bool largest) {
  Order order{n.Emit(largest ? "greater" : "less", {other, self}), n.Emit("equal", {other, self})};
  if (n.failed() || !self.element().is_float()) return order;
  const Tensor self_is_nan = n.Emit("is_nan", {self}), other_is_nan = n.Emit("is_nan", {other});
  const Tensor both = n.Emit("logical_and", {self_is_nan, other_is_nan});
  const Tensor one =
      n.Emit("logical_and", {largest ? other_is_nan : self_is_nan, n.Emit("logical_not", {both})});
  return {n.Emit("logical_or", {order.better, one}), n.Emit("logical_or", {order.equal, both})};
}

// For each element of the last axis, how many come before it in the order that is asked for: larger
// ones, and equal ones with a lower index.
Tensor Ranks(NodeContext& n, const Tensor& x, bool largest) {
  const int64_t count = x.dim(x.rank() - 1);
  Shape row = x.shape(), column = x.shape();
  row.insert(row.end() - 1, 1);
  column.push_back(1);
  const Tensor self = n.Reshape(x, column), other = n.Reshape(x, row);
  Shape steps(static_cast<size_t>(count));
  std::iota(steps.begin(), steps.end(), 0);
  const Tensor own_id = n.Constant({count, 1}, steps), other_id = n.Constant({1, count}, steps);
  const Order order = OrderOf(n, self, other, largest);
  const Tensor earlier = n.Emit("logical_and", {order.equal, n.Emit("less", {other_id, own_id})});
  const Tensor before = n.Cast(n.Emit("logical_or", {order.better, earlier}), ir::kInt64);
  return n.Reduce("reduce_sum", before, {x.rank()}, false);
}

// The places of the first k in that order: for each, the sum of all places whose rank it is.
Tensor PlacesByRank(NodeContext& n, const Tensor& ranks, int64_t k) {
  const int64_t count = ranks.dim(ranks.rank() - 1);
  Shape row = ranks.shape();
  row.insert(row.end() - 1, 1);
  Shape ids(static_cast<size_t>(count)), wanted(static_cast<size_t>(k));
  std::iota(ids.begin(), ids.end(), 0);
  std::iota(wanted.begin(), wanted.end(), 0);
  const Tensor is_it = n.Emit("equal", {n.Reshape(ranks, row), n.Constant({k, 1}, wanted)});
  const Tensor places = n.Where(is_it, n.Constant({count}, ids), n.Constant({}, {0}));
  return n.Reduce("reduce_sum", places, {ranks.rank()}, false);
}

Shape SwappedWithLast(int64_t axis, int rank) {
  Shape axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(axis)], axes.back());
  return axes;
}

// k is an attribute before version 10.
void TopK(NodeContext& n) {
  n.RequireRank(0, 1);
  const int64_t k = n.version() < 10 ? n.Int("k", 1) : n.KnownInt(1, "K");
  if (n.failed()) return;
  const Tensor& input = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", -1), input.rank());
  const int64_t count = input.dim(axis);
  if (k < 1 || k > count) return n.Invalid("the first {} of {}", k, count);
  if (MultiplyCounts(input.num_elements(), count) > kMaxComparisons)
    return n.Unsupported("the order of {} along axis {}: all pairs are compared, up to 2^30",
                         TypeText(input.type), axis);
  const Shape swapped = SwappedWithLast(axis, input.rank());
  const Tensor x = n.Transpose(input, swapped);
  const Tensor places = PlacesByRank(n, Ranks(n, x, n.Int("largest", 1) != 0), k);
  const Tensor values =
      n.Emit("gather_elements", {x, places}, {{"axis", int64_t{input.rank()} - 1}});
  n.SetOutput(0, n.Transpose(values, swapped));
  n.SetOutput(1, n.Transpose(places, swapped));
}

}  // namespace

std::vector<Rule> SelectionRules() { return {{"TopK", TopK}}; }

}  // namespace kiln::frontend
