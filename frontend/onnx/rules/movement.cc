// Parts of tensors, and tensors of parts.
#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/evaluate_known.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

void Concat(NodeContext& n) {
  for (int i = 0; i < std::max(n.num_inputs(), 1); ++i) {
    n.RequireRank(i, 1);
  }
  if (n.version() >= 4 && !n.has("axis")) n.Invalid("attribute axis is missing");
  if (n.failed()) return;
  const int64_t axis = n.Axis(n.Int("axis", 1), n.input(0).rank());
  std::vector<Tensor> parts;
  for (int i = 0; i < n.num_inputs(); ++i) parts.push_back(n.input(i));
  n.SetOutput(n.Concat(std::move(parts), axis));
}

// Returns the sizes of equal parts. The last part is smaller if the extent is no multiple.
Shape EqualParts(NodeContext& n, int64_t extent, int64_t count) {
  Shape sizes;
  if (count < 1 || count > 1 << 16) n.Invalid("it splits into {} parts", count);
  if (n.failed()) return sizes;
  if (n.version() < 18 && extent % count != 0)
    n.Invalid("an extent of {} in {} equal parts", extent, count);
  const int64_t size = CeilDiv(extent, count);
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
  return sizes;
}

void Split(NodeContext& n) {
  n.RequireRank(0, 1);
  Shape sizes = n.IntsOfAttributeOrInput("split", 12, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", 0), x.rank());
  if (sizes.empty()) sizes = EqualParts(n, x.dim(axis), n.Int("num_outputs", n.num_outputs()));
  if (n.failed()) return;
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > x.dim(axis)) return n.Invalid("parts of [{}]", fmt::join(sizes, ", "));
    sum += size;
  }
  if (sum != x.dim(axis) || std::ssize(sizes) < n.num_outputs())
    return n.Invalid("parts of [{}] of an extent of {}", fmt::join(sizes, ", "), x.dim(axis));
  if (std::ranges::find(sizes, 0) == sizes.end() && sizes.size() > 1) {
    const std::vector<Tensor> parts = n.EmitAll("split", {x}, {{"axis", axis}, {"sizes", sizes}});
    for (size_t i = 0; i < parts.size(); ++i) n.SetOutput(static_cast<int>(i), parts[i]);
    return;
  }
  // Some parts have no elements.
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
    n.SetOutput(static_cast<int>(i), n.SliceAxis(x, axis, begin, sizes[i]));
}

// One axis of a slice in ONNX's form: the first element, the number of elements, and their
// distance.
struct AxisSlice {
  int64_t begin, extent, stride;
};
AxisSlice Normalized(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const bool forward = step > 0;
  const int64_t lowest = forward ? 0 : -1, highest = forward ? extent : extent - 1;
  // A negative number counts from the end; then it is clamped. Numbers far outside act like those
  // just outside.
  const auto clamped = [&](int64_t at) {
    if (at < 0) at = std::max(at, -extent - 1) + extent;
    return std::clamp(at, lowest, highest);
  };
  const int64_t first = clamped(start), last = clamped(end);
  const int64_t distance = forward ? last - first : first - last;
  const int64_t magnitude = step == INT64_MIN ? INT64_MAX : std::abs(step);
  return {first, distance > 0 ? CeilDiv(distance, magnitude) : 0,
          forward ? std::min(step, extent) : -std::min(magnitude, extent)};
}

struct SliceArguments {
  Shape starts, ends, axes, steps;
};

SliceArguments ReadSlice(NodeContext& n) {
  const bool are_attributes = n.version() < 10;
  const auto read = [&](std::string_view name, int input) {
    return are_attributes ? n.Ints(name) : n.KnownInts(input, name);
  };
  SliceArguments a{read("starts", 1), read("ends", 2), read("axes", 3), {}};
  if (!are_attributes) a.steps = read("steps", 4);
  if (n.failed()) return a;
  const size_t count = a.starts.size();
  if (a.axes.empty()) {
    a.axes.resize(count);
    std::iota(a.axes.begin(), a.axes.end(), 0);
  }
  if (a.steps.empty()) a.steps.assign(count, 1);
  if (a.ends.size() != count || a.axes.size() != count || a.steps.size() != count)
    n.Invalid("it has {} starts, {} ends, {} axes and {} steps", count, a.ends.size(),
              a.axes.size(), a.steps.size());
  return a;
}

