// Elements in another shape, or repeated to fill one.
#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Returns the product of extents of a known tensor; some of them may be 0.
int64_t CountOf(const Shape& shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  return ProductOfCounts(shape);
}

// 0 stands for the extent of x, unless allowzero makes it an extent of 0; -1 stands for the rest.
Shape ResolvedShape(NodeContext& n, const Tensor& x, Shape shape) {
  const bool allows_zero = n.Int("allowzero", 0) != 0;
  int64_t known = 1, open = -1;
  for (size_t d = 0; d < shape.size() && !n.failed(); ++d) {
    if (shape[d] == 0 && !allows_zero) {
      if (static_cast<int>(d) >= x.rank())
        n.Invalid("extent {} of its shape is 0 of an input of {} dimensions", d, x.rank());
      shape[d] = x.dim(static_cast<int64_t>(d));
    }
    if (shape[d] < -1 || (shape[d] == -1 && open >= 0))
      n.Invalid("its shape is [{}]", fmt::join(shape, ", "));
    if (shape[d] == -1) open = static_cast<int64_t>(d);
    known = shape[d] == -1 ? known : shape[d] == 0 ? 0 : MultiplyCounts(known, shape[d]);
  }
  const int64_t count = CountOf(x.shape());
  if (open >= 0 && known > 0) shape[static_cast<size_t>(open)] = count / known;
  const bool fits = open >= 0 ? known > 0 && count % known == 0 : known == count;
  if (!n.failed() && !fits)
    n.Invalid("{} does not fit a shape of [{}]", TypeText(x.type), fmt::join(shape, ", "));
  return shape;
}

void Reshape(NodeContext& n) {
  n.RequireRank(0, 0);
  const Shape wanted = n.IntsOfAttributeOrInput("shape", 4, 1);
  if (n.failed()) return;
  const Shape shape = ResolvedShape(n, n.input(0), wanted);
  n.SetOutput(n.Reshape(n.input(0), shape));
}

void Flatten(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  int64_t axis = n.Int("axis", 1);
  // The axis may be the rank: then all elements are one column.
  if (axis != x.rank()) axis = n.Axis(axis, x.rank());
  if (n.failed()) return;
  const Shape &shape = x.shape(), before(shape.begin(), shape.begin() + axis),
              after(shape.begin() + axis, shape.end());
  n.SetOutput(n.Reshape(x, {CountOf(before), CountOf(after)}));
}

void Squeeze(NodeContext& n) {
  n.RequireRank(0, 0);
  const bool has_axes = n.version() <= 12 ? n.has("axes") : n.has_input(1);
  const Shape wanted = n.IntsOfAttributeOrInput("axes", 12, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Shape axes = n.Axes(wanted, x.rank());
  Shape shape;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const bool goes = has_axes ? std::ranges::find(axes, d) != axes.end() : x.dim(d) == 1;
    if (!goes) shape.push_back(x.dim(d));
    if (goes && x.dim(d) != 1)
      n.Invalid("axis {} of {} has an extent of {}", d, TypeText(x.type), x.dim(d));
  }
  n.SetOutput(n.Reshape(x, std::move(shape)));
}

