// Reads images between their elements, at places that the network computes: in regions, and by
// kernels whose elements are moved.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/numbers/integers.h"
#include "frontend/onnx/evaluate_known.h"
#include "frontend/onnx/rules/families.h"
#include "frontend/onnx/rules/window.h"

namespace kiln::frontend {
namespace {

// Places between elements need more digits than short floats have.
ir::Type Wide(ir::Type type) { return type == ir::kFloat64 ? type : ir::kFloat32; }

// The two elements of an axis around a place: their numbers and their weights.
struct Neighbours {
  std::array<Tensor, 2> element;
  std::array<Tensor, 2> weight;
};

Tensor Clipped(NodeContext& n, const Tensor& x, int64_t extent) {
  return n.Emit("clip", {x}, {{"min", 0.0}, {"max", static_cast<double>(extent - 1)}});
}

Tensor IsBetween(NodeContext& n, const Tensor& x, double low, double high) {
  return n.Emit("logical_and", {n.Emit("greater_equal", {x, n.ScalarLike(x, low)}),
                                n.Emit("less_equal", {x, n.ScalarLike(x, high)})});
}

Tensor Elements(NodeContext& n, const Tensor& at, int64_t extent) {
  return n.Cast(Clipped(n, at, extent), ir::kInt64);
}

// Returns the terms of images [batch, channels, rows columns] at places on two axes: for each of
// the four neighbours of each point its element times its weight, [batch, channels, points].
std::vector<Tensor> Terms(NodeContext& n, const Tensor& images, const Neighbours& rows,
                          const Neighbours& columns, int64_t row_length) {
  const int64_t batch = images.dim(0), channels = images.dim(1);
  std::vector<Tensor> terms;
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      const Tensor start = n.Mul(rows.element[i], n.Constant({}, {row_length}));
      const Tensor at = n.Add(start, columns.element[j]);
      const Tensor weight = n.Mul(rows.weight[i], columns.weight[j]);
      if (n.failed()) return terms;
      const int64_t points = at.num_elements() / batch;
      const Tensor ids =
          n.BroadcastTo(n.Reshape(at, {batch, 1, points}), {batch, channels, points});
      const Tensor read = n.Emit("gather_elements", {images, ids}, {{"axis", int64_t{2}}});
      terms.push_back(n.Mul(read, n.Reshape(weight, {batch, 1, points})));
    }
  }
  return terms;
}

Tensor Chain(NodeContext& n, const char* op, const std::vector<Tensor>& terms) {
  if (terms.empty()) return Tensor::Missing();
  Tensor all = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) all = n.Emit(op, {all, terms[i]});
  return all;
}

// ---- regions

// Places along one axis of the image, [regions, parts samples], which lie evenly in each part.
class RegionAxis {
 public:
  RegionAxis(NodeContext& n, int64_t extent, int64_t parts, int64_t samples)
      : n_(n), extent_(extent), parts_(parts), samples_(samples) {}

  // Returns the places of regions from `start` to `end`, each [regions, 1].
  Tensor Places(const Tensor& start, const Tensor& end, bool at_least_one) {
    Tensor size = n_.Sub(end, start);
    if (at_least_one) size = n_.Emit("maximum", {size, n_.ScalarLike(size, 1)});
    const Tensor part = n_.Div(size, n_.ScalarLike(size, static_cast<double>(parts_)));
    std::vector<double> steps;
    for (int64_t i = 0; i < parts_; ++i)
      for (int64_t k = 0; k < samples_; ++k)
        steps.push_back(static_cast<double>(i) +
                        (static_cast<double>(k) + 0.5) / static_cast<double>(samples_));
    return n_.Add(start, n_.Mul(part, n_.Constant(start.element(), {1, parts_ * samples_}, steps)));
  }

  // Places up to one element outside read the border; places further outside read 0.
  Neighbours Around(const Tensor& places) {
    const Tensor counts =
        n_.Cast(IsBetween(n_, places, -1, static_cast<double>(extent_)), places.element());
    const Tensor at = Clipped(n_, places, extent_);
    const Tensor low = n_.Emit("floor", {at}), part = n_.Sub(at, low);
    const Tensor rest = n_.Sub(n_.ScalarLike(part, 1), part);
    return {{Elements(n_, low, extent_), Elements(n_, n_.Add(low, n_.ScalarLike(low, 1)), extent_)},
            {n_.Mul(rest, counts), n_.Mul(part, counts)}};
  }

