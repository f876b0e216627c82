// Sampling at computed coordinates: grids of points, and Col2Im, which spreads blocks over an
// image.
#include <algorithm>
#include <cmath>

#include "base/numbers/integers.h"
#include "frontend/onnx/evaluate_known.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

enum class Outside { kZeros, kBorder, kReflection };

struct Sampling {
  // 0: nearest, 1: linear, 3: cubic.
  int order = 1;
  Outside outside = Outside::kZeros;
  bool aligns_corners = false;
};

Sampling ReadSampling(NodeContext& n) {
  Sampling sampling{.aligns_corners = n.Int("align_corners", 0) != 0};
  const std::string mode = n.Text("mode", n.version() < 20 ? "bilinear" : "linear");
  const std::string outside = n.Text("padding_mode", "zeros");
  if (mode == "nearest") sampling.order = 0;
  if (mode == "cubic" || mode == "bicubic") sampling.order = 3;
  if (outside == "border") sampling.outside = Outside::kBorder;
  if (outside == "reflection") sampling.outside = Outside::kReflection;
  return sampling;
}

// Points of one axis of the image as floats: [batch, points].
class AxisPoints {
 public:
  AxisPoints(NodeContext& n, const Sampling& sampling, int64_t extent)
      : n_(n), sampling_(sampling), extent_(extent) {}

  // Converts -1..1 to element numbers. Points past the border are moved by the padding mode.
  Tensor Position(const Tensor& x) {
    const auto extent = static_cast<double>(extent_);
    const Tensor moved = n_.Add(x, Number(x, 1));
    Tensor at = sampling_.aligns_corners
                    ? n_.Mul(moved, Number(x, (extent - 1) / 2))
                    : n_.Sub(n_.Mul(moved, Number(x, extent / 2)), Number(x, 0.5));
    if (sampling_.order == 0) at = n_.Emit("round", {at});
    if (sampling_.outside == Outside::kBorder) return Clip(at);
    return sampling_.outside == Outside::kReflection ? Reflected(at) : at;
  }

  // Returns the elements that are read: whole numbers inside of the image.
  Tensor Element(const Tensor& at) {
    const Tensor inside = Clip(sampling_.outside == Outside::kReflection ? Reflected(at) : at);
    return n_.Cast(inside, ir::kInt64);
  }

  Tensor IsInside(const Tensor& at) {
    return n_.Emit("logical_and",
                   {n_.Emit("greater_equal", {at, Number(at, 0)}),
                    n_.Emit("less_equal", {at, Number(at, static_cast<double>(extent_ - 1))})});
  }

 private:
  Tensor Number(const Tensor& x, double value) { return n_.ScalarLike(x, value); }
  Tensor Clip(const Tensor& at) {
    return n_.Emit("clip", {at}, {{"min", 0.0}, {"max", static_cast<double>(extent_ - 1)}});
  }
  // Reflects between the first and the last border.
  Tensor Reflected(const Tensor& at) {
    const double low = sampling_.aligns_corners ? 0 : -0.5;
    const double range = static_cast<double>(extent_ - 1) - 2 * low;
    if (range <= 0) return n_.Mul(at, Number(at, 0));
    const Tensor distance = n_.Emit("abs", {n_.Sub(at, Number(at, low))});
    const Tensor around = n_.Emit("mod", {distance, Number(at, 2 * range)});
    const Tensor back = n_.Sub(Number(at, 2 * range), around);
    return n_.Add(n_.Emit("minimum", {around, back}), Number(at, low));
  }

  NodeContext& n_;
  const Sampling& sampling_;
  int64_t extent_;
};

// Returns weights of the elements around a point that lies `fraction` past the element left of it.
std::vector<Tensor> KernelWeights(NodeContext& n, int order, const Tensor& fraction) {
  const auto number = [&](double value) { return n.ScalarLike(fraction, value); };
  const Tensor rest = n.Sub(number(1), fraction);
  if (order == 1) return {rest, fraction};
  constexpr double a = -0.75;
  // ((p x + q) x + r) x + s
  const auto cubic = [&](const Tensor& x, double p, double q, double r, double s) {
    const Tensor inner = n.Add(n.Mul(n.Add(n.Mul(x, number(p)), number(q)), x), number(r));
    return n.Add(n.Mul(inner, x), number(s));
  };
  const auto near = [&](const Tensor& x) { return cubic(x, a + 2, -(a + 3), 0, 1); };
  const auto far = [&](const Tensor& x) {
    return cubic(n.Add(x, number(1)), a, -5 * a, 8 * a, -4 * a);
  };
  return {far(fraction), near(fraction), near(rest), far(rest)};
}

// One element of an axis that a point reads, and its weight.
struct Tap {
  Tensor element;
  // Absent: 1.
  Tensor weight;
};

