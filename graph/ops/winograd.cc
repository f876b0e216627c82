// 3x3 convolutions by Winograd's method, with weights that are transformed before.
#include "graph/op.h"

namespace kiln::graph {
namespace {

using dag::TensorRef;

AttributeSpec Int(std::string name, std::string doc, int64_t fallback) {
  return {.name = std::move(name),
          .kind = AttributeKind::kInt,
          .doc = std::move(doc),
          .default_value = fallback};
}

AttributeSpec Tile() { return Int("tile", "rows and columns of an output tile: 2 or 4", 4); }
AttributeSpec ByRows() {
  return Int("by_rows", "1: transforms by rows, then by columns, for CPUs", 0);
}

AttributeSpec Stride() { return Int("stride", "1, or 2: with tile = 2 and by_rows = 1", 1); }

// Both functions take the inputs of the library's operators, which check the rest.
std::vector<TensorRef> Convolution(NodeWriter& w) {
  const std::vector<int64_t>&x = w.shape(0), &weights = w.shape(1);
  const bool by_rows = w.Int("by_rows") != 0;
  if (x.size() != 4 || weights.size() != 4) {
    w.Fail("data of {} and weights of {} dimensions, expected 4 each", x.size(), weights.size());
    return {w.input(0)};
  }
  if (w.Int("pad") < 0 || w.Int("pad") > dag::kMaxExtent) {
    w.Fail("pad = {}, expected 0 to {}", w.Int("pad"), dag::kMaxExtent);
    return {w.input(0)};
  }
  dag::OpArgs args;
  args.Set("N", x[0]);
  args.Set("H", x[1]);
  args.Set("W", x[2]);
  args.Set("CI", x[3]);
  args.Set("CO", by_rows ? weights[1] * weights[3] : weights[2]);
  args.Set("pad", w.Int("pad"));
  args.Set("tile", w.Int("tile"));
  args.Set("by_rows", w.Int("by_rows"));
  args.Set("stride", w.Int("stride"));
  return {w.Library("conv2d_winograd_nhwc", args, {w.input(0), w.input(1)})};
}

std::vector<TensorRef> Weights(NodeWriter& w) {
  const std::vector<int64_t>& weights = w.shape(0);
  if (weights.size() != 4 || weights[0] != 3 || weights[1] != 3) {
    w.Fail("weights of shape [{}], expected [3, 3, CI, CO]", fmt::join(weights, ", "));
    return {w.input(0)};
  }
  dag::OpArgs args;
  args.Set("CI", weights[2]);
  args.Set("CO", weights[3]);
  args.Set("tile", w.Int("tile"));
  args.Set("by_rows", w.Int("by_rows"));
  args.Set("stride", w.Int("stride"));
  return {w.Library("conv2d_winograd_weights", args, {w.input(0)})};
}

}  // namespace

std::vector<OpDef> WinogradOps() {
  return {{.name = "winograd_conv",
           .family = "convolutions",
           .doc = "3x3 convolution of stride 1 or 2, channels last, with transformed weights",
           .pattern = OpPattern::kProduct,
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {Int("pad", "zeros around the image on each side", 1), Tile(), ByRows(),
                          Stride()},
           .write = Convolution},
          {.name = "winograd_weights",
           .family = "convolutions",
           .doc = "weights [3, 3, CI, CO] transformed for winograd_conv",
           .attributes = {Tile(), ByRows(), Stride()},
           .write = Weights}};
}

}  // namespace kiln::graph
