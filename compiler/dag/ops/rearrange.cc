// Operators that move elements without computing: reshape, transpose, concat, slice, gather.
#include "compiler/dag/ops/rearrange.h"

#include <optional>

#include "base/numbers/integers.h"
#include "compiler/dag/ops/op.h"

namespace kiln::dag {

TensorRef WriteTranspose(DagBuilder& b, const TensorRef& x, std::span<const size_t> order) {
  std::vector<int64_t> out;
  for (size_t axis : order) out.push_back(x.shape()[axis]);
  return b.Compute("T_transpose", NumberedAxes("ax", out), [&](Vars v) {
    std::vector<Value> index(order.size(), Value(0));
    for (size_t i = 0; i < order.size(); ++i) index[order[i]] = v[i];
    return x.At(index);
  });
}

TensorRef WriteConcat(DagBuilder& b, std::span<const TensorRef> inputs, size_t axis) {
  std::vector<int64_t> shape = inputs[0].shape();
  for (const TensorRef& input : inputs.subspan(1)) shape[axis] += input.shape()[axis];
  return b.Compute("T_concat", NumberedAxes("ax", shape), [&](Vars v) {
    // The inputs are visited from the last to the first, so that the first one is tested first.
    std::vector<Value> index(v.begin(), v.end());
    std::optional<Value> result;
    int64_t end = shape[axis];
    for (size_t i = inputs.size(); i-- > 0;) {
      const int64_t begin = end - inputs[i].shape()[axis];
      index[axis] = v[axis] - begin;
      const Value element = inputs[i].At(index);
      result = result ? If(v[axis] < end, element, *result) : element;
      end = begin;
    }
    return *result;
  });
}

TensorRef WriteSlice(DagBuilder& b, const TensorRef& x, const SliceSpec& spec) {
  return b.Compute("T_strided_slice", NumberedAxes("ax", spec.extents), [&](Vars v) {
    std::vector<Value> index;
    for (size_t i = 0; i < v.size(); ++i) index.push_back(v[i] * spec.stride[i] + spec.begin[i]);
    return x.At(index);
  });
}

namespace {

// Returns the shape asked for by to=, with one -1 filled in.
std::vector<int64_t> TargetShape(OpContext& c) {
  std::vector<int64_t> to = c.args.list("to");
  if (to.empty()) c.Fail("needs its new extents, one to= each");
  __int128 elements = 1, known = 1;
  for (int64_t extent : c.args.shape()) {
    // A larger shape is refused with the input.
    if (elements <= kMaxElements) elements *= extent;
  }
  int64_t* open = nullptr;
  for (int64_t& extent : to) {
    if (extent == 0) {
      c.Fail("to = 0, expected a positive extent, or -1 once: what is left");
      return {1};
    }
    if (extent > 0) {
      known *= extent;
      if (known > kMaxElements) break;
      continue;
    }
    if (open != nullptr) c.Fail("to = -1 is given twice: one extent can be left open");
    open = &extent;
  }
  if (open != nullptr && elements % known == 0) {
    *open = static_cast<int64_t>(elements / known);
    known = elements;
  }
  if (known != elements) {
    c.Fail("[{}] has {} elements, which do not fit [{}]", fmt::join(c.args.shape(), ", "),
           static_cast<int64_t>(elements), fmt::join(c.args.list("to"), ", "));
    return {1};
  }
  return to;
}

TensorRef Reshape(OpContext& c) {
  const std::vector<int64_t>& from = c.args.shape();
  TensorRef x = c.Input(from);
  const std::vector<int64_t> to = TargetShape(c);
  return c.b.Compute("T_reshape", NumberedAxes("ax", to), [&](Vars v) {
    std::optional<Value> flat;
    for (size_t i = 0; i < to.size(); ++i) flat = flat ? *flat * to[i] + v[i] : v[i];
    std::vector<Value> index(from.size(), Value(0));
    for (size_t i = from.size(); i-- > 0;) {
      index[i] = *flat % from[i];
      flat = FloorDiv(*flat, from[i]);
    }
    return x.At(index);
  });
}

TensorRef Transpose(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  // Axis i of the result is axis order[i] of the input.
  std::vector<size_t> order;
  std::vector<bool> used(shape.size(), false);
  for (int64_t axis : c.args.list("axis")) {
    const std::optional<size_t> at = c.AxisAt("axis", axis);
    if (!at) return c.Input(shape);
    if (used[*at]) c.Fail("axis = {} is given twice", axis);
    used[*at] = true;
    order.push_back(*at);
  }
  if (order.empty()) {
    for (size_t i = shape.size(); i-- > 0;) order.push_back(i);
  }
  TensorRef x = c.Input(shape);
  if (order.size() != shape.size()) {
    c.Fail("got {} axes, expected all {} of the input", order.size(), shape.size());
    return x;
  }
  return WriteTranspose(c.b, x, order);
}

TensorRef Concat(OpContext& c) {
  std::vector<int64_t> shape = c.args.shape();
  const size_t axis = c.AxisAt("axis", c.args["axis"]).value_or(0);
  std::vector<TensorRef> inputs = {c.Input(shape)};
  if (c.args.list("with").empty()) c.Fail("needs a second input: its extent along the axis, with=");
  int64_t total = shape[axis];
  for (int64_t extent : c.args.list("with")) {
    shape[axis] = extent;
    inputs.push_back(c.Input(shape));
    total += extent;
    // The extent is refused later as too large.
    if (total > kMaxExtent) break;
  }
  return WriteConcat(c.b, inputs, axis);
}

// Returns one bound of a slice inside the tensor. A negative bound counts from the end.
int64_t Bound(OpContext& c, std::string_view name, size_t axis, int64_t fallback) {
  const std::vector<int64_t>& given = c.args.list(name);
  if (axis >= given.size()) return fallback;
  const int64_t extent = c.args.shape()[axis];
  const int64_t at = given[axis] < 0 ? given[axis] + extent : given[axis];
  if (at < 0 || at > extent) {
    c.Fail("{} = {} along axis {} with extent {}, expected {} to {}", name, given[axis], axis,
           extent, -extent, extent);
    return fallback;
  }
  return at;
}

TensorRef Slice(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  for (const char* name : {"begin", "end", "stride"}) {
    if (c.args.list(name).size() > shape.size()) {
      c.Fail("{} is given {} times, the input has {} axes", name, c.args.list(name).size(),
             shape.size());
    }
  }
  SliceSpec spec;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::vector<int64_t>& strides = c.args.list("stride");
    spec.stride.push_back(i < strides.size() ? strides[i] : 1);
    spec.begin.push_back(Bound(c, "begin", i, 0));
    const int64_t end = Bound(c, "end", i, shape[i]);
    if (spec.begin[i] >= end) {
      c.Fail("nothing is left of axis {}: begin = {}, end = {}", i, spec.begin[i], end);
      return c.Input(shape);
    }
    spec.extents.push_back(CeilDiv(end - spec.begin[i], spec.stride[i]));
  }
  return WriteSlice(c.b, c.Input(shape), spec);
}

// Whole slices of the input along one axis, chosen by a tensor of indices, which are clipped.
TensorRef Gather(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  const std::vector<int64_t>& indices = c.args.list("indices");
  const size_t axis = c.AxisAt("axis", c.args["axis"]).value_or(0);
  if (indices.empty()) c.Fail("needs the extents of its indices, one indices= each");
  std::vector<int64_t> out(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end());
  TensorRef x = c.Input(shape);
  TensorRef ids = c.Input(indices, ir::kInt32);
  return c.b.Compute("T_take", NumberedAxes("ax", out), [&](Vars v) {
    std::vector<Value> index(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(axis));
    const Value id = ids.At(v.subspan(axis, indices.size()));
    index.push_back(Min(Max(id, 0), shape[axis] - 1));
    const Vars rest = v.subspan(axis + indices.size());
    index.insert(index.end(), rest.begin(), rest.end());
    return x.At(index);
  });
}

Parameter ListOf(std::string name, std::string doc, int64_t min, int64_t max) {
  return {.name = std::move(name),
          .doc = std::move(doc),
          .min = min,
          .max = max,
          .default_value = std::nullopt,
          .list = true};
}

Parameter AxisOf(std::string doc, int64_t fallback) {
  return {.name = "axis", .doc = std::move(doc), .min = -8, .max = 7, .default_value = fallback};
}

OpInfo Info(std::string name, std::string doc, std::vector<Parameter> parameters,
            TensorRef (*build)(OpContext&)) {
  return {.name = std::move(name),
          .family = "rearrangement",
          .doc = std::move(doc),
          .takes_shape = true,
          .parameters = std::move(parameters),
          .build = build};
}

}  // namespace