std::vector<Tap> TapsOf(NodeContext& n, const Sampling& sampling, const Tensor& x, int64_t extent) {
  AxisPoints points(n, sampling, extent);
  const Tensor at = points.Position(x);
  const bool is_nearest = sampling.order == 0;
  const Tensor left = is_nearest ? at : n.Emit("floor", {at});
  std::vector<Tensor> weights(1);
  if (!is_nearest) weights = KernelWeights(n, sampling.order, n.Sub(at, left));
  std::vector<Tap> taps;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double offset = static_cast<double>(i) - (sampling.order == 3 ? 1 : 0);
    const Tensor place = n.Add(left, n.ScalarLike(left, offset));
    Tensor weight = weights[i];
    if (sampling.outside == Outside::kZeros) {
      const Tensor inside = n.Cast(points.IsInside(place), x.element());
      weight = weight.exists() ? n.Mul(weight, inside) : inside;
    }
    taps.push_back({points.Element(place), weight});
  }
  return taps;
}

// Combines the taps of two axes: element numbers are row-major over both axes.
Tap Combined(NodeContext& n, const Tap& outer, const Tap& inner, int64_t inner_extent) {
  if (!outer.element.exists()) return inner;
  Tap both;
  both.element = n.Add(n.Mul(outer.element, n.Constant({}, {inner_extent})), inner.element);
  both.weight = inner.weight;
  if (outer.weight.exists())
    both.weight = inner.weight.exists() ? n.Mul(outer.weight, inner.weight) : outer.weight;
  return both;
}

// Returns the taps of each of the points [batch, points, axes] in an image of those extents. The
// last axis of the points has the image's axes backwards.
std::vector<Tap> TapsOfPoints(NodeContext& n, const Sampling& sampling, const Tensor& points,
                              const Shape& extents) {
  std::vector<Tap> all(1);
  const auto axes = std::ssize(extents);
  for (int64_t d = 0; d < axes && !n.failed(); ++d) {
    const int64_t extent = extents[static_cast<size_t>(d)];
    const Tensor coordinate =
        n.Reshape(n.SliceAxis(points, 2, axes - 1 - d, 1), {points.dim(0), points.dim(1)});
    const std::vector<Tap> along = TapsOf(n, sampling, coordinate, extent);
    std::vector<Tap> next;
    for (const Tap& outer : all)
      for (const Tap& inner : along) next.push_back(Combined(n, outer, inner, extent));
    all = std::move(next);
  }
  return all;
}

// Samples x [batch, channels, spatial...] at the points of `grid` [batch, out..., axes].
void GridSample(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 3, 6);
  n.RequireRank(1, 3, 6);
  if (n.failed()) return;
  const Tensor &x = n.input(0), &grid = n.input(1);
  const int axes = x.rank() - 2;
  if (grid.rank() != x.rank() || grid.dim(axes + 1) != axes || grid.dim(0) != x.dim(0))
    return n.Invalid("a grid of {} for {}", TypeText(grid.type), TypeText(x.type));
  const Sampling sampling = ReadSampling(n);
  const Shape out(grid.shape().begin() + 1, grid.shape().end() - 1);
  const Shape extents(x.shape().begin() + 2, x.shape().end());
  const int64_t count = ProductOfCounts(out), batch = x.dim(0), channels = x.dim(1);
  const Tensor points = n.Reshape(n.Cast(grid, x.element()), {batch, count, axes});
  const Tensor flat = n.Reshape(x, {batch, channels, ProductOfCounts(extents)});
  Tensor y;
  for (const Tap& tap : TapsOfPoints(n, sampling, points, extents)) {
    const Tensor ids =
        n.BroadcastTo(n.Reshape(tap.element, {batch, 1, count}), {batch, channels, count});
    Tensor term = n.Emit("gather_elements", {flat, ids}, {{"axis", int64_t{2}}});
    if (tap.weight.exists()) term = n.Mul(term, n.Reshape(tap.weight, {batch, 1, count}));
    y = y.exists() ? n.Add(y, term) : term;
  }
  Shape shape = {batch, channels};
  shape.insert(shape.end(), out.begin(), out.end());
  n.SetOutput(n.Reshape(y, std::move(shape)));
}

// Returns coordinates from -1 to 1 of the middles of elements. If corners are aligned, -1 and 1 are
// the first and the last element.
std::vector<double> EvenCoordinates(int64_t extent, bool aligns_corners) {
  std::vector<double> values;
  for (int64_t i = 0; i < extent; ++i) {
    const auto at = static_cast<double>(i), size = static_cast<double>(extent);
    if (aligns_corners) values.push_back(extent == 1 ? -1 : 2 * at / (size - 1) - 1);
    if (!aligns_corners) values.push_back((2 * at + 1) / size - 1);
  }
  return values;
}

// Returns [points, axes + 1]: coordinates of each element of an image, its last axis first, and a
// 1.
Tensor HomogeneousPoints(NodeContext& n, ir::Type type, const Shape& image, bool aligns_corners) {
  const auto axes = std::ssize(image);
  const int64_t count = ProductOfCounts(image);
  std::vector<double> points(static_cast<size_t>(count * (axes + 1)), 1);
  int64_t stride = count;
  for (int64_t d = 0; d < axes; ++d) {
    const std::vector<double> along =
        EvenCoordinates(image[static_cast<size_t>(d)], aligns_corners);
    stride /= std::ssize(along);
    for (int64_t p = 0; p < count; ++p) {
      const auto at = static_cast<size_t>(p / stride % std::ssize(along));
      points[static_cast<size_t>(p * (axes + 1) + axes - 1 - d)] = along[at];
    }
  }
  return n.Constant(type, {count, axes + 1}, points);
}

