// 3x3 convolution NHWC by Winograd's minimal filtering, F(2x2, 3x3) and F(4x4, 3x3), with weights
// that are already transformed: [alpha, alpha, CO, CI], alpha = tile + 2. With by_rows the
// transforms are written out, rows first, then columns, and weights are [alpha * alpha, CO / b, CI,
// b]. That takes less arithmetic, has vectors along channels and reads weights in order. Another
// operator transforms the weights.
//
// With stride 2, two outputs are y0 = g0 d0 + g1 d1 + g2 d2 and y1 = g0 d2 + g1 d3 + g2 d4. The
// even elements form an F(2, 2), and the odd ones give g1 d1 and g1 d3. That is 5 products instead
// of 6, and for a tile 25 instead of 36.
#include "compiler/dag/ops/winograd.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/integers.h"

namespace kiln::dag {
namespace {

// Rows of the Cook-Toom matrices for the points 0, -1, 1 and 0, -1, 1, 0.5, -2.
struct Matrix {
  int rows, columns;
  // Row-major.
  std::vector<double> values;
};

// Transforms of a row of outputs. The rows of `in` are the inputs of a tile, and its columns are
// the points. The inputs combined by a column are multiplied by the weights combined by the same
// column, and `out` adds up the products.
struct Transforms {
  int64_t tile, stride;
  Matrix in, weight, out;