void Unsqueeze(NodeContext& n) {
  n.RequireRank(0, 0);
  const Shape wanted = n.IntsOfAttributeOrInput("axes", 12, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  if (x.rank() + std::ssize(wanted) > 32) return n.Invalid("more than 32 dimensions");
  const Shape axes = n.Axes(wanted, x.rank() + static_cast<int>(wanted.size()));
  Shape shape = x.shape();
  for (int64_t axis : axes)
    if (axis <= std::ssize(shape)) shape.insert(shape.begin() + axis, 1);
  n.SetOutput(n.Reshape(x, std::move(shape)));
}

void Expand(NodeContext& n) {
  n.RequireRank(0, 0);
  const Shape wanted = n.KnownInts(1, "shape");
  if (n.failed()) return;
  const Shape shape = n.BroadcastShape(n.input(0).shape(), wanted);
  if (Tensor empty = Tensor::Empty({n.input(0).element(), shape}); empty.is_empty())
    return n.SetOutput(empty);
  n.SetOutput(n.BroadcastTo(n.input(0), shape));
}

// Version 1 repeats one axis; later versions have a count for each axis.
void Tile(NodeContext& n) {
  n.RequireRank(0, 0);
  Shape repeats = n.KnownInts(1, "repeats");
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  if (n.version() < 6) {
    const int64_t axis = n.Axis(n.KnownInt(2, "axis"), x.rank()), count = n.KnownInt(1, "tiles");
    if (n.failed()) return;
    repeats.assign(x.shape().size(), 1);
    repeats[static_cast<size_t>(axis)] = count;
  }
  if (std::ssize(repeats) != x.rank())
    return n.Invalid("{} repeats of {} dimensions", repeats.size(), x.rank());
  if (std::ranges::all_of(repeats, [](int64_t r) { return r == 1; })) return n.SetOutput(x);
  for (int64_t r : repeats) {
    if (r < 0) return n.Invalid("its repeats are [{}]", fmt::join(repeats, ", "));
  }
  if (x.is_empty() || std::ranges::find(repeats, 0) != repeats.end()) {
    Shape shape = x.shape();
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = MultiplyCounts(shape[d], repeats[d]);
    return n.SetOutput(Tensor::Empty({x.element(), std::move(shape)}));
  }
  n.SetOutput(n.Emit("tile", {x}, {{"repeats", repeats}}));
}

void Transpose(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  Shape reversed(x.shape().size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const Shape axes = n.Ints("perm", reversed);
  if (!std::ranges::is_permutation(axes, reversed))
    return n.Invalid("perm is [{}], of an input of {} dimensions", fmt::join(axes, ", "), x.rank());
  n.SetOutput(n.Transpose(x, axes));
}

// Turns blocks of channels into blocks of pixels. In the channels, DCR has the block before the
// depth, CRD after it.
void DepthToSpace(NodeContext& n) {
  n.RequireRank(0, 4, 4);
  const int64_t b = n.Count("blocksize", 0, 1);
  const std::string mode = n.Text("mode", "DCR");
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t depth = x.dim(1) / b / b, height = x.dim(2), width = x.dim(3);
  if (x.dim(1) % (b * b) != 0) return n.Invalid("{} channels in blocks of {}", x.dim(1), b * b);
  Tensor y;
  if (mode == "DCR") {
    y = n.Transpose(n.Reshape(x, {x.dim(0), b, b, depth, height, width}), {0, 3, 4, 1, 5, 2});
  } else {
    y = n.Transpose(n.Reshape(x, {x.dim(0), depth, b, b, height, width}), {0, 1, 4, 2, 5, 3});
  }
  n.SetOutput(n.Reshape(y, {x.dim(0), depth, height * b, width * b}));
}

void SpaceToDepth(NodeContext& n) {
  n.RequireRank(0, 4, 4);
  const int64_t b = n.Count("blocksize", 0, 1);
  const std::string mode = n.Text("mode", "DCR");
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t height = x.dim(2) / b, width = x.dim(3) / b;
  if (x.dim(2) % b != 0 || x.dim(3) % b != 0)
    return n.Invalid("{} in blocks of {}", TypeText(x.type), b);
  const Shape axes = mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4};
  const Tensor y = n.Transpose(n.Reshape(x, {x.dim(0), x.dim(1), height, b, width, b}), axes);
  n.SetOutput(n.Reshape(y, {x.dim(0), x.dim(1) * b * b, height, width}));
}

}  // namespace

std::vector<Rule> ShapeRules() {
  return {{"Reshape", Reshape},
          {"Flatten", Flatten},
          {"Squeeze", Squeeze},
          {"Unsqueeze", Unsqueeze},
          {"Expand", Expand},
          {"Tile", Tile},
          {"Transpose", Transpose},
          {"DepthToSpace", DepthToSpace},
          {"SpaceToDepth", SpaceToDepth}};
}

}  // namespace kiln::frontend