// Applies theta [batch, axes, axes + 1] to the points of an image of `size` [batch, channels,
// image...].
void AffineGrid(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 3, 3);
  const Shape size = n.KnownInts(1, "size");
  const bool aligns_corners = n.Int("align_corners", 0) != 0;
  if (n.failed()) return;
  const Tensor& theta = n.input(0);
  const int64_t axes = theta.dim(1);
  const Shape image(size.begin() + std::min<int64_t>(2, std::ssize(size)), size.end());
  const bool has_bad = std::ranges::any_of(image, [](int64_t extent) { return extent < 1; });
  if (theta.dim(2) != axes + 1 || std::ssize(image) != axes || has_bad)
    return n.Invalid("{} for a size of [{}]", TypeText(theta.type), fmt::join(size, ", "));
  const int64_t count = ProductOfCounts(image);
  if (count > kMaxKnownElements / (axes + 1))
    return n.Unsupported("a grid of more than 2^20 numbers");
  const Tensor points = HomogeneousPoints(n, theta.element(), image, aligns_corners);
  const Tensor y = n.Emit("matmul", {points, theta}, {{"transpose_b", int64_t{1}}});
  Shape shape = {theta.dim(0)};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(axes);
  n.SetOutput(n.Reshape(y, std::move(shape)));
}

// The places of blocks in an image: a window at even distances.
struct Blocks {
  Shape image = {}, block = {}, strides = {}, dilations = {}, pads = {};
  // Positions of the window by axis.
  Shape counts = {};
  // Elements that remain at the end of each axis.
  Shape remainders = {};
};

Blocks ReadBlocks(NodeContext& n) {
  Blocks b{.image = n.KnownInts(1, "image_shape"), .block = n.KnownInts(2, "block_shape")};
  const auto rank = static_cast<int>(b.block.size());
  b.strides = n.Counts("strides", rank, 1, 1);
  b.dilations = n.Counts("dilations", rank, 1, 1);
  b.pads = n.Counts("pads", 2 * rank, 0);
  const auto is_bad = [](int64_t extent) { return extent < 1 || extent > int64_t{1} << 30; };
  const bool fits = b.image.size() == b.block.size() && !b.block.empty() &&
                    std::ranges::none_of(b.image, is_bad) && std::ranges::none_of(b.block, is_bad);
  if (!n.failed() && !fits)
    n.Invalid("blocks of [{}] in an image of [{}]", fmt::join(b.block, ", "),
              fmt::join(b.image, ", "));
  for (size_t d = 0; d < b.block.size() && !n.failed(); ++d) {
    const int64_t space =
        b.image[d] + b.pads[d] + b.pads[b.block.size() + d] - (b.block[d] - 1) * b.dilations[d] - 1;
    if (space < 0) n.Invalid("a block of {} in an extent of {}", b.block[d], b.image[d]);
    b.counts.push_back(space / b.strides[d] + 1);
    b.remainders.push_back(space % b.strides[d]);
  }
  return b;
}

// Returns [size, 1, block...]: row i has a 1 at the place of element i of a block.
Tensor UnitBlocks(NodeContext& n, ir::Type type, const Shape& block) {
  const int64_t size = ProductOfCounts(block);
  Shape shape = {size, 1};
  shape.insert(shape.end(), block.begin(), block.end());
  std::vector<double> weights(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i) weights[static_cast<size_t>(i * size + i)] = 1;
  return n.Constant(type, std::move(shape), weights);
}

// Adds blocks [batch, channels block, positions] where a window would have read them. For each
// channel it is a transposed convolution whose weights put each element of a block in its place.
void Col2Im(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 3, 3);
  const Blocks b = ReadBlocks(n);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t size = ProductOfCounts(b.block);
  if (x.dim(1) % size != 0 || ProductOfCounts(b.counts) != x.dim(2))
    return n.Invalid("{} for blocks of [{}]", TypeText(x.type), fmt::join(b.block, ", "));
  if (size > 1 << 10) return n.Unsupported("blocks of {} elements", size);
  const int64_t channels = x.dim(1) / size;
  Shape columns = {x.dim(0) * channels, size}, image = {x.dim(0), channels};
  columns.insert(columns.end(), b.counts.begin(), b.counts.end());
  image.insert(image.end(), b.image.begin(), b.image.end());
  const Tensor y =
      n.Emit("conv_transpose", {n.Reshape(x, columns), UnitBlocks(n, x.element(), b.block)},
             {{"strides", b.strides},
              {"pads", b.pads},
              {"dilations", b.dilations},
              {"output_padding", b.remainders},
              {"groups", int64_t{1}}});
  n.SetOutput(n.Reshape(y, std::move(image)));
}

}  // namespace

std::vector<Rule> GridRules() {
  return {{"GridSample", GridSample}, {"AffineGrid", AffineGrid}, {"Col2Im", Col2Im}};
}

}  // namespace kiln::frontend