std::vector<OpInfo> RearrangeOps() {
  return {
      Info("reshape", "the same elements under another shape",
           {ListOf("to", "new extents, one to= each; -1 once: what is left", -1, kMaxExtent)},
           Reshape),
      Info("transpose", "axes in another order",
           {ListOf("axis", "the input's axes in their new order, one axis= each; none: reversed",
                   -8, 7)},
           Transpose),
      Info("concat", "tensors one behind the other along one axis",
           {AxisOf("axis; negative: from the end", -1),
            ListOf("with", "extent of a further input along the axis, one with= each", 1,
                   kMaxExtent)},
           Concat),
      Info("slice", "every stride-th element from begin up to end, without it",
           {ListOf("begin",
                   "first element, one begin= for each axis; negative: from the end; "
                   "default 0",
                   -kMaxExtent, kMaxExtent),
            ListOf("end", "end, one end= for each axis; negative: from the end; default: all",
                   -kMaxExtent, kMaxExtent),
            ListOf("stride", "step, one stride= for each axis; default 1", 1, kMaxExtent)},
           Slice),
      Info("gather", "slices along one axis by a tensor of int32 indices, clipped into range",
           {AxisOf("axis that the indices choose from; negative: from the end", 0),
            ListOf("indices", "extents of the index tensor, one indices= each", 1, kMaxExtent)},
           Gather),
  };
}

}  // namespace kiln::dag
