// Resize and Upsample. Along each resized axis every output element is a weighted sum of a few
// input elements. The elements and weights follow from the extents alone, so the tables are made
// here. The formulas are those of ONNX's operator description.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Outputs of an axis times inputs for each.
constexpr int64_t kMaxTable = int64_t{1} << 22;

struct ResizeMode {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75;
  bool excludes_outside = false;
  bool antialiases = false;
  double extrapolation = 0;
  // True: corners are aligned with those of the whole output, like in PyTorch. False: the output's
  // extent keeps the fraction that it has as a product with a scale, like in ONNX's reference.
  bool aligns_whole = false;
};

// One axis: extents, the factor between them, and the region of interest as parts of the input.
struct AxisResize {
  int64_t in, out;
  double scale;
  double start = 0, end = 1;
};

// Returns the place of an output element in the input.
double Coordinate(const ResizeMode& mode, const AxisResize& axis, double x) {
  const auto in = static_cast<double>(axis.in);
  // The extent with its fraction.
  const double out = axis.scale * in;
  if (mode.coordinates == "align_corners") {
    const double corners = mode.aligns_whole ? static_cast<double>(axis.out) : out;
    return corners == 1 ? 0 : x * (in - 1) / (corners - 1);
  }
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode.coordinates == "tf_crop_and_resize") {
    const double size = (axis.end - axis.start) * (in - 1);
    return axis.start * (in - 1) + (out == 1 ? size / 2 : x * size / (out - 1));
  }
  if (mode.coordinates == "pytorch_half_pixel" && out == 1) return -0.5;
  const double centre = (x + 0.5) / axis.scale - 0.5;
  if (mode.coordinates != "half_pixel_symmetric") return centre;
  // The middle of the input stays the middle of the output when that is rounded to whole elements.
  return centre + in / 2 * (1 - static_cast<double>(axis.out) / out);
}

