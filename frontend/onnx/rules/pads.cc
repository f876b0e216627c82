// Padding and cropping.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

constexpr int64_t kMaxPad = int64_t{1} << 40;

// Number of elements added before and after each axis; a negative number is cut off.
struct Amounts {
  Shape before, after;
};

// Attribute `pads` (version 1: `paddings`) before version 11, then inputs; axes since version 18.
Amounts ReadAmounts(NodeContext& n) {
  const int rank = n.input(0).rank();
  Shape pads;
  if (n.version() < 11) {
    pads = n.Ints(n.has("paddings") ? "paddings" : "pads");
  } else {
    pads = n.KnownInts(1, "pads");
  }
  Shape axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (n.version() >= 18 && n.has_input(3)) axes = n.KnownInts(3, "axes");
  Amounts amounts{Shape(static_cast<size_t>(rank), 0), Shape(static_cast<size_t>(rank), 0)};
  if (n.failed()) return amounts;
  if (pads.size() != 2 * axes.size()) {
    n.Invalid("{} pads of {} axes", pads.size(), axes.size());
    return amounts;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(n.Axis(axes[i], rank));
    if (n.failed()) break;
    amounts.before[axis] = pads[i];
    amounts.after[axis] = pads[axes.size() + i];
    if (std::max(std::abs(pads[i] / 2), std::abs(pads[axes.size() + i] / 2)) > kMaxPad)
      n.Invalid("its pads are [{}]", fmt::join(pads, ", "));
  }
  return amounts;
}

Tensor Padded(NodeContext& n, const Tensor& x, const Amounts& amounts, const std::string& mode,
              double value) {
  const auto is_zero = [](int64_t amount) { return amount == 0; };
  if (std::ranges::all_of(amounts.before, is_zero) && std::ranges::all_of(amounts.after, is_zero))
    return x;
  return n.Emit(
      "pad", {x},
      {{"before", amounts.before}, {"after", amounts.after}, {"mode", mode}, {"value", value}});
}

void Pad(NodeContext& n) {
  n.RequireRank(0, 0);
  const Amounts amounts = ReadAmounts(n);
  double value = 0;
  if (n.version() < 11) value = n.Float("value", 0);
  if (n.version() >= 11 && n.has_input(2)) value = n.KnownFloat(2, "constant_value");
  const std::string mode = n.Text("mode", "constant");
  if (n.failed()) return;
  n.SetOutput(Padded(n, n.input(0), amounts, mode, value));
}

// Cuts or pads with 0 on both sides so that the middle stays. If the number of elements is odd, the
// larger half is cut or padded at the end.
void CenterCropPad(NodeContext& n) {
  n.RequireRank(0, 1);
  const Shape wanted = n.KnownInts(1, "shape");
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.Ints("axes", axes);
  if (axes.size() != wanted.size())
    return n.Invalid("{} extents of {} axes", wanted.size(), axes.size());
  Amounts amounts{Shape(x.shape().size(), 0), Shape(x.shape().size(), 0)};
  for (size_t i = 0; i < axes.size() && !n.failed(); ++i) {
    const int64_t axis = n.Axis(axes[i], x.rank());
    if (wanted[i] < 1 || wanted[i] > kMaxPad)
      return n.Invalid("a shape of [{}]", fmt::join(wanted, ", "));
    const int64_t more = wanted[i] - x.dim(axis);
    const int64_t before = more >= 0 ? more / 2 : -(-more / 2);
    amounts.before[static_cast<size_t>(axis)] = before;
    amounts.after[static_cast<size_t>(axis)] = more - before;
  }
  if (!n.failed()) n.SetOutput(Padded(n, x, amounts, "constant", 0));
}

}  // namespace

std::vector<Rule> PadRules() { return {{"Pad", Pad}, {"CenterCropPad", CenterCropPad}}; }

}  // namespace kiln::frontend
