// Operators that move elements without computing.
#include <algorithm>
#include <optional>

#include "base/numbers/integers.h"
#include "compiler/dag/limits.h"
#include "compiler/dag/ops/rearrange.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"

namespace kiln::graph {
namespace {

using dag::kMaxExtent;
using dag::TensorRef;
using dag::Value;
using dag::Vars;

// ---- shapes

// Axes first..end of one shape that hold the elements of axes first..end of another shape.
struct AxisGroup {
  size_t from, from_end, to, to_end;
};

// Returns the smallest groups of axes whose elements stay together.
std::vector<AxisGroup> GroupsOf(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  std::vector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    AxisGroup g{i, i, j, j};
    int64_t a = 1, b = 1;
    // The shorter side takes its next axis.
    do {
      if (j == to.size() || (i < from.size() && a <= b)) {
        a *= from[i++];
      } else {
        b *= to[j++];
      }
    } while (a != b);
    g.from_end = i;
    g.to_end = j;
    groups.push_back(g);
  }
  return groups;
}

// Returns the index into x for index v of the same elements under another shape. Axes that stay
// unchanged keep simple indices, whatever happens to the others.
std::vector<Value> ReshapedIndex(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                                 Vars v) {
  std::vector<Value> index(from.size(), Value(0));
  for (const AxisGroup& g : GroupsOf(from, to)) {
    std::optional<Value> flat;
    for (size_t j = g.to; j < g.to_end; ++j) {
      if (to[j] > 1) flat = flat ? *flat * to[j] + v[j] : v[j];
    }
    for (size_t i = g.from_end; flat && i-- > g.from;) {
      if (from[i] == 1) continue;
      const bool outermost = std::all_of(from.begin() + static_cast<std::ptrdiff_t>(g.from),
                                         from.begin() + static_cast<std::ptrdiff_t>(i),
                                         [](int64_t extent) { return extent == 1; });
      index[i] = outermost ? *flat : *flat % from[i];
      if (!outermost) flat = FloorDiv(*flat, from[i]);
    }
  }
  return index;
}

std::vector<TensorRef> Reshape(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  const std::vector<int64_t>& to = w.Ints("shape");
  const bool sane = std::ranges::all_of(to, [](int64_t extent) { return extent > 0; });
  if (!sane || ProductOfCounts(to) != ProductOfCounts(x.shape())) {
    w.Fail("[{}] has {} elements, which do not fit shape = [{}]", fmt::join(x.shape(), ", "),
           ProductOfCounts(x.shape()), fmt::join(to, ", "));
    return {x};
  }
  return {w.b.Compute("T_reshape", dag::NumberedAxes("ax", to),
                      [&](Vars v) { return x.At(ReshapedIndex(x.shape(), to, v)); })};
}

std::vector<TensorRef> Transpose(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  std::vector<size_t> order = w.Axes("axes", w.Ints("axes"), x.rank());
  if (w.Ints("axes").empty()) {
    for (size_t i = x.shape().size(); i-- > 0;) order.push_back(i);
  }
  if (w.ok() && order.size() != x.shape().size()) {
    w.Fail("axes = [{}], expected all {} of the input", fmt::join(w.Ints("axes"), ", "), x.rank());
  }
  if (!w.ok()) return {x};
  return {dag::WriteTranspose(w.b, x, order)};
}

// Reads x as if it had further axes of extent 1 in front, at element v of the larger shape.
std::vector<TensorRef> BroadcastTo(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  const std::vector<int64_t>& to = w.Ints("shape");
  if (!BroadcastsTo(x.shape(), to)) {
    w.Fail("[{}] does not broadcast to shape = [{}]", fmt::join(x.shape(), ", "),
           fmt::join(to, ", "));
    return {x};
  }
  return {w.b.Compute("T_broadcast_to", dag::NumberedAxes("ax", to),
                      [&](Vars v) { return BroadcastAt(x, to, v); })};
}

std::vector<TensorRef> Tile(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  const std::vector<int64_t>& repeats = w.Ints("repeats");
  RequireList(w, "repeats", repeats, x.rank(), 1, kMaxExtent);
  if (!w.ok()) return {x};
  std::vector<int64_t> shape;
  for (size_t d = 0; d < repeats.size(); ++d)
    shape.push_back(MultiplyCounts(x.shape()[d], repeats[d]));
  return {w.b.Compute("T_tile", dag::NumberedAxes("ax", shape), [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end());
    for (size_t d = 0; d < index.size(); ++d) {
      if (repeats[d] > 1) index[d] = index[d] % x.shape()[d];
    }
    return x.At(index);
  })};
}

// ---- parts