 private:
  NodeContext& n_;
  int64_t extent_, parts_, samples_;
};

Neighbours Reshaped(NodeContext& n, const Neighbours& x, const Shape& shape) {
  Neighbours y;
  for (size_t i = 0; i < 2; ++i) {
    y.element[i] = n.Reshape(x.element[i], shape);
    y.weight[i] = n.Reshape(x.weight[i], shape);
  }
  return y;
}

struct Regions {
  // Parts of each region.
  int64_t height, width;
  // Samples of each part, along each axis; 0: the part's width in elements, rounded up.
  int64_t row_samples, column_samples;
  bool takes_maximum = false, is_half_pixel = false;
  double scale = 1;
};

Regions ReadRegions(NodeContext& n) {
  const std::string mode = n.Text("mode", "avg");
  const std::string transform = n.Text("coordinate_transformation_mode",
                                       n.version() < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "avg" && mode != "max") n.Invalid("attribute mode is '{}'", mode);
  if (transform != "half_pixel" && transform != "output_half_pixel")
    n.Invalid("attribute coordinate_transformation_mode is '{}'", transform);
  Regions regions{.height = n.Count("output_height", 1, 1),
                  .width = n.Count("output_width", 1, 1),
                  .row_samples = n.Count("sampling_ratio", 0),
                  .column_samples = n.Count("sampling_ratio", 0),
                  .takes_maximum = mode == "max",
                  .is_half_pixel = transform == "half_pixel",
                  .scale = n.Float("spatial_scale", 1)};
  return regions;
}

void RequireFewPlaces(NodeContext& n, const Regions& regions) {
  const int64_t points = MultiplyCounts(MultiplyCounts(regions.height, regions.row_samples),
                                        MultiplyCounts(regions.width, regions.column_samples));
  if (points > kMaxKnownElements) n.Unsupported("{} places in a region", points);
}

// Returns the results of regions that all have the same number of samples. x is [batch, channels,
// rows, columns], corners [count, 4], ids [count].
Tensor Aligned(NodeContext& n, const Regions& regions, const Tensor& x, const Tensor& corners,
               const Tensor& ids) {
  RequireFewPlaces(n, regions);
  if (n.failed()) return Tensor::Missing();
  const int64_t count = corners.dim(0), channels = x.dim(1), h = x.dim(2), w = x.dim(3);
  const int64_t height = regions.height, width = regions.width;
  const int64_t row_samples = regions.row_samples, column_samples = regions.column_samples;
  // The regions are empty.
  if (row_samples == 0 || column_samples == 0)
    return n.BroadcastTo(n.ScalarLike(x, 0), {count, channels, height, width});
  const auto corner = [&](int64_t i) {
    const Tensor scaled =
        n.Mul(n.SliceAxis(n.Cast(corners, x.element()), 1, i, 1), n.ScalarLike(x, regions.scale));
    return regions.is_half_pixel ? n.Sub(scaled, n.ScalarLike(x, 0.5)) : scaled;
  };
  RegionAxis rows(n, h, height, row_samples);
  RegionAxis columns(n, w, width, column_samples);
  const Neighbours by_row = rows.Around(rows.Places(corner(1), corner(3), !regions.is_half_pixel));
  const Neighbours by_column =
      columns.Around(columns.Places(corner(0), corner(2), !regions.is_half_pixel));
  if (n.failed()) return Tensor::Missing();
  const Tensor images =
      n.Gather(n.Reshape(x, {x.dim(0), channels, h * w}), n.Cast(ids, ir::kInt64), 0);
  const std::vector<Tensor> terms =
      Terms(n, images, Reshaped(n, by_row, {count, height * row_samples, 1}),
            Reshaped(n, by_column, {count, 1, width * column_samples}), w);
  const Tensor values = n.Reshape(Chain(n, regions.takes_maximum ? "maximum" : "add", terms),
                                  {count, channels, height, row_samples, width, column_samples});
  return n.Reduce(regions.takes_maximum ? "reduce_max" : "reduce_mean", values, {3, 5}, false);
}

// Returns how many samples each part of a known region has along an axis.
int64_t SamplesOf(const Regions& regions, double low, double high, int64_t parts) {
  // The numbers are float32, as in ONNX's reference, so that sizes are rounded up alike.
  const auto scale = static_cast<float>(regions.scale);
  const float offset = regions.is_half_pixel ? 0.5F : 0;
  const float start = static_cast<float>(low) * scale - offset;
  const float end = static_cast<float>(high) * scale - offset;
  const float size = regions.is_half_pixel ? end - start : std::max(end - start, 1.0F);
  const double samples = std::ceil(size / static_cast<float>(parts));
  return samples > 0 ? static_cast<int64_t>(std::min(samples, 1e9)) : 0;
}

