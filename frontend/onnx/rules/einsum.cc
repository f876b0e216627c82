// Einsum as transposes, reshapes and matrix products: two operands at a time, from the left.
#include <algorithm>
#include <numeric>
#include <string>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// A tensor whose axes have letters as labels. Axes of an ellipsis have characters before 'A'; the
// last of them has ' '.
struct Labeled {
  std::string labels;
  Tensor tensor;

  int64_t dim(char label) const {
    const size_t at = labels.find(label);
    return at == std::string::npos ? 1 : tensor.dim(static_cast<int64_t>(at));
  }
  bool has(char label) const { return labels.find(label) != std::string::npos; }
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Returns a label for each of `rank` axes: "b...d" has two letters, and a label for each axis
// between.
std::string ExpandEllipsis(NodeContext& n, std::string term, int rank) {
  const size_t at = term.find("...");
  std::string letters = term;
  if (at != std::string::npos) {
    std::string axes;
    for (int64_t i = rank - (std::ssize(term) - 3); i-- > 0;) axes += static_cast<char>(' ' + i);
    term.replace(at, 3, axes);
    letters.erase(at, 3);
  }
  if (std::ssize(term) != rank || !std::ranges::all_of(letters, IsLetter))
    n.Invalid("its equation does not fit a tensor of {} dimensions", rank);
  return term;
}

// Without "->" the output has the labels that occur once, sorted, after those of the ellipsis.
std::string ImplicitOutput(const std::vector<std::string>& inputs) {
  std::string all, output;
  for (const std::string& term : inputs) all += term;
  std::ranges::sort(all);
  for (char label : all) {
    const bool is_new = output.find(label) == std::string::npos;
    if (is_new && (!IsLetter(label) || std::ranges::count(all, label) == 1)) output += label;
  }
  const auto ellipsis_end =
      std::ranges::stable_partition(output, [](char c) { return !IsLetter(c); });
  std::reverse(output.begin(), ellipsis_end.begin());
  return output;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

Equation Parse(NodeContext& n, std::string text) {
  Equation equation;
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  equation.inputs = SplitAtCommas(text.substr(0, arrow));
  if (std::ssize(equation.inputs) != n.num_inputs()) {
    n.Invalid("its equation '{}' has {} operands, it has {}", text, equation.inputs.size(),
              n.num_inputs());
    return equation;
  }
  // Number of axes of an ellipsis.
  int64_t most = 0;
  for (int i = 0; i < n.num_inputs() && !n.failed(); ++i) {
    n.RequireRank(i, 0);
    std::string& term = equation.inputs[static_cast<size_t>(i)];
    most = std::max(most, n.input(i).rank() - std::ranges::count_if(term, IsLetter));
    term = ExpandEllipsis(n, term, n.input(i).rank());
  }
  if (arrow == std::string::npos) {
    equation.output = ImplicitOutput(equation.inputs);
    return equation;
  }
  const std::string output = text.substr(arrow + 2);
  const bool has_ellipsis = output.find("...") != std::string::npos;
  const int64_t rank = std::ranges::count_if(output, IsLetter) + (has_ellipsis ? most : 0);
  equation.output = ExpandEllipsis(n, output, static_cast<int>(rank));
  return equation;
}

Labeled Transposed(NodeContext& n, const Labeled& x, const std::string& labels) {
  Shape axes;
  for (char label : labels) axes.push_back(static_cast<int64_t>(x.labels.find(label)));
  return {labels, n.Transpose(x.tensor, std::move(axes))};
}

// Takes the diagonal of labels that occur twice: the elements whose two indices are equal.
Labeled Diagonal(NodeContext& n, Labeled x) {
  for (size_t i = 0; i < x.labels.size() && !n.failed();) {
    const char label = x.labels[i];
    const size_t other = x.labels.find(label, i + 1);
    if (other == std::string::npos) {
      ++i;
      continue;
    }
    Shape axes;
    for (size_t d = 0; d < x.labels.size(); ++d)
      if (d != i && d != other) axes.push_back(static_cast<int64_t>(d));
    axes.push_back(static_cast<int64_t>(i));
    axes.push_back(static_cast<int64_t>(other));
    const int64_t extent = x.tensor.dim(static_cast<int64_t>(i));
    if (extent != x.tensor.dim(static_cast<int64_t>(other))) {
      n.Invalid("label {} stands for two extents", label);
      return x;
    }
    Tensor t = n.Transpose(x.tensor, axes);
    Shape shape(t.shape().begin(), t.shape().end() - std::min<int64_t>(2, t.rank()));
    shape.push_back(MultiplyCounts(extent, extent));
    t = n.Reshape(t, shape);
    x.tensor = n.SliceAxis(t, std::ssize(shape) - 1, 0, extent, extent + 1);
    x.labels.erase(other, 1);
    x.labels.erase(i, 1);
    x.labels += label;
    i = 0;
  }
  return x;
}

// Sums over the labels that `wanted` lacks.
Labeled Summed(NodeContext& n, const Labeled& x, const std::string& wanted) {
  Shape axes;
  std::string kept;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (wanted.find(x.labels[d]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(d));
    } else {
      kept += x.labels[d];
    }
  }
  return {kept, n.Reduce("reduce_sum", x.tensor, axes, false)};
}

// Removes axes of extent 1 for which the other operand has a larger extent: they broadcast.
Labeled WithoutOnes(NodeContext& n, const Labeled& x, const Labeled& other) {
  Labeled y{{}, x.tensor};
  Shape shape;
  for (char label : x.labels) {
    if (x.dim(label) == 1 && other.dim(label) != 1) continue;
    y.labels += label;
    shape.push_back(x.dim(label));
  }
  y.tensor = n.Reshape(x.tensor, std::move(shape));
  return y;
}

int64_t Extent(const Labeled& x, const std::string& labels) {
  int64_t extent = 1;
  for (char label : labels) extent = MultiplyCounts(extent, x.dim(label));
  return extent;
}

// Returns x times y, summed over their common labels that `wanted` lacks.
Labeled Product(NodeContext& n, const Labeled& left, const Labeled& right,
                const std::string& wanted) {
  const Labeled x = WithoutOnes(n, left, right), y = WithoutOnes(n, right, left);
  std::string batch, rows, sums, columns;
  for (char label : x.labels) {
    const bool is_kept = wanted.find(label) != std::string::npos;
    (!y.has(label) ? rows : is_kept ? batch : sums) += label;
    if (y.has(label) && x.dim(label) != y.dim(label))
      n.Invalid("label {} stands for {} and {}", label, x.dim(label), y.dim(label));
  }
  for (char label : y.labels)
    if (!x.has(label)) columns += label;
  if (n.failed()) return x;
  const int64_t b = Extent(x, batch), i = Extent(x, rows), k = Extent(x, sums),
                j = Extent(y, columns);
  const Tensor a = n.Reshape(Transposed(n, x, batch + rows + sums).tensor, {b, i, k});
  const Tensor c = n.Reshape(Transposed(n, y, batch + sums + columns).tensor, {b, k, j});
  const Labeled named{batch + rows + columns, n.Emit("matmul", {a, c})};
  Shape shape;
  for (char label : named.labels) shape.push_back(x.has(label) ? x.dim(label) : y.dim(label));
  return {named.labels, n.Reshape(named.tensor, std::move(shape))};
}

void Einsum(NodeContext& n) {
  const Equation equation = Parse(n, n.Text("equation", ""));
  if (n.failed()) return;
  Labeled result;
  for (size_t i = 0; i < equation.inputs.size() && !n.failed(); ++i) {
    // Labels that later operands and the output read.
    std::string wanted = equation.output;
    for (size_t later = i + 1; later < equation.inputs.size(); ++later)
      wanted += equation.inputs[later];
    const Labeled operand = Diagonal(n, {equation.inputs[i], n.input(static_cast<int>(i))});
    if (i == 0) {
      result = Summed(n, operand, wanted);
    } else {
      const Labeled summed = Summed(n, operand, wanted + result.labels);
      result = Summed(n, Product(n, result, summed, wanted), wanted);
    }
  }
  for (char label : equation.output) {
    if (!n.failed() && !result.has(label))
      n.Invalid("no operand has label {} of the output", label);
  }
  if (n.failed()) return;
  n.SetOutput(Transposed(n, result, equation.output).tensor);
}

}  // namespace

std::vector<Rule> EinsumRules() { return {{"Einsum", Einsum}}; }

}  // namespace kiln::frontend