  int64_t points() const { return in.columns; }
  int64_t inputs() const { return in.rows; }
};

Matrix OutputTransform(int64_t tile) {
  if (tile == 2) return {4, 2, {1, 0, 1, -1, 1, 1, 0, 1}};
  return {6, 4, {1, 0, 0, 0, 1, -1, 1, -1, 1, 1, 1, 1, 1, .5, .25, .125, 1, -2, 4, -8, 0, 0, 0, 1}};
}

Matrix InputTransform(int64_t tile) {
  if (tile == 2) return {4, 4, {1, 0, 0, 0, 0, -1, 1, -1, -1, 1, 1, 0, 0, 0, 0, 1}};
  return {6, 6, {1,   0,  0,   0, 0,   0,  -1.5, 1, -1, -2, .5, 1,   -2, -2.5, .5, -1, -1, -1.5,
                 1.5, .5, 2.5, 2, -.5, -2, 1,    1, 1,  1,  1,  1.5, 0,  0,    0,  0,  0,  1}};
}

// Has one column for each point: a window of weights g becomes transposed(m) g m.
Matrix WeightTransform(int64_t tile) {
  if (tile == 2) return {3, 4, {1, .5, .5, 0, 0, -.5, .5, 0, 0, .5, .5, 1}};
  constexpr double k3 = 1.0 / 3, k15 = 1.0 / 15;
  return {3,
          6,
          {1, -k3, k3, -16 * k15, k15, 0,     //
           0, k3, k3, -8 * k15, -2 * k15, 0,  //
           0, -k3, k3, -4 * k15, 4 * k15, 1}};
}

Transforms TransformsOf(int64_t tile, int64_t stride) {
  if (stride == 1)
    return {tile, stride, InputTransform(tile), WeightTransform(tile), OutputTransform(tile)};
  return {.tile = 2,
          .stride = 2,
          .in = {5, 5, {1,  0, 0,  0, 0,  //
                        0,  0, 0,  1, 0,  //
                        -1, 1, 1,  0, 0,  //
                        0,  0, 0,  0, 1,  //
                        0,  0, -1, 0, 0}},
          .weight = {3,
                     5,
                     {1, 1, 0, 0, 0,  //
                      0, 0, 0, 1, 1,  //
                      0, 1, 1, 0, 0}},
          .out = {5, 2, {1, 0, 1, 1, 0, -1, 1, 0, 0, 1}}};
}

// An operator whose elements are constants. It is a chain of selects, unrolled wherever it is used.
TensorRef ConstantMatrix(OpContext& c, std::string name, const Matrix& matrix) {
  return c.b.Compute(
      std::move(name), {{"i", matrix.rows}, {"j", matrix.columns}},
      [&](Vars v) {
        Value e = c.b.Constant(0, c.out_type);
        for (int i = 0; i < matrix.rows; ++i) {
          for (int j = 0; j < matrix.columns; ++j) {
            const double value = matrix.values[static_cast<size_t>(i * matrix.columns + j)];
            e = Select(v[0] % matrix.rows == i && v[1] % matrix.columns == j, value, e);
          }
        }
        return e;
      },
      {.const_matrix = true});
}

// Block of output channels of weights by rows. The weights that a tile of output channels reads are
// contiguous.
constexpr int64_t kChannelBlock = 32;

int64_t ChannelBlock(int64_t co) { return co % kChannelBlock == 0 ? kChannelBlock : co; }

struct Shape {
  int64_t n, co, ci, out_h, out_w;
  // Numbers of rows and columns of tiles.
  int64_t rows, columns;
  int64_t tiles() const { return n * rows * columns; }
};

// Multiplies column `at` of `matrix` by f(0), f(1), ... and leaves zeros out.
Value Mix(OpContext& c, const Matrix& matrix, const Value& at, const std::function<Value(int)>& f) {
  Value chosen = c.b.Constant(0, c.out_type);
  for (int j = matrix.columns - 1; j >= 0; --j) {
    std::optional<Value> sum;
    for (int i = 0; i < matrix.rows; ++i) {
      const double factor = matrix.values[static_cast<size_t>(i * matrix.columns + j)];
      if (factor == 0) continue;
      const Value term = std::abs(factor) == 1 ? f(i) : f(i) * std::abs(factor);
      if (!sum) {
        sum = factor < 0 ? -term : term;
      } else {
        sum = factor < 0 ? *sum - term : *sum + term;
      }
    }
    chosen = j == matrix.columns - 1 ? *sum : If(at == j, *sum, chosen);
  }
  return chosen;
}

TensorRef ByRows(OpContext& c, const Shape& s, const Transforms& t, const TensorRef& padded) {
  const int64_t alpha = t.points(), per_image = s.rows * s.columns, step = t.tile * t.stride;
  const Matrix &in = t.in, &out = t.out;
  TensorRef rows = c.b.Compute(
      "input_rows", {{"p", s.tiles()}, {"x", t.inputs()}, {"eps", alpha}, {"ci", s.ci}},
      [&](Vars v) {
        const Value& p = v[0];
        const Value y = FloorDiv(p, s.columns) % s.rows * step, x = p % s.columns * step + v[1];
        return Mix(c, in, v[2],
                   [&](int i) { return c.Widen(padded(FloorDiv(p, per_image), y + i, x, v[3])); });
      },
      {.always_unroll_inner = {"eps"}});
  TensorRef pack = c.b.Compute(
      "input_pack", {{"p", s.tiles()}, {"eps", alpha}, {"nu", alpha}, {"ci", s.ci}},
      [&](Vars v) { return Mix(c, in, v[2], [&](int x) { return rows(v[0], x, v[1], v[3]); }); },
      {.always_unroll_inner = {"nu"}});
  const int64_t block = ChannelBlock(s.co);
  TensorRef weight = c.Input({alpha * alpha, s.co / block, s.ci, block});
  TensorRef bgemm =
      c.b.Reduce("bgemm", {{"t", alpha * alpha}, {"p", s.tiles()}, {"co", s.co}}, {{"ci", s.ci}},
                 Combiner::kSum,
                 [&](Vars v) {
                   return pack(v[1], FloorDiv(v[0], alpha), v[0] % alpha, v[3]) *
                          c.Widen(weight(v[0], FloorDiv(v[2], block), v[3], v[2] % block));
                 },
                 {.layout_free_placeholders = {weight.name()}});
  TensorRef columns = c.b.Compute(
      "output_columns", {{"p", s.tiles()}, {"eps", alpha}, {"x", t.tile}, {"co", s.co}},
      [&](Vars v) {
        return Mix(c, out, v[2], [&](int nu) { return bgemm(v[1] * alpha + nu, v[0], v[3]); });
      },
      {.always_unroll_inner = {"x"}});
  return c.b.Compute(
      "conv2d_winograd", {{"n", s.n}, {"h", s.out_h}, {"w", s.out_w}, {"co", s.co}}, [&](Vars v) {
        const Value p =
            v[0] * per_image + FloorDiv(v[1], t.tile) * s.columns + FloorDiv(v[2], t.tile);
        return Mix(c, out, v[1] % t.tile,
                   [&](int eps) { return columns(p, eps, v[2] % t.tile, v[3]); });
      });
}

// Returns the stride that the arguments ask for, or 1 if that stride is refused.
int64_t StrideOf(OpContext& c) {
  const int64_t stride = c.args["stride"];
  if (stride == 1 || stride == 2) return stride;
  c.Fail("stride = {}: there are transforms for 1 and 2", stride);
  return 1;
}

// Returns the tile that the arguments ask for, or `fallback` for 0. Returns a valid tile if the one
// asked for is refused.
int64_t TileOf(OpContext& c, int64_t fallback) {
  const int64_t asked = c.args["tile"], tile = asked == 0 ? fallback : asked;
  const bool is_strided = c.args["stride"] == 2;
  if (is_strided && (tile != 2 || c.args["by_rows"] == 0)) {
    c.Fail("tile = {} and by_rows = {}: stride 2 has a transform for tile = 2 and by_rows = 1",
           tile, c.args["by_rows"]);
    return 2;
  }
  if (tile == 2 || tile == 4) return tile;
  c.Fail("tile = {}: there are transforms for 2 and 4{}", asked,
         fallback == 0 ? "" : ", and 0 chooses");
  return 2;
}

TensorRef Winograd(OpContext& c) {
  const int64_t n = c.args["N"], h = c.args["H"], w = c.args["W"], co = c.args["CO"],
                ci = c.args["CI"];
  const int64_t pad = c.args["pad"], stride = StrideOf(c);
  const int64_t tile = TileOf(c, stride == 1 && h % 8 == 0 ? 4 : 2);
  const Transforms transforms = TransformsOf(tile, stride);
  const int64_t alpha = transforms.points();
  const int64_t oh = WindowExtent(c, "H", h, 2 * pad, 3, stride, 1),
                ow = WindowExtent(c, "W", w, 2 * pad, 3, stride, 1);
  const int64_t nh = CeilDiv(oh, tile), nw = CeilDiv(ow, tile);
  const int64_t tiles = n * nh * nw;
  // Padding behind the image, up to the end of the last tile. With stride 2 the last tile may end
  // before the padding does.
  const auto behind = [&](int64_t count, int64_t extent) {
    return std::max<int64_t>(0, (count - 1) * tile * stride + transforms.inputs() - extent - pad);
  };
  TensorRef data = c.Input({n, h, w, ci});
  TensorRef padded =
      Pad(c, data, "data_pad", "i", {{0, pad, pad, 0}, {0, behind(nh, h), behind(nw, w), 0}}, true);
  if (c.args["by_rows"] != 0) return ByRows(c, {n, co, ci, oh, ow, nh, nw}, transforms, padded);
  TensorRef input_tile = c.b.Compute(
      "input_tile", {{"eps", alpha}, {"nu", alpha}, {"p", tiles}, {"ci", ci}}, [&](Vars v) {
        const Value &eps = v[0], &nu = v[1], &p = v[2];
        return padded(FloorDiv(p, nh * nw), FloorDiv(p, nw) % nh * tile + eps, p % nw * tile + nu,
                      v[3]);
      });
  TensorRef b = ConstantMatrix(c, "B", InputTransform(tile));
  TensorRef data_pack = c.b.Reduce(
      "data_pack", {{"eps", alpha}, {"nu", alpha}, {"p", tiles}, {"ci", ci}},
      {{"r_a", alpha}, {"r_b", alpha}}, Combiner::kSum,
      [&](Vars v) {
        return c.Widen(input_tile(v[4], v[5], v[2], v[3])) * b(v[4], v[0]) * b(v[5], v[1]);
      },
      {.simplify_const_tensor_indices = {"eps", "nu", "r_a", "r_b"}});
  TensorRef weight = c.Input({alpha, alpha, co, ci});
  TensorRef bgemm = c.b.Reduce("bgemm", {{"eps", alpha}, {"nu", alpha}, {"p", tiles}, {"co", co}},
                               {{"ci", ci}}, Combiner::kSum,
                               [&](Vars v) {
                                 return data_pack(v[0], v[1], v[2], v[4]) *
                                        c.Widen(weight(v[0], v[1], v[3], v[4]));
                               },
                               {.layout_free_placeholders = {weight.name()}});
  TensorRef a = ConstantMatrix(c, "A", OutputTransform(tile));
  TensorRef inverse = c.b.Reduce(
      "inverse", {{"vh", tile}, {"vw", tile}, {"p", tiles}, {"co", co}},
      {{"r_a", alpha}, {"r_b", alpha}}, Combiner::kSum,
      [&](Vars v) { return bgemm(v[4], v[5], v[2], v[3]) * a(v[4], v[0]) * a(v[5], v[1]); },
      {.simplify_const_tensor_indices = {"vh", "vw", "r_a", "r_b"}});
  return c.b.Compute("conv2d_winograd", {{"n", n}, {"h", oh}, {"w", ow}, {"co", co}}, [&](Vars v) {
    const Value &image = v[0], &y = v[1], &x = v[2];
    return inverse(y % tile, x % tile, image * nh * nw + FloorDiv(y, tile) * nw + FloorDiv(x, tile),
                   v[3]);
  });
}

TensorRef Weights(OpContext& c) {
  c.RequireFloat();
  const int64_t co = c.args["CO"], ci = c.args["CI"];
  const Transforms transforms = TransformsOf(TileOf(c, 0), StrideOf(c));
  const int64_t alpha = transforms.points();
  const Matrix& m = transforms.weight;
  TensorRef plain = c.Input({3, 3, ci, co});
  TensorRef rows = c.b.Compute(
      "weight_rows", {{"eps", alpha}, {"x", 3}, {"ci", ci}, {"co", co}},
      [&](Vars v) {
        return Mix(c, m, v[0], [&](int y) { return c.Widen(plain(y, v[1], v[2], v[3])); });
      },
      {.always_unroll_inner = {"eps"}});
  if (c.args["by_rows"] == 0) {
    return c.b.Compute(
        "winograd_weights", {{"eps", alpha}, {"nu", alpha}, {"co", co}, {"ci", ci}},
        [&](Vars v) { return Mix(c, m, v[1], [&](int x) { return rows(v[0], x, v[3], v[2]); }); });
  }
  const int64_t block = ChannelBlock(co);
  return c.b.Compute("winograd_weights",
                     {{"t", alpha * alpha}, {"f", co / block}, {"ci", ci}, {"b", block}},
                     [&](Vars v) {
                       return Mix(c, m, v[0] % alpha, [&](int x) {
                         return rows(FloorDiv(v[0], alpha), x, v[2], v[1] * block + v[3]);
                       });
                     });
}

// So many tiles must share a transformed weight for F(4x4, 3x3) to pay, which has 2.25 times the
// weights of F(2x2, 3x3) and 0.56 of its products. Measured on layers of ResNet-18 at batch 1: on
// CPUs the small tile is faster only for 7x7 (4 large tiles); on a GPU, which must read the weights
// from global memory for each block of tiles, the small tile is also faster for 28x28 (49 large
// tiles).
constexpr int64_t kLargeTiles = 8, kLargeTilesOnGpu = 100;

Parameter StrideParameter() {
  return {
      .name = "stride", .doc = "1, or 2: with tile=2 and by_rows=1", .max = 2, .default_value = 1};
}

}  // namespace

std::optional<WinogradForm> FastWinogradForm(const WinogradImage& image, bool gpu) {
  if (image.stride == 2 && !gpu) return WinogradForm{.tile = 2, .by_rows = true};
  if (image.stride != 1) return std::nullopt;
  const auto tiles = [&](int64_t extent) { return (extent + 2 * image.pad - 2 + 3) / 4; };
  const int64_t large_tiles = image.batch * tiles(image.height) * tiles(image.width);
  // GPUs have rules for small products with constant matrices.
  return WinogradForm{.tile = large_tiles >= (gpu ? kLargeTilesOnGpu : kLargeTiles) ? 4 : 2,
                      .by_rows = !gpu};
}

std::vector<AlgorithmVariant> WinogradVariants(const OpArgs& args, ir::Type dtype, bool gpu) {
  const bool fits = args["KH"] == 3 && args["KW"] == 3 && args["dilation"] == 1 &&
                    args["groups"] == 1 && args["output_first"] == 0;
  // A 16-bit type has too few bits for transformed weights.
  if (!fits || (dtype != ir::kFloat32 && dtype != ir::kFloat64)) return {};
  const int64_t stride = args["stride"];
  const std::optional<WinogradForm> form =
      FastWinogradForm({args["N"], args["H"], args["W"], args["pad"], stride}, gpu);
  if (!form) return {};
  const std::string of_form = fmt::format("tile={},by_rows={}{}", form->tile, form->by_rows ? 1 : 0,
                                          stride == 1 ? "" : fmt::format(",stride={}", stride));
  return {{.name = fmt::format("winograd F({},3){}", form->tile,
                               stride == 1 ? "" : fmt::format(" of stride {}", stride)),
           .op = "conv2d_winograd_nhwc",
           .args = fmt::format("{},{},{},{},{},pad={},{}", args["N"], args["H"], args["W"],
                               args["CO"], args["CI"], args["pad"], of_form),
           .prepared = 1,
           .prepare_op = "conv2d_winograd_weights",
           .prepare_args = fmt::format("{},{},{}", args["CO"], args["CI"], of_form)}};
}

std::vector<OpInfo> WinogradOps() {
  return {{.name = "conv2d_winograd_nhwc",
           .family = "convolutions",
           .doc = "3x3 convolution by Winograd's method; weights are transformed: "
                  "[tile+2, tile+2, CO, CI]; by_rows: [(tile+2)^2, CO/b, CI, b], b = 32 where it "
                  "divides CO, else CO; of stride 2 25 for (tile+2)^2",
           .parameters =
               {{.name = "N", .doc = "batch"},
                {.name = "H", .doc = "input height"},
                {.name = "W", .doc = "input width"},
                {.name = "CO", .doc = "output channels"},
                {.name = "CI", .doc = "input channels"},
                {.name = "pad", .doc = "zeros added on each side", .min = 0, .default_value = 1},
                {.name = "tile",
                 .doc = "output tile: 2, 4, or 0: 4 when 8 divides H, else 2",
                 .min = 0,
                 .max = 4,
                 .default_value = 0},
                {.name = "by_rows",
                 .doc = "1: transforms by rows, then by columns, for CPUs",
                 .min = 0,
                 .max = 1,
                 .default_value = 0},
                StrideParameter()},
           .channel_axis = 3,
           .build = Winograd},
          {.name = "conv2d_winograd_weights",
           .family = "convolutions",
           .doc = "weights of conv2d_winograd_nhwc from those of conv2d_nhwc, [3, 3, CI, CO]",
           .parameters = {{.name = "CO", .doc = "output channels"},
                          {.name = "CI", .doc = "input channels"},
                          {.name = "tile", .doc = "output tile: 2 or 4", .min = 2, .max = 4},
                          {.name = "by_rows",
                           .doc = "1: as conv2d_winograd_nhwc wants them with by_rows=1",
                           .min = 0,
                           .max = 1,
                           .default_value = 0},
                          StrideParameter()},
           .build = Weights}};
}

}  // namespace kiln::dag