// Samples known regions by their sizes: regions with equal numbers of samples together. The results
// are then put into the order of the regions.
Tensor AlignedBySize(NodeContext& n, Regions regions, const Tensor& x, const Tensor& corners,
                     const Tensor& ids) {
  if (!corners.is_known()) {
    n.Unsupported(
        "sampling_ratio is 0, so that how many places are read depends on data: export with a "
        "sampling_ratio of 1 or more");
    return Tensor::Missing();
  }
  std::map<std::pair<int64_t, int64_t>, Shape> groups;
  for (int64_t i = 0; i < corners.dim(0); ++i) {
    const auto at = [&](int64_t k) { return corners.constant->At(i * 4 + k); };
    groups[{SamplesOf(regions, at(1), at(3), regions.height),
            SamplesOf(regions, at(0), at(2), regions.width)}]
        .push_back(i);
  }
  std::vector<Tensor> parts;
  Shape place(static_cast<size_t>(corners.dim(0)));
  int64_t placed = 0;
  for (const auto& [samples, members] : groups) {
    std::tie(regions.row_samples, regions.column_samples) = samples;
    const Tensor which = n.Constant({std::ssize(members)}, members);
    parts.push_back(Aligned(n, regions, x, n.Gather(corners, which, 0), n.Gather(ids, which, 0)));
    for (const int64_t member : members) place[static_cast<size_t>(member)] = placed++;
  }
  if (n.failed()) return Tensor::Missing();
  return n.Gather(n.Concat(std::move(parts), 0), n.Constant({placed}, place), 0);
}

// Inputs: x [batch, channels, rows, columns], regions [count, 4] with corners x1, y1, x2, y2, and
// the image of each region.
void RoiAlign(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 4, 4);
  n.RequireRank(1, 2, 2);
  n.RequireRank(2, 1, 1);
  const Regions regions = ReadRegions(n);
  if (n.failed()) return;
  const Tensor x = n.Cast(n.input(0), Wide(n.input(0).element())), &corners = n.input(1);
  if (corners.dim(1) != 4 || n.input(2).dim(0) != corners.dim(0))
    return n.Invalid("regions of {} in images of {}", TypeText(corners.type),
                     TypeText(n.input(2).type));
  const bool is_by_size = regions.row_samples == 0;
  const Tensor y = is_by_size ? AlignedBySize(n, regions, x, corners, n.input(2))
                              : Aligned(n, regions, x, corners, n.input(2));
  n.SetOutput(n.Cast(y, n.input(0).element()));
}

// ---- kernels whose elements are moved

// Extents of a deformed convolution: images, kernels, results and groups of channels.
struct Deformed {
  // Extents of x.
  int64_t batch, channels, height, width;
  int64_t kernel_height, kernel_width;
  int64_t out_height, out_width;
  int64_t groups, offset_groups;
  Window window;

  int64_t taps() const { return kernel_height * kernel_width; }
  int64_t outputs() const { return out_height * out_width; }
};

Deformed ReadDeformed(NodeContext& n) {
  const Tensor &x = n.input(0), &w = n.input(1), &offset = n.input(2);
  Deformed d{.batch = x.dim(0),
             .channels = x.dim(1),
             .height = x.dim(2),
             .width = x.dim(3),
             .kernel_height = w.dim(2),
             .kernel_width = w.dim(3),
             .out_height = offset.dim(2),
             .out_width = offset.dim(3),
             .groups = n.Count("group", 1, 1),
             .offset_groups = n.Count("offset_group", 1, 1),
             .window = {}};
  d.window = ReadWindow(n, x.shape(), {d.kernel_height, d.kernel_width});
  if (n.failed()) return d;
  const bool fits = d.channels % d.groups == 0 && w.dim(1) == d.channels / d.groups &&
                    w.dim(0) % d.groups == 0 && d.channels % d.offset_groups == 0 &&
                    offset.dim(0) == d.batch && offset.dim(1) == d.offset_groups * d.taps() * 2;
  if (!fits)
    n.Invalid("weights of {} and offsets of {} for {}", TypeText(w.type), TypeText(offset.type),
              TypeText(x.type));
  if (MultiplyCounts(d.taps(), d.outputs()) > kMaxKnownElements)
    n.Unsupported("{} taps at {} places", d.taps(), d.outputs());
  return d;
}

