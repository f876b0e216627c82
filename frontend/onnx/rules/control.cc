// Branches and loops. Kiln's graphs have none: what is decided while the model is read is taken,
// what repeats a known number of times is repeated.
#include <algorithm>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

constexpr int64_t kMaxIterations = 1024;

// Both branches, and of each result the one that the condition chooses.
void BothBranches(NodeContext& n, ::onnx::GraphProto& then_graph, ::onnx::GraphProto& else_graph) {
  const std::vector<Tensor> a = n.Inline(then_graph, {}), b = n.Inline(else_graph, {});
  if (n.failed()) return;
  if (a.size() != b.size())
    return n.Invalid("its branches have {} and {} outputs", a.size(), b.size());
  const Tensor condition = n.Reshape(n.input(0), {});
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_missing() && !b[i].is_missing() && a[i].type != b[i].type) {
      return n.Unsupported(
          "its condition is computed while the network runs, and its branches give {} and {}: fix "
          "the condition, or export the one branch",
          graph::TypeText(a[i].type), graph::TypeText(b[i].type));
    }
    n.SetOutput(static_cast<int>(i), n.Where(condition, a[i], b[i]));
  }
}

void If(NodeContext& n) {
  n.RequireRank(0, 0);
  ::onnx::GraphProto* const then_graph = n.Subgraph("then_branch");
  ::onnx::GraphProto* const else_graph = n.Subgraph("else_branch");
  if (n.failed()) return;
  if (n.input(0).num_elements() != 1)
    return n.Invalid("its condition is {}", graph::TypeText(n.input(0).type));
  if (!n.input(0).is_known()) return BothBranches(n, *then_graph, *else_graph);
  const bool holds = n.input(0).constant->At(0) != 0;
  const std::vector<Tensor> outputs = n.Inline(holds ? *then_graph : *else_graph, {});
  for (size_t i = 0; i < outputs.size(); ++i) n.SetOutput(static_cast<int>(i), outputs[i]);
}

// Known, and whether it holds; absent: it holds.
bool Holds(NodeContext& n, const Tensor& condition) {
  if (!condition.exists() || n.failed()) return true;
  if (!condition.is_known() || condition.num_elements() != 1) {
    if (!condition.is_missing())
      n.Unsupported("Kiln has no loops whose end depends on what the network computes");
    return false;
  }
  return condition.constant->At(0) != 0;
}

// What the iterations give one after the other: rows of a tensor.
Tensor Stacked(NodeContext& n, std::vector<Tensor> rows, int64_t axis) {
  if (rows.empty() && !n.failed())
    n.Unsupported("a loop that is never run: its result has no elements");
  for (Tensor& row : rows) {
    Shape shape = row.shape();
    const int64_t at = axis < 0 ? axis + row.rank() + 1 : axis;
    if (at < 0 || at > row.rank()) n.Invalid("an output axis of {}", axis);
    if (n.failed() || row.is_missing()) return Tensor::Missing();
    shape.insert(shape.begin() + at, 1);
    row = n.Reshape(row, std::move(shape));
    if (axis < 0) axis = at;
  }
  return n.Concat(std::move(rows), axis);
}

// Inputs: the most iterations, a condition, values that are carried along. The body's: the number of
// the iteration, the condition, the values. Its outputs: the condition, the values, rows.
void Loop(NodeContext& n) {
  ::onnx::GraphProto* const body = n.Subgraph("body");
  if (n.failed()) return;
  if (n.has_input(0) && !n.input(0).is_known())
    return n.Unsupported("Kiln has no loops with a count that is computed");
  const int64_t limit = n.has_input(0) ? n.KnownInt(0, "M") : INT64_MAX;
  const auto carried = static_cast<size_t>(std::max(n.num_inputs() - 2, 0));
  std::vector<Tensor> values;
  for (size_t i = 0; i < carried; ++i) values.push_back(n.input(static_cast<int>(i) + 2));
  Tensor condition = n.input(1);
  std::vector<std::vector<Tensor>> rows(
      static_cast<size_t>(std::max<int64_t>(body->output_size() - 1 - std::ssize(values), 0)));
  for (int64_t i = 0; i < limit && Holds(n, condition); ++i) {
    if (i == kMaxIterations)
      return n.Unsupported("a loop of more than {} iterations", kMaxIterations);
    std::vector<Tensor> inputs = {n.Constant({}, {i}),
                                  condition.exists() ? condition : n.Scalar(ir::kBool, 1)};
    inputs.insert(inputs.end(), values.begin(), values.end());
    const std::vector<Tensor> outputs = n.Inline(*body, std::move(inputs));
    if (n.failed()) return;
    if (outputs.size() < 1 + carried) return n.Invalid("its body has {} outputs", outputs.size());
    condition = outputs[0];
    std::copy_n(outputs.begin() + 1, carried, values.begin());
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(outputs[1 + carried + k]);
  }
  if (n.failed()) return;
  for (size_t i = 0; i < carried; ++i) n.SetOutput(static_cast<int>(i), values[i]);
  for (size_t k = 0; k < rows.size(); ++k) {
    const auto output = static_cast<int>(carried + k);
    if (n.wants_output(output)) n.SetOutput(output, Stacked(n, std::move(rows[k]), 0));
  }
}