double CubicKernel(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Input elements from `first` on, with their weights.
struct Taps {
  int64_t first;
  std::vector<double> weights;
};

// Returns a kernel around x. Antialiasing stretches the kernel of a downscaling.
Taps KernelTaps(const ResizeMode& mode, double scale, double x) {
  const bool is_cubic = mode.mode == "cubic";
  const double shrink = mode.antialiases ? std::min(scale, 1.0) : 1.0;
  // The element left of x: the distance from it to x is in (0, 1].
  const double left = std::ceil(x) - 1;
  const auto begin = static_cast<int64_t>(std::floor((is_cubic ? -2 : -1) / shrink) + 1);
  Taps taps{static_cast<int64_t>(left) + begin, {}};
  for (int64_t i = begin; i < 2 - begin; ++i) {
    const double distance = (static_cast<double>(i) - (x - left)) * shrink;
    taps.weights.push_back(is_cubic ? CubicKernel(distance, mode.cubic_a)
                                    : std::max(1 - std::abs(distance), 0.0));
  }
  return taps;
}

// Scales the weights to a sum of 1. Elements outside of the input count for nothing if the mode
// says so.
void Normalize(const ResizeMode& mode, int64_t extent, Taps& taps) {
  for (size_t i = 0; mode.excludes_outside && i < taps.weights.size(); ++i) {
    const int64_t at = taps.first + static_cast<int64_t>(i);
    if (at < 0 || at >= extent) taps.weights[i] = 0;
  }
  const double sum = std::accumulate(taps.weights.begin(), taps.weights.end(), 0.0);
  if (sum == 0 || !(mode.excludes_outside || mode.antialiases)) return;
  for (double& weight : taps.weights) weight /= sum;
}

int64_t Nearest(const ResizeMode& mode, double x) {
  if (mode.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

// Checks that the tables of an axis have a sound size.
bool FitsTable(NodeContext& n, const ResizeMode& mode, const AxisResize& axis) {
  const double stretch = mode.antialiases ? std::max(1 / axis.scale, 1.0) : 1.0;
  const double taps = mode.mode == "nearest" ? 1 : (mode.mode == "cubic" ? 4 : 2) * stretch + 2;
  if (static_cast<double>(axis.out) * taps > static_cast<double>(kMaxTable))
    n.Unsupported("from {} to {} elements: a table of more than 2^22 weights", axis.in, axis.out);
  return !n.failed();
}

Tensor NearestAlong(NodeContext& n, const Tensor& x, int64_t axis, const AxisResize& resize,
                    const ResizeMode& mode) {
  Shape ids;
  for (int64_t o = 0; o < resize.out; ++o) {
    const int64_t at = Nearest(mode, Coordinate(mode, resize, static_cast<double>(o)));
    ids.push_back(std::clamp<int64_t>(at, 0, resize.in - 1));
  }
  return n.Gather(x, n.Constant({resize.out}, ids), axis);
}

Tensor InterpolatedAlong(NodeContext& n, const Tensor& x, int64_t axis, const AxisResize& resize,
                         const ResizeMode& mode) {
  Shape ids;
  std::vector<double> weights;
  for (int64_t o = 0; o < resize.out && !n.failed(); ++o) {
    const double at = Coordinate(mode, resize, static_cast<double>(o));
    Taps taps = KernelTaps(mode, resize.scale, at);
    Normalize(mode, resize.in, taps);
    for (size_t i = 0; i < taps.weights.size(); ++i)
      ids.push_back(std::clamp<int64_t>(taps.first + static_cast<int64_t>(i), 0, resize.in - 1));
    weights.insert(weights.end(), taps.weights.begin(), taps.weights.end());
  }
  if (n.failed()) return x;
  const Shape shape = {resize.out, std::ssize(ids) / resize.out};
  return n.Emit("resample", {x, n.Constant(shape, ids), n.Constant(x.element(), shape, weights)},
                {{"axis", axis}});
}

// Sets a constant where a region of interest reaches past the input.
Tensor Extrapolated(NodeContext& n, const Tensor& y, int64_t axis, const AxisResize& resize,
                    const ResizeMode& mode) {
  std::vector<double> inside;
  for (int64_t o = 0; o < resize.out; ++o) {
    const double at = Coordinate(mode, resize, static_cast<double>(o));
    inside.push_back(at >= 0 && at <= static_cast<double>(resize.in - 1) ? 1 : 0);
  }
  if (std::ranges::find(inside, 0.0) == inside.end()) return y;
  Shape shape(y.shape().size(), 1);
  shape[static_cast<size_t>(axis)] = resize.out;
  return n.Where(n.Constant(ir::kBool, std::move(shape), inside), y,
                 n.ScalarLike(y, mode.extrapolation));
}

Tensor Resized(NodeContext& n, const Tensor& x, const std::vector<AxisResize>& axes,
               const ResizeMode& mode) {
  const bool is_nearest = mode.mode == "nearest";
  // 8-bit integers are summed as floats.
  Tensor y = is_nearest || x.element().is_float() ? x : n.Cast(x, ir::kFloat32);
  for (size_t d = 0; d < axes.size() && !n.failed(); ++d) {
    const AxisResize& axis = axes[d];
    const bool is_whole = axis.start == 0 && axis.end == 1;
    if (axis.in == axis.out && axis.scale == 1 && is_whole) continue;
    const auto at = static_cast<int64_t>(d);
    if (!FitsTable(n, mode, axis)) break;
    y = is_nearest ? NearestAlong(n, y, at, axis, mode) : InterpolatedAlong(n, y, at, axis, mode);
    if (mode.coordinates == "tf_crop_and_resize") y = Extrapolated(n, y, at, axis, mode);
  }
  return n.Cast(y, x.element());
}

void CheckMode(NodeContext& n, const ResizeMode& mode) {
  const auto check = [&](std::string_view what, const std::string& value,
                         std::initializer_list<std::string_view> known) {
    if (std::ranges::find(known, value) == known.end()) n.Invalid("{} is '{}'", what, value);
  };
  check("mode", mode.mode, {"nearest", "linear", "cubic"});
  check("coordinate_transformation_mode", mode.coordinates,
        {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  check("nearest_mode", mode.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
}

void SetScale(NodeContext& n, AxisResize& axis, double scale) {
  // Runtimes compute the extent in float32.
  const float extent = static_cast<float>(scale) * static_cast<float>(axis.in);
  if (!(scale > 0) || !(extent >= 1) || !(extent < 0x1p31f))
    return n.Invalid("an extent of {} scaled by {}", axis.in, scale);
  axis.scale = scale;
  axis.out = static_cast<int64_t>(extent);
}

void SetSize(NodeContext& n, AxisResize& axis, int64_t size) {
  if (size < 1 || size > int64_t{1} << 31) return n.Invalid("a size of {}", size);
  axis.out = size;
  axis.scale = static_cast<double>(size) / static_cast<double>(axis.in);
}

// Sets sizes that keep the proportions: none is above the wanted size, or none is below.
void KeepProportions(NodeContext& n, std::vector<AxisResize>& axes, const Shape& chosen,
                     const std::string& policy) {
  if (policy != "not_larger" && policy != "not_smaller")
    return n.Invalid("keep_aspect_ratio_policy is '{}'", policy);
  double scale = axes[static_cast<size_t>(chosen[0])].scale;
  for (int64_t axis : chosen) {
    const double other = axes[static_cast<size_t>(axis)].scale;
    scale = policy == "not_larger" ? std::min(scale, other) : std::max(scale, other);
  }
  for (int64_t axis : chosen) {
    AxisResize& resize = axes[static_cast<size_t>(axis)];
    const double out = std::floor(scale * static_cast<double>(resize.in) + 0.5);
    if (out > 0x1p31) return n.Invalid("an extent of {} scaled by {}", resize.in, scale);
    resize.scale = scale;
    resize.out = std::max<int64_t>(static_cast<int64_t>(out), 1);
  }
}

std::vector<AxisResize> Unchanged(const Tensor& x) {
  std::vector<AxisResize> axes;
  for (int64_t extent : x.shape()) axes.push_back({extent, extent, 1});
  return axes;
}

// Returns the axes that the inputs describe: all axes, or those of an attribute.
Shape ChosenAxes(NodeContext& n) {
  Shape all(n.input(0).shape().size());
  std::iota(all.begin(), all.end(), 0);
  Shape axes = n.Ints("axes", all);
  for (int64_t& axis : axes) axis = n.Axis(axis, n.input(0).rank());
  return axes;
}

std::vector<AxisResize> ReadAxes(NodeContext& n, const ResizeMode& mode) {
  std::vector<AxisResize> axes = Unchanged(n.input(0));
  const Shape chosen = ChosenAxes(n);
  // Input 1 is the roi since version 11.
  const int first = n.version() < 11 ? 1 : 2;
  const std::vector<double> scales = n.KnownFloats(first, "scales");
  const Shape sizes = n.version() < 11 ? Shape{} : n.KnownInts(3, "sizes");
  const std::vector<double> roi =
      mode.coordinates == "tf_crop_and_resize" ? n.KnownFloats(1, "roi") : std::vector<double>{};
  if (n.failed()) return axes;
  const auto count = static_cast<size_t>(std::max(scales.size(), sizes.size()));
  if (count != chosen.size() || chosen.empty() || (!roi.empty() && roi.size() != 2 * count)) {
    n.Invalid("{} scales, {} sizes and a roi of {}, for {} axes", scales.size(), sizes.size(),
              roi.size(), chosen.size());
    return axes;
  }
  for (size_t i = 0; i < count; ++i) {
    AxisResize& axis = axes[static_cast<size_t>(chosen[i])];
    if (!sizes.empty()) SetSize(n, axis, sizes[i]);
    if (sizes.empty()) SetScale(n, axis, scales[i]);
    if (roi.empty()) continue;
    axis.start = roi[i];
    axis.end = roi[count + i];
    if (!(std::abs(axis.start) < 1e6) || !(std::abs(axis.end) < 1e6))
      n.Invalid("a roi from {} to {}", axis.start, axis.end);
  }
  const std::string policy = n.Text("keep_aspect_ratio_policy", "stretch");
  if (!n.failed() && !sizes.empty() && policy != "stretch")
    KeepProportions(n, axes, chosen, policy);
  return axes;
}

void Resize(NodeContext& n) {
  n.RequireRank(0, 1);
  ResizeMode mode{
      .mode = n.Text("mode", "nearest"),
      .coordinates =
          n.Text("coordinate_transformation_mode", n.version() < 11 ? "asymmetric" : "half_pixel"),
      .nearest = n.Text("nearest_mode", n.version() < 11 ? "floor" : "round_prefer_floor"),
      .cubic_a = n.Float("cubic_coeff_a", -0.75),
      .excludes_outside = n.Int("exclude_outside", 0) != 0,
      .antialiases = n.Int("antialias", 0) != 0,
      .extrapolation = n.Float("extrapolation_value", 0),
      .aligns_whole = n.producer() == "pytorch"};
  CheckMode(n, mode);
  if (n.failed()) return;
  const std::vector<AxisResize> axes = ReadAxes(n, mode);
  if (!n.failed()) n.SetOutput(Resized(n, n.input(0), axes, mode));
}

// Scales are an attribute before version 9.
void Upsample(NodeContext& n) {
  n.RequireRank(0, 1);
  ResizeMode mode{
      .mode = n.Text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
  if (mode.mode == "bilinear") mode.mode = std::string("linear");
  CheckMode(n, mode);
  std::vector<double> scales = n.version() < 9 ? n.Floats("scales") : n.KnownFloats(1, "scales");
  if (n.version() < 7) scales = {1, 1, n.Float("height_scale", 1), n.Float("width_scale", 1)};
  if (n.failed()) return;
  std::vector<AxisResize> axes = Unchanged(n.input(0));
  if (scales.size() != axes.size())
    return n.Invalid("{} scales of {} dimensions", scales.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) SetScale(n, axes[i], scales[i]);
  if (!n.failed()) n.SetOutput(Resized(n, n.input(0), axes, mode));
}

}  // namespace

std::vector<Rule> ResizeRules() { return {{"Resize", Resize}, {"Upsample", Upsample}}; }

}  // namespace kiln::frontend