// Returns the places of each output's taps along one axis without offsets, [1, taps, rows,
// columns].
Tensor TapPlaces(NodeContext& n, const Deformed& d, ir::Type type, size_t axis) {
  std::vector<double> places;
  for (int64_t kh = 0; kh < d.kernel_height; ++kh)
    for (int64_t kw = 0; kw < d.kernel_width; ++kw)
      for (int64_t i = 0; i < d.out_height; ++i)
        for (int64_t j = 0; j < d.out_width; ++j) {
          const int64_t tap = axis == 0 ? kh : kw, out = axis == 0 ? i : j;
          places.push_back(static_cast<double>(out * d.window.strides[axis] - d.window.pads[axis] +
                                               tap * d.window.dilations[axis]));
        }
  return n.Constant(type, {1, d.taps(), d.out_height, d.out_width}, places);
}

// Elements outside of the image are 0.
Neighbours AroundTaps(NodeContext& n, const Tensor& places, int64_t extent) {
  const Tensor low = n.Emit("floor", {places}), part = n.Sub(places, low);
  const Tensor high = n.Add(low, n.ScalarLike(low, 1));
  const Tensor rest = n.Sub(n.ScalarLike(part, 1), part);
  const auto inside = [&](const Tensor& at) {
    return n.Cast(IsBetween(n, at, 0, static_cast<double>(extent - 1)), at.element());
  };
  return {{Elements(n, low, extent), Elements(n, high, extent)},
          {n.Mul(rest, inside(low)), n.Mul(part, inside(high))}};
}

// Returns the elements that the taps read, [batch, channels, taps outputs].
Tensor ReadTaps(NodeContext& n, const Deformed& d) {
  const Tensor x = n.Cast(n.input(0), Wide(n.input(0).element()));
  const int64_t images = d.batch * d.offset_groups;
  const Tensor offsets =
      n.Reshape(n.Cast(n.input(2), x.element()), {images, d.taps(), 2, d.out_height, d.out_width});
  const auto around = [&](size_t axis, int64_t extent) {
    const Tensor offset = n.Reshape(n.SliceAxis(offsets, 2, static_cast<int64_t>(axis), 1),
                                    {images, d.taps(), d.out_height, d.out_width});
    return AroundTaps(n, n.Add(TapPlaces(n, d, x.element(), axis), offset), extent);
  };
  const Neighbours rows = around(0, d.height), columns = around(1, d.width);
  const Tensor flat = n.Reshape(x, {images, d.channels / d.offset_groups, d.height * d.width});
  Tensor read = Chain(n, "add", Terms(n, flat, rows, columns, d.width));
  if (n.has_input(4))
    read = n.Mul(read,
                 n.Reshape(n.Cast(n.input(4), x.element()), {images, 1, d.taps() * d.outputs()}));
  return n.Reshape(read, {d.batch, d.channels, d.taps() * d.outputs()});
}

void DeformConv(NodeContext& n) {
  n.RequireFloat(0);
  for (int i = 0; i < 3; ++i) n.RequireRank(i, 4, 4);
  if (n.has_input(4)) n.RequireRank(4, 4, 4);
  if (n.failed()) return;
  const Deformed d = ReadDeformed(n);
  if (n.failed()) return;
  const ir::Type type = Wide(n.input(0).element());
  const Tensor w = n.Cast(n.input(1), type);
  const int64_t sum = d.channels / d.groups * d.taps(), outputs = w.dim(0);
  const Tensor read = n.Reshape(ReadTaps(n, d), {d.batch, d.groups, sum, d.outputs()});
  const Tensor weights = n.Reshape(w, {1, d.groups, outputs / d.groups, sum});
  Tensor y =
      n.Reshape(n.Emit("matmul", {weights, read}), {d.batch, outputs, d.out_height, d.out_width});
  if (n.has_input(3)) y = n.Add(y, n.Reshape(n.Cast(n.input(3), type), {1, outputs, 1, 1}));
  n.SetOutput(n.Cast(y, n.input(0).element()));
}

}  // namespace

std::vector<Rule> SampleRules() { return {{"RoiAlign", RoiAlign}, {"DeformConv", DeformConv}}; }

}  // namespace kiln::frontend
