#include "compiler/dag/key_forms.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

enum class Counting { kWithPadding, kWithoutPadding };

// One axis of the windows of a pool.
struct Window {
  std::string axis;
  int64_t stride = 1, pad = 0, kernel = 1;
  // Extent of the input without padding.
  int64_t extent = 0;
};

bool HasAxes(const Operator& op, std::string_view first, std::string_view second) {
  return op.axes().size() == 2 && op.axes()[0].name == first && op.axes()[1].name == second;
}

std::string Plus(const std::string& text, int64_t number) {
  return number == 0 ? text : fmt::format("({} + {})", text, number);
}

// Returns the number of the input's elements in a window, in the folded form in which the library
// writes it.
std::string CountText(const Window& w, Counting counting) {
  const std::string scaled = w.stride == 1 ? w.axis : fmt::format("({}*{})", w.axis, w.stride);
  const std::string start = w.pad == 0 ? scaled : fmt::format("({} - {})", scaled, w.pad);
  const bool padding = counting == Counting::kWithPadding;
  const std::string end =
      fmt::format("min({}, {})", Plus(start, w.kernel - 1), w.extent + (padding ? w.pad : 0) - 1);
  const std::string from = padding ? start : fmt::format("({} + max((0 - {}), 0))", start, start);
  return fmt::format("(({} - {}) + 1)", end, from);
}

// Returns the stride of an index `axis * stride + window` or `axis + window`.
std::optional<int64_t> StrideOf(Expr index, int axis, int window) {
  if (index->op != Op::kAdd) return {};
  const auto is_var = [](Expr e, int id) { return e->op == Op::kVar && e->id == id; };
  const Expr scaled = index->arg(0);
  if (!is_var(index->arg(1), window)) return {};
  if (is_var(scaled, axis)) return 1;
  if (scaled->op != Op::kMul || !is_var(scaled->arg(0), axis)) return {};
  if (scaled->arg(1)->op != Op::kInt) return {};
  return scaled->arg(1)->int_value;
}

// Returns the windows of `sum`, or an empty list if it is no such pool.
std::vector<Window> WindowsOf(const Dag& dag, const OpNode& sum) {
  const Operator& op = *sum.op;
  std::vector<Window> windows;
  if (op.combiner() != Combiner::kSum || op.body()->op != Op::kLoad) return windows;
  const Expr load = op.body();
  const Tensor read = sum.inputs[load->id];
  const std::vector<int64_t>& padded = dag.shape(read);
  const OpNode& input = dag.node(read.op);
  const bool pads = input.op->name() == "pad_temp" && input.inputs.size() == 1;
  const std::vector<int64_t>& plain = pads ? dag.shape(input.inputs[0]) : padded;
  const auto spatial = static_cast<int>(op.axes().size());
  for (int axis = 0; axis < spatial && axis < static_cast<int>(load->num_args); ++axis) {
    const int window = spatial + static_cast<int>(windows.size());
    if (windows.size() == op.reduce_axes().size()) break;
    const auto stride = StrideOf(load->arg(axis), axis, window);
    if (!stride.has_value()) continue;
    windows.push_back({.axis = op.axes()[axis].name,
                       .stride = *stride,
                       .pad = (padded[axis] - plain[axis]) / 2,
                       .kernel = op.reduce_axes()[windows.size()].extent,
                       .extent = plain[axis]});
  }
  if (windows.size() != op.reduce_axes().size()) windows.clear();
  return windows;
}

std::vector<OpForm> FormsOfAverage(const Dag& dag, const OpNode& average) {
  std::vector<OpForm> forms;
  if (average.inputs.size() != 1) return forms;
  const OpNode& sum = dag.node(average.inputs[0].op);
  const std::vector<Window> windows = WindowsOf(dag, sum);
  if (windows.size() != 2) return forms;
  // Each window counts the same number of elements.
  const bool whole =
      average.op->body()->op == Op::kDiv && average.op->body()->arg(1)->op == Op::kFloat;
  bool padded = false;
  for (const Window& w : windows) padded = padded || w.pad > 0;
  std::string index;
  for (const Axis& axis : average.op->axes()) index += (index.empty() ? "" : ", ") + axis.name;
  for (const Counting counting : {Counting::kWithPadding, Counting::kWithoutPadding}) {
    // Without padding both ways to count give the same number.
    if (padded && whole != (counting == Counting::kWithPadding)) continue;
    std::string count =
        fmt::format("({}*{})", CountText(windows[0], counting), CountText(windows[1], counting));
    if (counting == Counting::kWithoutPadding) count = fmt::format("max({}, 1)", count);
    forms.push_back({.body = fmt::format("({}[{}]/{}({}))", sum.op->name(), index,
                                         TypeName(average.op->type()), count)});
  }
  return forms;
}

// The other forms of an operator and its kind. All operators of one kind have the same form in one
// computation.
enum Kind { kProduct, kRelu, kAverage, kNumKinds };
struct OtherForms {
  Kind kind;
  std::vector<OpForm> forms;
};

OtherForms FormsOf(const Dag& dag, const OpNode& node) {
  const std::string& name = node.op->name();
  if (name == "T_matmul_NT" && HasAxes(*node.op, "i", "j")) return {kProduct, {{.axes = "i"}}};
  if (name == "T_matmul_NN" && HasAxes(*node.op, "i", "j")) {
    return {kProduct, {{.axes = "i"}, {.name = "T_matmul", .axes = "ax"}}};
  }
  if (name == "T_relu") return {kRelu, {{.name = "compute", .axes = "i"}}};
  if (name == "pool_avg") return {kAverage, FormsOfAverage(dag, node)};
  return {kNumKinds, {}};
}

}  // namespace

std::vector<std::vector<OpForm>> OtherKeyForms(const Dag& dag) {
  std::vector<OtherForms> of_ops;
  // Numbers of forms, including the form in this DAG.
  size_t numbers[kNumKinds] = {1, 1, 1};
  for (int i = 0; i < dag.size(); ++i) {
    of_ops.push_back(FormsOf(dag, dag.node(i)));
    if (of_ops.back().forms.empty()) continue;
    size_t& number = numbers[of_ops.back().kind];
    number = std::max(number, of_ops.back().forms.size() + 1);
  }
  std::vector<std::vector<OpForm>> all;
  const size_t combinations = numbers[kProduct] * numbers[kRelu] * numbers[kAverage];
  for (size_t c = 1; c < combinations; ++c) {
    const size_t chosen[kNumKinds] = {c % numbers[kProduct], c / numbers[kProduct] % numbers[kRelu],
                                      c / numbers[kProduct] / numbers[kRelu]};
    std::vector<OpForm>& forms = all.emplace_back();
    for (const OtherForms& others : of_ops) {
      const size_t choice = others.forms.empty() ? 0 : chosen[others.kind];
      forms.push_back(choice == 0 ? OpForm()
                                  : others.forms[std::min(choice, others.forms.size()) - 1]);
    }
  }
  return all;
}

}  // namespace kiln::dag