// Fails unless the input has the shape of input 0, apart from its extent along the axis.
void RequireAlike(NodeWriter& w, int i, size_t axis) {
  std::vector<int64_t> shape = w.shape(i);
  if (axis < shape.size() && shape.size() == w.shape(0).size()) shape[axis] = w.shape(0)[axis];
  if (shape == w.shape(0)) return;
  w.Fail("inputs of shapes [{}] and [{}] differ elsewhere than along axis {}",
         fmt::join(w.shape(0), ", "), fmt::join(w.shape(i), ", "), axis);
}

std::vector<TensorRef> Concat(NodeWriter& w) {
  const size_t axis = w.Axis("axis", w.Int("axis"), w.input(0).rank());
  RequireSameTypes(w, 0);
  std::vector<TensorRef> inputs;
  int64_t extent = 0;
  for (int i = 0; w.ok() && i < w.num_inputs(); ++i) {
    RequireAlike(w, i, axis);
    if (!w.ok()) break;
    inputs.push_back(w.input(i));
    extent += w.shape(i)[axis];
    if (extent > dag::kMaxElements)
      w.Fail("the inputs have more than {} elements", dag::kMaxElements);
  }
  if (!w.ok()) return {w.input(0)};
  return {dag::WriteConcat(w.b, inputs, axis)};
}

std::vector<TensorRef> Split(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  const std::vector<int64_t>& sizes = w.Ints("sizes");
  if (!w.ok()) return {x};
  int64_t left = x.shape()[axis];
  const bool fits = std::ranges::all_of(
      sizes, [&](int64_t size) { return size > 0 && size <= left && (left -= size) >= 0; });
  if (!fits || left != 0) {
    w.Fail("sizes = [{}] are not the parts of an axis with extent {}", fmt::join(sizes, ", "),
           x.shape()[axis]);
    return {x};
  }
  std::vector<TensorRef> parts;
  const std::vector<int64_t> shape = x.shape();
  dag::SliceSpec spec{std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), 1),
                      shape};
  for (int64_t size : sizes) {
    spec.extents[axis] = size;
    parts.push_back(dag::WriteSlice(w.b, x, spec));
    spec.begin[axis] += size;
  }
  return parts;
}

std::vector<TensorRef> Slice(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  dag::SliceSpec spec{w.Ints("begin"), w.Ints("strides"), w.Ints("extents")};
  if (spec.stride.empty()) spec.stride.assign(x.shape().size(), 1);
  RequireList(w, "begin", spec.begin, x.rank(), 0, dag::kMaxElements);
  RequireList(w, "strides", spec.stride, x.rank(), -dag::kMaxElements, dag::kMaxElements);
  RequireList(w, "extents", spec.extents, x.rank(), 1, dag::kMaxElements);
  for (size_t d = 0; w.ok() && d < spec.begin.size(); ++d) {
    const int64_t extent = x.shape()[d];
    // A single element needs no step.
    if (spec.extents[d] == 1) spec.stride[d] = 1;
    const __int128 last =
        spec.begin[d] + static_cast<__int128>(spec.extents[d] - 1) * spec.stride[d];
    if (spec.stride[d] != 0 && spec.begin[d] < extent && last >= 0 && last < extent) continue;
    w.Fail("{} elements from {} on in steps of {} are not all in axis {} with extent {}",
           spec.extents[d], spec.begin[d], spec.stride[d], d, extent);
  }
  if (!w.ok()) return {x};
  return {dag::WriteSlice(w.b, x, spec)};
}

// ---- borders

constexpr std::string_view kPadModes[] = {"constant", "reflect", "edge", "wrap"};
enum PadMode : size_t { kConstant, kReflect, kEdge, kWrap };

// Returns the element that stands for element `at`, which may lie outside of an axis of that
// extent.
Value Outside(PadMode mode, const Value& at, int64_t extent) {
  if (mode == kEdge || extent == 1) return Clipped(at, extent);
  if (mode == kWrap) return at % extent;
  // The elements there and back.
  const int64_t period = 2 * (extent - 1);
  const Value place = at % period;
  return Select(place < extent, place, period - place);
}

struct Pads {
  PadMode mode;
  std::vector<int64_t> before, after;
};

// Returns the index into x. Cuts come first; the rest of x is read as if it went on for ever.
std::vector<Value> PaddedIndex(const Pads& pads, const std::vector<int64_t>& shape, Vars v) {
  std::vector<Value> index;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t before = std::max<int64_t>(pads.before[d], 0);
    const int64_t after = std::max<int64_t>(pads.after[d], 0);
    // Elements that are cut off.
    const int64_t begin = before - pads.before[d];
    const int64_t left = shape[d] - begin - (after - pads.after[d]);
    const Value at = v[d] - before;
    index.push_back((before + after > 0 ? Outside(pads.mode, at, left) : at) + begin);
  }
  return index;
}