void Slice(NodeContext& n) {
  n.RequireRank(0, 0);
  const SliceArguments a = ReadSlice(n);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  Shape begins(x.shape().size(), 0), extents = x.shape(), strides(x.shape().size(), 1);
  for (size_t i = 0; i < a.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(n.Axis(a.axes[i], x.rank()));
    if (n.failed()) return;
    if (a.steps[i] == 0) return n.Invalid("a step of 0");
    const AxisSlice slice = Normalized(a.starts[i], a.ends[i], a.steps[i], x.shape()[axis]);
    begins[axis] = slice.begin;
    extents[axis] = slice.extent;
    strides[axis] = slice.stride;
  }
  if (Tensor empty = Tensor::Empty({x.element(), extents}); empty.is_empty())
    return n.SetOutput(empty);
  const bool is_all =
      extents == x.shape() && std::ranges::all_of(strides, [](int64_t s) { return s == 1; });
  if (is_all) return n.SetOutput(x);
  n.SetOutput(
      n.Emit("slice", {x}, {{"begin", begins}, {"extents", extents}, {"strides", strides}}));
}

// Keeps the elements whose condition holds, of an axis or of all elements in a row.
void Compress(NodeContext& n) {
  n.RequireRank(0, 1);
  n.RequireRank(1, 1, 1);
  if (!n.failed() && !n.input(1).is_known()) {
    return n.Unsupported(
        "its condition is computed while the network runs, so that the shape of its result depends "
        "on data, and shapes are static in Kiln: compute it outside of the network");
  }
  const Shape condition = n.KnownInts(1, "condition");
  if (n.failed()) return;
  Tensor x = n.input(0);
  int64_t axis = 0;
  if (n.has("axis")) {
    axis = n.Axis(n.Int("axis", 0), x.rank());
  } else {
    x = n.Reshape(x, {x.num_elements()});
  }
  Shape ids;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) ids.push_back(static_cast<int64_t>(i));
  if (n.failed()) return;
  if (ids.empty()) {
    Shape shape = x.shape();
    shape[static_cast<size_t>(axis)] = 0;
    return n.SetOutput(Tensor::Empty({x.element(), std::move(shape)}));
  }
  if (ids.back() >= x.dim(axis))
    return n.Invalid("a condition of {} of {} elements", condition.size(), x.dim(axis));
  n.SetOutput(n.Gather(x, n.Constant({std::ssize(ids)}, ids), axis));
}

void Trilu(NodeContext& n) {
  n.RequireRank(0, 2);
  const int64_t k = n.has_input(1) ? n.KnownInt(1, "k") : 0;
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
  if (x.is_empty()) return n.SetOutput(x);
  n.SetOutput(n.Emit("triangle", {x},
                     {{"upper", n.Int("upper", 1)}, {"offset", std::clamp(k, -rows, columns)}}));
}

// Reverses the first `length` elements of each sequence of a batch; the rest stays.
void ReverseSequence(NodeContext& n) {
  n.RequireRank(0, 2);
  n.RequireRank(1, 1, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t time_axis = n.Int("time_axis", 0), batch_axis = n.Int("batch_axis", 1);
  if (time_axis + batch_axis != 1 || std::min(time_axis, batch_axis) != 0)
    return n.Invalid("time_axis is {}, batch_axis {}", time_axis, batch_axis);
  if (x.dim(time_axis) > kMaxKnownElements)
    return n.Unsupported("a sequence of {}", x.dim(time_axis));
  Shape steps(static_cast<size_t>(x.dim(time_axis)));
  std::iota(steps.begin(), steps.end(), 0);
  Shape time_shape(x.shape().size(), 1), batch_shape(x.shape().size(), 1);
  time_shape[static_cast<size_t>(time_axis)] = x.dim(time_axis);
  batch_shape[static_cast<size_t>(batch_axis)] = x.dim(batch_axis);
  const Tensor time = n.Constant(time_shape, steps);
  const Tensor length = n.Reshape(n.Cast(n.input(1), ir::kInt64), batch_shape);
  const Tensor backwards = n.Sub(n.Sub(length, n.Constant({}, {1})), time);
  const Tensor ids = n.Where(n.Emit("less", {time, length}), backwards, time);
  n.SetOutput(n.Emit("gather_elements", {x, n.BroadcastTo(ids, x.shape())}, {{"axis", time_axis}}));
}

}  // namespace

std::vector<Rule> MovementRules() {
  return {{"Concat", Concat},     {"Split", Split}, {"Slice", Slice},
          {"Compress", Compress}, {"Trilu", Trilu}, {"ReverseSequence", ReverseSequence}};
}

}  // namespace kiln::frontend
