// Reads elements that tensors of whole numbers choose, and writes elements at the places that such
// tensors give.
#include <algorithm>
#include <array>
#include <optional>

#include "base/numbers/integers.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"

namespace kiln::graph {
namespace {

using dag::Combiner;
using dag::TensorRef;
using dag::Value;
using dag::Vars;

using Shape = std::vector<int64_t>;

// Returns extents begin..end of a shape.
Shape Part(const Shape& shape, size_t begin, size_t end) {
  return {shape.begin() + static_cast<std::ptrdiff_t>(begin),
          shape.begin() + static_cast<std::ptrdiff_t>(end)};
}

Shape Joined(std::initializer_list<Shape> parts) {
  Shape all;
  for (const Shape& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void Append(std::vector<Value>& index, Vars more) {
  index.insert(index.end(), more.begin(), more.end());
}

// Negative numbers count from the end. Numbers outside of the axis mean its first or last element.
Value ElementNumber(const Value& id, int64_t extent) {
  return Clipped(FromEnd(IndexOf(id), extent), extent);
}

// ---- reading

std::vector<TensorRef> Gather(NodeWriter& w) {
  const TensorRef &x = w.input(0), &ids = w.input(1);
  RequireDomain(w, Domain::kWholeNumbers, 1);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  if (!w.ok()) return {x};
  const auto ids_rank = static_cast<size_t>(ids.rank());
  const Shape shape =
      Joined({Part(x.shape(), 0, axis), ids.shape(), Part(x.shape(), axis + 1, x.shape().size())});
  return {w.b.Compute("T_take", dag::NumberedAxes("ax", shape), [&](Vars v) {
    std::vector<Value> index(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(axis));
    index.push_back(ElementNumber(ids.At(v.subspan(axis, ids_rank)), x.shape()[axis]));
    Append(index, v.subspan(axis + ids_rank));
    return x.At(index);
  })};
}

// Requires that input i has the rank of x, and no larger extent except along the axis.
void RequireInside(NodeWriter& w, int i, size_t axis) {
  RequireRank(w, i, w.input(0).rank(), w.input(0).rank());
  if (!w.ok()) return;
  for (size_t d = 0; d < w.shape(i).size(); ++d) {
    if (d == axis || w.shape(i)[d] <= w.shape(0)[d]) continue;
    w.Fail("input {} of shape [{}] is larger than x of shape [{}] along axis {}", i,
           fmt::join(w.shape(i), ", "), fmt::join(w.shape(0), ", "), d);
  }
}

std::vector<TensorRef> GatherElements(NodeWriter& w) {
  const TensorRef &x = w.input(0), &ids = w.input(1);
  RequireDomain(w, Domain::kWholeNumbers, 1);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  RequireInside(w, 1, axis);
  if (!w.ok()) return {x};
  return {w.b.Compute("T_gather_elements", dag::NumberedAxes("ax", ids.shape()), [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end());
    index[axis] = ElementNumber(ids.At(v), x.shape()[axis]);
    return x.At(index);
  })};
}

// Returns the number of axes of x, from `first` on, that the last axis of input `ids` names. Fails
// and returns 0 if x does not have so many.
size_t IndexedAxes(NodeWriter& w, size_t first) {
  const Shape& ids = w.shape(1);
  if (ids.size() <= first) {
    w.Fail("ids of shape [{}], expected at least {} dimensions", fmt::join(ids, ", "), first + 1);
    return 0;
  }
  if (ids.back() <= std::ssize(w.shape(0)) - static_cast<int64_t>(first))
    return static_cast<size_t>(ids.back());
  w.Fail("ids of shape [{}] name {} axes, x of shape [{}] has {} to choose from",
         fmt::join(ids, ", "), ids.back(), fmt::join(w.shape(0), ", "),
         std::ssize(w.shape(0)) - static_cast<int64_t>(first));
  return 0;
}

std::vector<TensorRef> GatherNd(NodeWriter& w) {
  const TensorRef &x = w.input(0), &ids = w.input(1);
  RequireDomain(w, Domain::kWholeNumbers, 1);
  const auto batch = static_cast<size_t>(IntBetween(w, "batch_dims", 0, x.rank()));
  if (!w.ok()) return {x};
  const size_t named = IndexedAxes(w, batch);
  if (!w.ok()) return {x};
  const size_t rows = ids.shape().size() - 1;
  if (Part(x.shape(), 0, batch) != Part(ids.shape(), 0, batch)) {
    w.Fail("x of shape [{}] and ids of shape [{}] differ in the first {} axes",
           fmt::join(x.shape(), ", "), fmt::join(ids.shape(), ", "), batch);
    return {x};
  }
  const Shape shape =
      Joined({Part(ids.shape(), 0, rows), Part(x.shape(), batch + named, x.shape().size())});
  return {w.b.Compute("T_gather_nd", dag::NumberedAxes("ax", shape), [&](Vars v) {
    std::vector<Value> row(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(rows));
    std::vector<Value> index(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(batch));
    row.emplace_back(0);
    for (size_t k = 0; k < named; ++k) {
      row.back() = Value(k);
      index.push_back(ElementNumber(ids.At(row), x.shape()[batch + k]));
    }
    Append(index, v.subspan(rows));
    return x.At(index);
  })};
}

std::vector<TensorRef> OneHot(NodeWriter& w) {
  const TensorRef& ids = w.input(0);
  RequireDomain(w, Domain::kWholeNumbers, 0);
  const int64_t depth = IntBetween(w, "depth", 1, dag::kMaxExtent);
  const size_t axis = w.Axis("axis", w.Int("axis"), ids.rank() + 1);
  const StatusOr<ir::Type> type = ir::ParseType(w.Name("type"));
  if (!type.ok()) w.b.Fail(type.status());
  if (!w.ok()) return {ids};
  const Value on = ConstantOf(w, "on", *type), off = ConstantOf(w, "off", *type);
  Shape shape = ids.shape();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  return {w.b.Compute("T_one_hot", dag::NumberedAxes("ax", shape), [&](Vars v) {
    std::vector<Value> index(v.begin(), v.end());
    index.erase(index.begin() + static_cast<std::ptrdiff_t>(axis));
    return Select(FromEnd(IndexOf(ids.At(index)), depth) == v[axis], on, off);
  })};
}

std::vector<TensorRef> Resample(NodeWriter& w) {
  const TensorRef &x = w.input(0), &ids = w.input(1), &weights = w.input(2);
  RequireDomain(w, Domain::kFloats, 0);
  RequireDomain(w, Domain::kWholeNumbers, 1);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  if (ids.rank() != 2 || weights.shape() != ids.shape() || weights.type() != x.type()) {
    w.Fail("ids of shape [{}] and weights {}[{}], expected two axes, the same shape and {}",
           fmt::join(ids.shape(), ", "), ir::TypeName(weights.type()),
           fmt::join(weights.shape(), ", "), ir::TypeName(x.type()));
  }
  if (!w.ok()) return {x};
  const dag::OpContext c = w.Context(x.type());
  Shape shape = x.shape();
  shape[axis] = ids.shape()[0];
  TensorRef sum = w.b.Reduce("T_resample", dag::NumberedAxes("ax", shape), {{"t", ids.shape()[1]}},
                             Combiner::kSum, [&](Vars v) {
                               std::vector<Value> index(v.begin(), v.end() - 1);
                               const Value o = index[axis], t = v.back();
                               index[axis] = Clipped(IndexOf(ids(o, t)), x.shape()[axis]);
                               return c.Widen(weights(o, t)) * c.Widen(x.At(index));
                             });
  return {w.Converted(sum, x.type())};
}

// ---- writing

constexpr std::string_view kScatterModes[] = {"none", "add", "mul", "max", "min"};
enum ScatterMode : size_t { kReplace, kAdd, kMul, kMax, kMin };

// Updates of a tensor as a reduction: each element of x asks each of `count` updates whether the
// update is for it.
struct Updates {
  int64_t count;
  // Returns whether update k is for the element of x at v.
  std::function<Value(Vars v, const Value& k)> hits;
  // Returns the value of update k for the element at v. It is valid only if the update is for the
  // element, or if v is inside of `covered`.
  std::function<Value(Vars v, const Value& k)> value;
  // Returns the condition under which updates have a value for the element at v. None: always.
  std::function<std::optional<Value>(Vars v)> covered;
};

// Returns a condition that holds if both hold.
std::optional<Value> Both(const std::optional<Value>& a, const std::optional<Value>& b) {
  if (!a || !b) return a ? a : b;
  return *a && *b;
}

Value Hit(const Updates& u, Vars v, const Value& k) { return *Both(u.covered(v), u.hits(v, k)); }

// Lets the last update of an element win: the element reads the largest number, counted from 1, of
// an update for it; 0 means that there is none.
TensorRef Replaced(NodeWriter& w, const Updates& u) {
  const TensorRef& x = w.input(0);
  const std::vector<dag::Axis> axes = dag::NumberedAxes("ax", x.shape());
  TensorRef last =
      w.b.Reduce("T_scatter_last", axes, {{"k", u.count}}, Combiner::kMax, [&](Vars v) {
        const Value& k = v.back();
        return If(Hit(u, v.first(v.size() - 1), k), k + 1, Value(w.b.Constant(0, ir::kIndex)));
      });
  return w.b.Compute("T_scatter", axes, [&](Vars v) {
    const Value found = last.At(v);
    const Value update = Clipped(found - 1, u.count);
    return If(*Both(u.covered(v), found > 0), u.value(v, update), x.At(v));
  });
}

// Combines all updates of an element, and the result with the element.
TensorRef Combined(NodeWriter& w, const Updates& u, ScatterMode mode) {
  struct Kind {
    Combiner combiner;
    Value (*apply)(const Value&, const Value&);
  };
  static constexpr std::array<Kind, 5> kKinds = {{
      {Combiner::kNone, nullptr},
      {Combiner::kSum, [](const Value& a, const Value& b) { return a + b; }},
      {Combiner::kProd, [](const Value& a, const Value& b) { return a * b; }},
      {Combiner::kMax, [](const Value& a, const Value& b) { return Max(a, b); }},
      {Combiner::kMin, [](const Value& a, const Value& b) { return Min(a, b); }},
  }};
  const Kind& kind = kKinds[mode];
  const TensorRef& x = w.input(0);
  const dag::OpContext c = w.Context(x.type());
  const std::vector<dag::Axis> axes = dag::NumberedAxes("ax", x.shape());
  TensorRef updates =
      w.b.Reduce("T_scatter_updates", axes, {{"k", u.count}}, kind.combiner, [&](Vars v) {
        const Vars at = v.first(v.size() - 1);
        const Value& k = v.back();
        // The value that changes nothing. For extrema it is the element itself.
        const Value neutral = mode == kAdd || mode == kMul
                                  ? w.b.Constant(mode == kMul ? 1 : 0, c.out_type)
                                  : c.Widen(x.At(at));
        return If(Hit(u, at, k), c.Widen(u.value(at, k)), neutral);
      });
  return w.b.Compute("T_scatter", axes, [&](Vars v) {
    return Cast(x.type(), kind.apply(c.Widen(x.At(v)), updates.At(v)));
  });
}

std::vector<TensorRef> Scatter(NodeWriter& w, const Updates& u, ScatterMode mode) {
  return {mode == kReplace ? Replaced(w, u) : Combined(w, u, mode)};
}

// Checks the inputs: x, whole numbers, and updates of x's type.
ScatterMode ReadScatter(NodeWriter& w) {
  const auto mode = static_cast<ScatterMode>(Choice(w, "mode", kScatterModes));
  RequireDomain(w, mode == kReplace ? Domain::kAny : Domain::kNumbers, 0);
  RequireDomain(w, Domain::kWholeNumbers, 1);
  if (w.type(2) != w.type(0)) {
    w.Fail("updates of {}, expected {} as x is", ir::TypeName(w.type(2)), ir::TypeName(w.type(0)));
  }
  return mode;
}

std::vector<TensorRef> ScatterElements(NodeWriter& w) {
  const TensorRef &x = w.input(0), &ids = w.input(1), &updates = w.input(2);
  const ScatterMode mode = ReadScatter(w);
  const size_t axis = w.Axis("axis", w.Int("axis"), x.rank());
  RequireInside(w, 1, axis);
  if (w.ok() && updates.shape() != ids.shape()) {
    w.Fail("updates of shape [{}], expected [{}] as ids have", fmt::join(updates.shape(), ", "),
           fmt::join(ids.shape(), ", "));
  }
  if (!w.ok()) return {x};
  const Shape shape = x.shape(), extents = ids.shape();
  const auto along = [&](Vars v, const Value& k) {
    std::vector<Value> index(v.begin(), v.end());
    index[axis] = k;
    return index;
  };
  const Updates u{.count = extents[axis],
                  .hits =
                      [&](Vars v, const Value& k) {
                        return FromEnd(IndexOf(ids.At(along(v, k))), shape[axis]) == v[axis];
                      },
                  .value = [&](Vars v, const Value& k) { return updates.At(along(v, k)); },
                  .covered =
                      [&](Vars v) {
                        std::optional<Value> inside;
                        for (size_t d = 0; d < shape.size(); ++d) {
                          if (d != axis && extents[d] < shape[d])
                            inside = Both(inside, v[d] < extents[d]);
                        }
                        return inside;
                      }};
  return Scatter(w, u, mode);
}

std::vector<TensorRef> ScatterNd(NodeWriter& w) {
  const TensorRef &x = w.input(0), &ids = w.input(1), &updates = w.input(2);
  const ScatterMode mode = ReadScatter(w);
  if (!w.ok()) return {x};
  const size_t named = IndexedAxes(w, 0);
  if (!w.ok()) return {x};
  const Shape shape = x.shape();
  const Shape outer = Part(ids.shape(), 0, ids.shape().size() - 1);
  const Shape wanted = Joined({outer, Part(shape, named, shape.size())});
  if (updates.shape() != wanted) {
    w.Fail("updates of shape [{}], expected [{}]", fmt::join(updates.shape(), ", "),
           fmt::join(wanted, ", "));
    return {x};
  }
  // Returns the index of update k in row-major order.
  const auto row = [&](const Value& k) {
    std::vector<Value> index(outer.size(), Value(0));
    Value rest = k;
    for (size_t d = outer.size(); d-- > 0;) {
      index[d] = d == 0 ? rest : rest % outer[d];
      rest = d == 0 ? rest : FloorDiv(rest, outer[d]);
    }
    return index;
  };
  const Updates u{.count = ProductOfCounts(outer),
                  .hits =
                      [&](Vars v, const Value& k) {
                        std::vector<Value> index = row(k);
                        index.emplace_back(0);
                        std::optional<Value> hit;
                        for (size_t d = 0; d < named; ++d) {
                          index.back() = Value(d);
                          hit = Both(hit, FromEnd(IndexOf(ids.At(index)), shape[d]) == v[d]);
                        }
                        return *hit;
                      },
                  .value =
                      [&](Vars v, const Value& k) {
                        std::vector<Value> index = row(k);
                        Append(index, v.subspan(named));
                        return updates.At(index);
                      },
                  .covered = [](Vars) { return std::nullopt; }};
  return Scatter(w, u, mode);
}

OpDef Indexing(std::string name, std::string doc, int inputs, OpPattern pattern,
               std::vector<AttributeSpec> attributes,
               std::vector<TensorRef> (*write)(NodeWriter&)) {
  return {.name = std::move(name),
          .family = "indexing",
          .doc = std::move(doc),
          .pattern = pattern,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .attributes = std::move(attributes),
          .write = write};
}

}  // namespace

std::vector<OpDef> IndexingOps() {
  constexpr OpPattern kInjective = OpPattern::kInjective, kOpaque = OpPattern::kOpaque;
  const AttributeSpec axis = IntAttribute("axis", "axis of x; negative: from the end", 0);
  const AttributeSpec mode = NameAttribute(
      "mode", "how updates meet: none (the last one replaces the element), add, mul, max, min",
      "none");
  return {
      Indexing("gather",
               "slices of x along an axis; inputs: x, ids, negative from the end, clipped", 2,
               kInjective, {axis}, Gather),
      Indexing("gather_elements",
               "for each of the ids, the element of x in its place with that "
               "number along an axis",
               2, kInjective, {axis}, GatherElements),
      Indexing("gather_nd", "for each vector of the last axis of ids, what x has at that index", 2,
               kInjective,
               {IntAttribute("batch_dims", "first axes, which x and ids have in common", 0)},
               GatherNd),
      Indexing("one_hot", "along a new axis, `on` at the id and `off` elsewhere", 1, kInjective,
               {IntAttribute("depth", "extent of the new axis"),
                IntAttribute("axis", "the new axis; negative: from the end", -1),
                FloatAttribute("on", "value at the id", 1.0),
                FloatAttribute("off", "value elsewhere", 0.0),
                NameAttribute("type", "type of the result", "float32")},
               OneHot),
      Indexing("resample",
               "y[o] = sum over t of weights[o, t] x[ids[o, t]] along an axis; inputs: x, ids and "
               "weights",
               3, OpPattern::kReduction,
               {IntAttribute("axis", "axis of x; negative: from the end")}, Resample),
      Indexing("scatter_elements",
               "x with each update at its own place but for the number along an axis, which ids "
               "say; inputs: x, ids, updates",
               3, kOpaque, {axis, mode}, ScatterElements),
      Indexing("scatter_nd",
               "x with updates at the indices that the last axis of ids says; inputs: x, ids, "
               "updates",
               3, kOpaque, {mode}, ScatterNd)};
}

}  // namespace kiln::graph
