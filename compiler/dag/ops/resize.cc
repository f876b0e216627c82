// Resizing of images. The position of an output element in the input is a fraction of whole
// numbers, so all coordinates are exact and every index is provably inside.
#include "compiler/dag/ops/image.h"

namespace kiln::dag {
namespace {

enum Coordinates : int64_t { kHalfPixel = 0, kAlignCorners = 1, kAsymmetric = 2 };

// The position of output element o in the input is (o * factor + offset) / divisor.
struct Place {
  int64_t factor, offset, divisor;

  Value Numerator(const Value& o) const { return o * factor + offset; }
};

Place PlaceOf(int64_t coordinates, int64_t in, int64_t out) {
  switch (coordinates) {
    // The position is (o + 1/2) in / out - 1/2.
    case kHalfPixel:
      return {2 * in, in - out, 2 * out};
    // The position is o (in - 1) / (out - 1).
    case kAlignCorners:
      return out == 1 ? Place{0, 0, 1} : Place{in - 1, 0, out - 1};
    // The position is o in / out.
    default:
      return {in, 0, out};
  }
}

Value Clamped(const Value& at, int64_t extent) { return Min(Max(at, 0), extent - 1); }

// Returns the nearest element. A tie goes to the later one. Asymmetric coordinates are rounded
// down.
Value Nearest(int64_t coordinates, const Value& o, int64_t in, int64_t out) {
  Place place = PlaceOf(coordinates, in, out);
  if (coordinates != kAsymmetric) {
    place = {2 * place.factor, 2 * place.offset + place.divisor, 2 * place.divisor};
  }
  return Clamped(FloorDiv(place.Numerator(o), place.divisor), in);
}

TensorRef ResizeNearest(OpContext& c, Layout layout) {
  const std::vector<int64_t> in = ReadExtents(c, 2, ""), out = ReadExtents(c, 2, "O");
  TensorRef data = c.Input(Arrange(layout, c.args["N"], c.args["C"], in));
  const std::vector<int64_t> shape = Arrange(layout, c.args["N"], c.args["C"], out);
  return c.b.Compute("resize", NumberedAxes("i", shape), [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end());
    for (size_t d = 0; d < 2; ++d) {
      Value& at = index[layout.first() + d];
      at = Nearest(c.args["coordinates"], at, in[d], out[d]);
    }
    return data.At(index);
  });
}

TensorRef ResizeBilinear(OpContext& c, Layout layout) {
  c.RequireFloat();
  const std::vector<int64_t> in = ReadExtents(c, 2, ""), out = ReadExtents(c, 2, "O");
  TensorRef data = c.Input(Arrange(layout, c.args["N"], c.args["C"], in));
  const std::vector<int64_t> shape = Arrange(layout, c.args["N"], c.args["C"], out);
  return c.b.Compute("resize", NumberedAxes("i", shape), [&](Vars v) {
    const size_t y = layout.first(), x = y + 1;
    // Neighbours along y and x, and the fraction of the way towards the higher one.
    std::vector<Value> low, high, part;
    for (size_t d = 0; d < 2; ++d) {
      const Place place = PlaceOf(c.args["coordinates"], in[d], out[d]);
      const Value numerator = place.Numerator(v[y + d]);
      const Value floor = FloorDiv(numerator, place.divisor);
      low.push_back(Clamped(floor, in[d]));
      high.push_back(Clamped(floor + 1, in[d]));
      part.push_back(Cast(c.type, numerator % place.divisor) *
                     (1.0 / static_cast<double>(place.divisor)));
    }
    auto row = [&](const Value& at) {
      std::vector<Value> index(v.begin(), v.end());
      index[y] = at;
      index[x] = low[1];
      const Value left = data.At(index);
      index[x] = high[1];
      return left * (1.0 - part[1]) + data.At(index) * part[1];
    };
    return row(low[0]) * (1.0 - part[0]) + row(high[0]) * part[0];
  });
}

OpInfo Info(std::string_view method, Layout layout, TensorRef (*build)(OpContext&, Layout),
            std::string doc) {
  std::vector<Parameter> parameters = ImageParameters(2);
  parameters.push_back({.name = "C", .doc = "channels"});
  AddExtents(parameters, 2, "O", "output");
  parameters.push_back({.name = "coordinates",
                        .doc = "0: centres of pixels, 1: corners aligned, 2: asymmetric",
                        .min = 0,
                        .max = 2,
                        .default_value = 0});
  return {.name = fmt::format("resize_{}_{}", method, layout.Name()),
          .family = "images",
          .doc = fmt::format("images of [{}] in another size, {}", layout.ShapeDoc(), doc),
          .parameters = std::move(parameters),
          .channel_axis = layout.channel_axis(),
          .build = [=](OpContext& c) { return build(c, layout); }};
}

}  // namespace

std::vector<OpInfo> ResizeOps() {
  std::vector<OpInfo> ops;
  for (bool last : {false, true}) {
    ops.push_back(Info("nearest", {2, last}, ResizeNearest, "by the nearest pixel"));
  }
  for (bool last : {false, true}) {
    ops.push_back(Info("bilinear", {2, last}, ResizeBilinear, "linear between pixels"));
  }
  return ops;
}

}  // namespace kiln::dag
