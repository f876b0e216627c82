// Elements at computed places: gathers and scatters.
#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Gathers at once from a known list of whole numbers, such as a shape, even if it has no elements.
bool GatherEmpty(NodeContext& n, int64_t axis) {
  const Tensor &x = n.input(0), &ids = n.input(1);
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, ids.shape().begin(), ids.shape().end());
  Tensor empty = Tensor::Empty({x.element(), std::move(shape)});
  if (!empty.is_empty()) return false;
  n.SetOutput(std::move(empty));
  return true;
}

void RequireIds(NodeContext& n, int i) {
  n.RequireRank(i, 0);
  if (n.failed()) return;
  const ir::Type type = n.input(i).element();
  if (type != ir::kInt32 && type != ir::kInt64) n.Invalid("its indices are {}", ir::TypeName(type));
}

void Gather(NodeContext& n) {
  n.RequireRank(0, 1);
  RequireIds(n, 1);
  if (n.failed()) return;
  const int64_t axis = n.Axis(n.Int("axis", 0), n.input(0).rank());
  if (n.failed() || GatherEmpty(n, axis)) return;
  n.SetOutput(n.Gather(n.input(0), n.input(1), axis));
}

void GatherElements(NodeContext& n) {
  n.RequireRank(0, 1);
  RequireIds(n, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", 0), x.rank());
  n.SetOutput(n.Emit("gather_elements", {x, n.input(1)}, {{"axis", axis}}));
}

void RequireTuples(NodeContext& n, int64_t first) {
  n.RequireRank(0, 1);
  n.RequireRank(1, 1);
  RequireIds(n, 1);
  if (n.failed()) return;
  const Tensor &x = n.input(0), &ids = n.input(1);
  const int64_t length = ids.dim(ids.rank() - 1);
  if (first < 0 || length < 1 || first + length > x.rank())
    n.Invalid("{} indices each of {} after {} axes", length, TypeText(x.type), first);
}

void GatherNd(NodeContext& n) {
  const int64_t batch_dims = n.Count("batch_dims", 0);
  RequireTuples(n, batch_dims);
  if (n.failed()) return;
  n.SetOutput(n.Emit("gather_nd", {n.input(0), n.input(1)}, {{"batch_dims", batch_dims}}));
}

// Returns how an update is combined with an element. The graph uses ONNX's words.
std::string ScatterMode(NodeContext& n) {
  const std::string mode = n.Text("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"})
    if (mode == known) return mode;
  n.Invalid("reduction is '{}'", mode);
  return mode;
}

void ScatterElements(NodeContext& n) {
  n.RequireRank(0, 1);
  RequireIds(n, 1);
  n.RequireRank(2, 1);
  const std::string mode = ScatterMode(n);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", 0), x.rank());
  n.SetOutput(
      n.Emit("scatter_elements", {x, n.input(1), n.input(2)}, {{"axis", axis}, {"mode", mode}}));
}

void ScatterNd(NodeContext& n) {
  RequireTuples(n, 0);
  const std::string mode = ScatterMode(n);
  if (n.failed()) return;
  n.SetOutput(n.Emit("scatter_nd", {n.input(0), n.input(1), n.input(2)}, {{"mode", mode}}));
}

// `values` are [off, on].
void OneHot(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(2, 1, 1);
  const double count = n.KnownFloat(1, "depth");
  if (n.failed()) return;
  if (!(count >= 1) || count > 0x1p40) return n.Invalid("a depth of {}", count);
  const auto depth = static_cast<int64_t>(count);
  const Tensor& values = n.input(2);
  const int64_t axis = n.Axis(n.Int("axis", -1), n.input(0).rank() + 1);
  const bool are_known = values.is_known();
  if (values.dim(0) != 2) return n.Invalid("its values are {}", TypeText(values.type));
  const Tensor ids = n.Cast(n.input(0), ir::kInt64);
  const ir::Type type = are_known ? values.element() : ir::kBool;
  const Tensor y = n.Emit("one_hot", {ids},
                          {{"depth", depth},
                           {"axis", axis},
                           {"on", are_known ? values.constant->At(1) : 1.0},
                           {"off", are_known ? values.constant->At(0) : 0.0},
                           {"type", std::string(ir::TypeName(type))}});
  if (are_known) return n.SetOutput(y);
  const auto value = [&](int64_t i) { return n.Reshape(n.SliceAxis(values, 0, i, 1), {}); };
  n.SetOutput(n.Where(y, value(1), value(0)));
}

}  // namespace

std::vector<Rule> IndexingRules() {
  return {{"Gather", Gather},
          {"GatherElements", GatherElements},
          {"GatherND", GatherNd},
          {"Scatter", ScatterElements},
          {"ScatterElements", ScatterElements},
          {"ScatterND", ScatterNd},
          {"OneHot", OneHot}};
}

}  // namespace kiln::frontend