std::vector<TensorRef> Pad(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  const Pads pads{static_cast<PadMode>(Choice(w, "mode", kPadModes)), w.Ints("before"),
                  w.Ints("after")};
  RequireList(w, "before", pads.before, x.rank(), -kMaxExtent, kMaxExtent);
  RequireList(w, "after", pads.after, x.rank(), -kMaxExtent, kMaxExtent);
  std::vector<int64_t> shape = x.shape();
  for (size_t d = 0; w.ok() && d < shape.size(); ++d) {
    const int64_t cut =
        std::max<int64_t>(-pads.before[d], 0) + std::max<int64_t>(-pads.after[d], 0);
    if (cut >= shape[d]) w.Fail("{} elements are cut off axis {} with {}", cut, d, shape[d]);
    shape[d] += pads.before[d] + pads.after[d];
  }
  if (pads.mode == kConstant) ConstantOf(w, "value", x.type());
  if (!w.ok()) return {x};
  if (pads.mode == kConstant) {
    dag::OpContext c = w.Context(x.type());
    const double value = w.Float("value");
    return {dag::Pad(c, x, "T_pad", "ax",
                     {pads.before, pads.after, x.type().is_bool() ? value != 0 : value},
                     /*always=*/true)};
  }
  return {w.b.Compute("T_pad", dag::NumberedAxes("ax", shape),
                      [&](Vars v) { return x.At(PaddedIndex(pads, x.shape(), v)); })};
}

std::vector<TensorRef> Triangle(NodeWriter& w) {
  const TensorRef& x = w.input(0);
  RequireRank(w, 0, 2, dag::kMaxAxes);
  const bool upper = Flag(w, "upper");
  // No matrix is larger.
  const int64_t bound = dag::kMaxElements;
  const int64_t offset = std::clamp(w.Int("offset"), -bound, bound);
  if (!w.ok()) return {x};
  return {w.b.Compute("T_triangle", dag::NumberedAxes("ax", x.shape()), [&](Vars v) {
    const Value diagonal = v.back() - v[v.size() - 2];
    return Select(upper ? diagonal >= offset : diagonal <= offset, x.At(v),
                  w.b.Constant(0, x.type()));
  })};
}

OpDef Rearrangement(std::string name, std::string doc, std::vector<AttributeSpec> attributes,
                    std::vector<TensorRef> (*write)(NodeWriter&)) {
  return {.name = std::move(name),
          .family = "rearrangement",
          .doc = std::move(doc),
          .pattern = OpPattern::kInjective,
          .attributes = std::move(attributes),
          .write = write};
}

OpDef ReshapeOp() {
  OpDef op = Rearrangement("reshape", "the same elements under another shape",
                           {IntsAttribute("shape", "extents")}, Reshape);
  op.is_view = true;
  return op;
}

OpDef ConcatOp() {
  OpDef op = Rearrangement("concat", "tensors one behind the other along an axis",
                           {IntAttribute("axis", "axis; negative: from the end")}, Concat);
  op.max_inputs = kAnyNumberOfInputs;
  return op;
}

}  // namespace

std::vector<OpDef> RearrangementOps() {
  using List = std::vector<int64_t>;
  const AttributeSpec axis = IntAttribute("axis", "axis; negative: from the end");
  return {
      ReshapeOp(),
      Rearrangement("transpose", "axes in another order",
                    {IntsAttribute("axes", "axes of x in their new order; none: reversed", List())},
                    Transpose),
      ConcatOp(),
      Rearrangement("split", "parts along an axis, an output each",
                    {axis, IntsAttribute("sizes", "extents of the parts")}, Split),
      Rearrangement(
          "slice", "elements at even distances along each axis",
          {IntsAttribute("begin", "the first one of each axis"),
           IntsAttribute("extents", "how many of each axis"),
           IntsAttribute("strides", "distances, backwards where negative; none: 1", List())},
          Slice),
      Rearrangement(
          "pad", "borders around a tensor, or a tensor without its borders",
          {IntsAttribute("before", "elements before each axis; negative: cut off"),
           IntsAttribute("after", "elements behind each axis; negative: cut off"),
           NameAttribute("mode", "what they are: constant, reflect, edge, wrap", "constant"),
           FloatAttribute("value", "the constant", 0.0)},
          Pad),
      Rearrangement("broadcast_to", "a tensor repeated along axes, as numpy does it",
                    {IntsAttribute("shape", "extents")}, BroadcastTo),
      Rearrangement("tile", "a tensor several times along each axis",
                    {IntsAttribute("repeats", "how often along each axis")}, Tile),
      Rearrangement("triangle", "the lower triangle of matrices, zeros elsewhere",
                    {IntAttribute("upper", "1: the upper triangle", 0),
                     IntAttribute("offset", "diagonals above the main one that belong to it", 0)},
                    Triangle)};
}

}  // namespace kiln::graph
