// The largest elements in order, and distinct elements.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Every element is compared with every other element of its row.
constexpr int64_t kMaxComparisons = int64_t{1} << 30;

// Tells which of two elements comes first, and whether they are equal. Like in numpy and PyTorch, a
// NaN is larger than all numbers and equal to a NaN.
struct Order {
  // Bools. `better`: the other element comes before the element itself.
  Tensor better, equal;
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

// Returns for each element of the last axis how many elements come before it: larger ones in the
// wanted order, and equal ones with a lower index.
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

// Returns the places of the first k in that order. Each is the sum of all places with that rank.
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

// ---- distinct elements

// Slices of a known tensor along its first axis, ordered element by element. A NaN comes after all
// numbers.
class Slices {
 public:
  explicit Slices(const Tensor& x) : size_(x.num_elements() / x.dim(0)) {
    const bool is_whole = !x.element().is_float();
    if (is_whole) whole_ = x.constant->ToInts();
    if (x.element() == ir::kUInt64) {
      // Signed comparisons of these bits give the order of unsigned numbers.
      for (int64_t& bits : whole_) bits ^= INT64_MIN;
    }
    for (int64_t i = 0; !is_whole && i < x.num_elements(); ++i)
      values_.push_back(x.constant->At(i));
  }

  bool Less(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < size_; ++i) {
      if (ElementLess(a * size_ + i, b * size_ + i)) return true;
      if (ElementLess(b * size_ + i, a * size_ + i)) return false;
    }
    return false;
  }

 private:
  bool ElementLess(int64_t a, int64_t b) const {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if (!whole_.empty()) return whole_[i] < whole_[j];
    if (std::isnan(values_[i]) || std::isnan(values_[j]))
      return !std::isnan(values_[i]) && std::isnan(values_[j]);
    return values_[i] < values_[j];
  }

  int64_t size_;
  Shape whole_;
  std::vector<double> values_;
};

// The first slice of each kind in the wanted order, the kind of each slice, and the size of each
// kind.
struct Kinds {
  Shape first = {}, kind = {}, count = {};
};

Kinds KindsOf(const Slices& slices, int64_t num_slices, bool sorted) {
  Shape order(static_cast<size_t>(num_slices));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return slices.Less(a, b); });
  Kinds kinds{.kind = Shape(order.size())};
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.Less(order[i - 1], order[i])) {
      kinds.first.push_back(order[i]);
      kinds.count.push_back(0);
    }
    ++kinds.count.back();
    kinds.kind[static_cast<size_t>(order[i])] = std::ssize(kinds.first) - 1;
  }
  if (sorted) return kinds;
  Shape by_place(kinds.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  const auto first_of = [&](int64_t k) { return kinds.first[static_cast<size_t>(k)]; };
  std::ranges::sort(by_place, std::less(), first_of);
  Kinds placed{.kind = Shape(order.size())};
  Shape number(kinds.first.size());
  for (size_t k = 0; k < by_place.size(); ++k) {
    placed.first.push_back(first_of(by_place[k]));
    placed.count.push_back(kinds.count[static_cast<size_t>(by_place[k])]);
    number[static_cast<size_t>(by_place[k])] = static_cast<int64_t>(k);
  }
  for (size_t i = 0; i < order.size(); ++i)
    placed.kind[i] = number[static_cast<size_t>(kinds.kind[i])];
  return placed;
}

void Unique(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const Tensor& input = n.input(0);
  if (!input.is_known()) {
    return n.Unsupported(
        "the shape of its result depends on data, and shapes are static in Kiln: compute it "
        "outside "
        "of the network");
  }
  if (input.is_empty()) return n.Unsupported("what differs in a tensor without elements");
  // Compares all elements, or slices along an axis, which becomes the first axis.
  const int64_t axis = n.has("axis") ? n.Axis(n.Int("axis", 0), input.rank()) : 0;
  Shape axes(n.has("axis") ? input.shape().size() : 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.failed()) return;
  std::rotate(axes.begin(), axes.begin() + axis, axes.begin() + axis + 1);
  const Tensor flat = n.has("axis") ? input : n.Reshape(input, {input.num_elements()});
  const Tensor x = n.Transpose(flat, axes);
  if (n.failed()) return;
  if (!x.is_known()) return n.Unsupported("what differs in {}: it is too large", TypeText(x.type));
  const Kinds kinds = KindsOf(Slices(x), x.dim(0), n.Int("sorted", 1) != 0);
  const auto list = [&](const Shape& values) { return n.Constant({std::ssize(values)}, values); };
  n.SetOutput(0, n.Gather(flat, list(kinds.first), axis));
  n.SetOutput(1, list(kinds.first));
  n.SetOutput(2, list(kinds.kind));
  n.SetOutput(3, list(kinds.count));
}

}  // namespace

std::vector<Rule> SelectionRules() { return {{"TopK", TopK}, {"Unique", Unique}}; }

}  // namespace kiln::frontend