// The i-th of `count` rows along an axis, without that axis.
Tensor Row(NodeContext& n, const Tensor& x, int64_t axis, int64_t i) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return n.Reshape(n.SliceAxis(x, axis, i, 1), std::move(shape));
}

// A list of numbers for each of `count`, or zeros.
Shape PerTensor(NodeContext& n, std::string_view attribute, int64_t count) {
  Shape values = n.Ints(attribute, Shape(static_cast<size_t>(count), 0));
  if (std::ssize(values) != count) n.Invalid("{} of {} tensors", attribute, count);
  values.resize(static_cast<size_t>(count));
  return values;
}

// States that are carried along, and tensors whose rows are read one after the other. Version 8 has
// lengths before them and a batch axis, over which all is repeated.
void Scan(NodeContext& n) {
  ::onnx::GraphProto* const body = n.Subgraph("body");
  const int64_t scanned = n.Int("num_scan_inputs", 0);
  if (n.failed()) return;
  if (n.version() < 9) return n.Unsupported("a batch of scans: export with opset >= 9");
  const int64_t states = n.num_inputs() - scanned, results = body->output_size() - states;
  if (scanned < 1 || states < 0 || results < 0)
    return n.Invalid("{} scanned of {} inputs", scanned, n.num_inputs());
  Shape axes = PerTensor(n, "scan_input_axes", scanned);
  const Shape backwards = PerTensor(n, "scan_input_directions", scanned);
  const Shape output_axes = PerTensor(n, "scan_output_axes", results);
  const Shape output_backwards = PerTensor(n, "scan_output_directions", results);
  std::vector<Tensor> values;
  for (int i = 0; i < n.num_inputs(); ++i) n.RequireRank(i, i < states ? 0 : 1);
  if (n.failed()) return;
  for (int64_t i = 0; i < states; ++i) values.push_back(n.input(static_cast<int>(i)));
  for (int64_t i = 0; i < scanned; ++i) {
    int64_t& axis = axes[static_cast<size_t>(i)];
    axis = n.Axis(axis, n.input(static_cast<int>(states + i)).rank());
  }
  const int64_t count = n.input(static_cast<int>(states)).dim(axes[0]);
  if (count > kMaxIterations)
    return n.Unsupported("a loop of more than {} iterations", kMaxIterations);
  std::vector<std::vector<Tensor>> rows(static_cast<size_t>(results));
  for (int64_t i = 0; i < count && !n.failed(); ++i) {
    std::vector<Tensor> inputs = values;
    for (int64_t k = 0; k < scanned; ++k) {
      const Tensor& x = n.input(static_cast<int>(states + k));
      const auto at = static_cast<size_t>(k);
      if (x.dim(axes[at]) != count) return n.Invalid("{} and {} rows", x.dim(axes[at]), count);
      inputs.push_back(Row(n, x, axes[at], backwards[at] != 0 ? count - 1 - i : i));
    }
    const std::vector<Tensor> outputs = n.Inline(*body, std::move(inputs));
    if (n.failed()) return;
    std::copy_n(outputs.begin(), states, values.begin());
    for (size_t k = 0; k < rows.size(); ++k) {
      const Tensor& row = outputs[static_cast<size_t>(states) + k];
      rows[k].insert(output_backwards[k] != 0 ? rows[k].begin() : rows[k].end(), row);
    }
  }
  for (int64_t i = 0; i < states; ++i)
    n.SetOutput(static_cast<int>(i), values[static_cast<size_t>(i)]);
  for (size_t k = 0; k < rows.size(); ++k)
    n.SetOutput(static_cast<int>(states) + static_cast<int>(k),
                Stacked(n, std::move(rows[k]), output_axes[k]));
}

}  // namespace

std::vector<Rule> ControlRules() { return {{"If", If}, {"Loop", Loop}, {"Scan", Scan}}; }

}  // namespace kiln::frontend
