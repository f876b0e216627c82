// Branches and loops. Kiln's graphs have none: a branch that is decided while the model is read is
// taken, and a loop with a known count is unrolled.
#include <algorithm>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

constexpr int64_t kMaxIterations = 1024;

// Writes both branches, and chooses each result by the condition.
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
          TypeText(a[i].type), TypeText(b[i].type));
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
    return n.Invalid("its condition is {}", TypeText(n.input(0).type));
  if (!n.input(0).is_known()) return BothBranches(n, *then_graph, *else_graph);
  const bool holds = n.input(0).constant->At(0) != 0;
  const std::vector<Tensor> outputs = n.Inline(holds ? *then_graph : *else_graph, {});
  for (size_t i = 0; i < outputs.size(); ++i) n.SetOutput(static_cast<int>(i), outputs[i]);
}

// Returns whether a known condition holds. An absent condition holds.
bool Holds(NodeContext& n, const Tensor& condition) {
  if (!condition.exists() || n.failed()) return true;
  if (!condition.is_known() || condition.num_elements() != 1) {
    if (!condition.is_missing())
      n.Unsupported("Kiln has no loops whose end depends on what the network computes");
    return false;
  }
  return condition.constant->At(0) != 0;
}

// Stacks the results of the iterations as rows of a tensor.
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

// Runs the body of a loop repeatedly, carries values along, and collects rows.
class Iterations {
 public:
  Iterations(NodeContext& n, ::onnx::GraphProto& body, std::vector<Tensor> values, int results)
      : n_(n), body_(body), values_(std::move(values)), rows_(static_cast<size_t>(results)) {}

  const std::vector<Tensor>& values() const { return values_; }
  // Returns the rows of each result.
  const std::vector<std::vector<Tensor>>& rows() const { return rows_; }

  // Runs the body once. Its outputs from `first` on are the values and the rows; returns the
  // outputs before them.
  std::vector<Tensor> Run(std::vector<Tensor> inputs, size_t first) {
    if (++count_ > kMaxIterations)
      n_.Unsupported("a loop of more than {} iterations", kMaxIterations);
    std::vector<Tensor> outputs = n_.Inline(body_, std::move(inputs));
    if (n_.failed()) return std::vector<Tensor>(first);
    if (outputs.size() != first + values_.size() + rows_.size()) {
      n_.Invalid("its body has {} outputs", outputs.size());
      return std::vector<Tensor>(first);
    }
    const auto rows = outputs.begin() + static_cast<std::ptrdiff_t>(first + values_.size());
    for (size_t k = 0; k < rows_.size(); ++k)
      rows_[k].push_back(rows[static_cast<std::ptrdiff_t>(k)]);
    std::copy(outputs.begin() + static_cast<std::ptrdiff_t>(first), rows, values_.begin());
    outputs.resize(first);
    return outputs;
  }

  // Sets the values, and the stacked rows of each result: along an axis, perhaps backwards.
  void SetOutputs(const Shape& axes, const Shape& backwards) {
    const auto num_values = static_cast<int>(values_.size());
    for (int i = 0; i < num_values; ++i) n_.SetOutput(i, values_[static_cast<size_t>(i)]);
    for (size_t k = 0; k < rows_.size(); ++k) {
      const int output = num_values + static_cast<int>(k);
      if (!n_.wants_output(output)) continue;
      if (backwards[k] != 0) std::ranges::reverse(rows_[k]);
      n_.SetOutput(output, Stacked(n_, std::move(rows_[k]), axes[k]));
    }
  }

 private:
  NodeContext& n_;
  ::onnx::GraphProto& body_;
  std::vector<Tensor> values_;
  std::vector<std::vector<Tensor>> rows_;
  int64_t count_ = 0;
};

// Inputs: the most iterations, a condition, values. The body's inputs: the number of the iteration,
// the condition, the values. Its outputs: the condition, the values, rows.
void Loop(NodeContext& n) {
  ::onnx::GraphProto* const body = n.Subgraph("body");
  if (n.failed()) return;
  if (n.has_input(0) && !n.input(0).is_known())
    return n.Unsupported("Kiln has no loops whose count depends on what the network computes");
  const int64_t limit = n.has_input(0) ? n.KnownInt(0, "M") : INT64_MAX;
  std::vector<Tensor> values;
  for (int i = 2; i < n.num_inputs(); ++i) values.push_back(n.input(i));
  const auto results = static_cast<int>(body->output_size() - 1 - std::ssize(values));
  if (results < 0) return n.Invalid("its body has {} outputs", body->output_size());
  Iterations iterations(n, *body, std::move(values), results);
  Tensor condition = n.input(1);
  for (int64_t i = 0; i < limit && Holds(n, condition); ++i) {
    std::vector<Tensor> inputs = {n.Constant({}, {i}),
                                  condition.exists() ? condition : n.Scalar(ir::kBool, 1)};
    for (const Tensor& value : iterations.values()) inputs.push_back(value);
    condition = iterations.Run(std::move(inputs), 1)[0];
    if (n.failed()) return;
  }
  const Shape zeros(static_cast<size_t>(results), 0);
  if (!n.failed()) iterations.SetOutputs(zeros, zeros);
}

// Returns the i-th row along an axis, without that axis.
Tensor Row(NodeContext& n, const Tensor& x, int64_t axis, int64_t i) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return n.Reshape(n.SliceAxis(x, axis, i, 1), std::move(shape));
}

// Returns a number for each of `count` tensors; the default is 0.
Shape PerTensor(NodeContext& n, std::string_view attribute, int64_t count) {
  Shape values = n.Ints(attribute, Shape(static_cast<size_t>(count), 0));
  if (std::ssize(values) != count) n.Invalid("{} of {} tensors", attribute, count);
  values.resize(static_cast<size_t>(count));
  return values;
}

// A tensor whose rows a scan reads one after the other.
struct Scanned {
  Tensor x;
  int64_t axis;
  bool is_backwards;
};

std::vector<Scanned> ReadScanned(NodeContext& n, int first, int64_t count) {
  const Shape axes = PerTensor(n, "scan_input_axes", count);
  const Shape backwards = PerTensor(n, "scan_input_directions", count);
  std::vector<Scanned> all;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int input = first + static_cast<int>(k);
    n.RequireRank(input, 1);
    if (n.failed()) break;
    const Tensor& x = n.input(input);
    all.push_back({x, n.Axis(axes[k], x.rank()), backwards[k] != 0});
    if (x.dim(all[k].axis) != all[0].x.dim(all[0].axis))
      n.Invalid("rows of {} and {}", TypeText(all[0].x.type), TypeText(x.type));
  }
  return all;
}

// Scan of version 8: scans each element of a batch, which is the first axis of all inputs and
// outputs, along the second axis. The first input gives the length of each sequence.
class BatchedScan {
 public:
  // The first `states` inputs after the lengths are states; the others are read row by row.
  BatchedScan(NodeContext& n, ::onnx::GraphProto& body, int states)
      : n_(n), body_(body), states_(states), inputs_(n.num_inputs() - 1) {}

  void Run() {
    if (!CheckInputs()) return;
    const Shape lengths = Lengths();
    if (n_.failed()) return;
    for (int64_t b = 0; b < batch_ && !n_.failed(); ++b)
      RunElement(b, lengths[static_cast<size_t>(b)]);
    for (size_t i = 0; i < outputs_.size() && !n_.failed(); ++i)
      n_.SetOutput(static_cast<int>(i), Stacked(n_, std::move(outputs_[i]), 0));
  }

 private:
  const Tensor& Input(int i) const { return n_.input(i + 1); }
  int num_results() const { return body_.output_size() - states_; }

  bool CheckInputs() {
    for (int i = 0; i < inputs_; ++i) n_.RequireRank(i + 1, i < states_ ? 1 : 2);
    backwards_ = PerTensor(n_, "directions", inputs_ - states_);
    if (n_.failed()) return false;
    const Tensor& first = Input(states_);
    batch_ = first.dim(0);
    steps_ = first.dim(1);
    for (int i = 0; i < inputs_; ++i) {
      const bool fits = Input(i).dim(0) == batch_ && (i < states_ || Input(i).dim(1) == steps_);
      if (!fits) n_.Invalid("{} and {}", TypeText(first.type), TypeText(Input(i).type));
    }
    if (MultiplyCounts(batch_, steps_) > kMaxIterations)
      n_.Unsupported("a batch of {} scans of {} steps: more than {} steps", batch_, steps_,
                     kMaxIterations);
    outputs_.resize(static_cast<size_t>(body_.output_size()));
    return !n_.failed();
  }

  Shape Lengths() {
    if (!n_.has_input(0)) return Shape(static_cast<size_t>(batch_), steps_);
    Shape lengths = n_.KnownInts(0, "sequence_lens");
    if (n_.failed()) return lengths;
    if (std::ssize(lengths) != batch_)
      n_.Invalid("{} lengths of {} sequences", lengths.size(), batch_);
    for (const int64_t length : lengths) {
      if (length < 0 || length > steps_)
        n_.Invalid("a length of {}, expected 0 to {}", length, steps_);
      if (length == 0 && num_results() > 0)
        n_.Unsupported("a scan of no steps: what it would give has no shape");
    }
    return lengths;
  }

  void RunElement(int64_t b, int64_t length) {
    std::vector<Tensor> values;
    for (int i = 0; i < states_; ++i) values.push_back(Row(n_, Input(i), 0, b));
    Iterations iterations(n_, body_, std::move(values), num_results());
    for (int64_t t = 0; t < length && !n_.failed(); ++t) {
      std::vector<Tensor> inputs = iterations.values();
      for (int i = states_; i < inputs_; ++i) {
        const bool is_backwards = backwards_[static_cast<size_t>(i - states_)] != 0;
        inputs.push_back(Row(n_, Row(n_, Input(i), 0, b), 0, is_backwards ? length - 1 - t : t));
      }
      iterations.Run(std::move(inputs), 0);
    }
    if (!n_.failed()) Collect(iterations);
  }

  // Adds the results of one element to the outputs. Rows after the end of the sequence are 0.
  void Collect(const Iterations& iterations) {
    for (size_t i = 0; i < iterations.values().size(); ++i)
      outputs_[i].push_back(iterations.values()[i]);
    for (size_t k = 0; k < iterations.rows().size(); ++k) {
      std::vector<Tensor> rows = iterations.rows()[k];
      const Tensor zero = n_.BroadcastTo(n_.ScalarLike(rows[0], 0), rows[0].shape());
      rows.resize(static_cast<size_t>(steps_), zero);
      outputs_[static_cast<size_t>(states_) + k].push_back(Stacked(n_, std::move(rows), 0));
    }
  }

  NodeContext& n_;
  ::onnx::GraphProto& body_;
  // Numbers of states, and of all inputs without the lengths.
  const int states_, inputs_;
  int64_t batch_ = 0, steps_ = 0;
  Shape backwards_;
  // For each output its parts by the elements of the batch.
  std::vector<std::vector<Tensor>> outputs_;
};

// Carries states along, and reads tensors row by row.
void Scan(NodeContext& n) {
  ::onnx::GraphProto* const body = n.Subgraph("body");
  const int64_t count = n.Int("num_scan_inputs", 0);
  if (n.failed()) return;
  if (n.version() < 9) {
    const int64_t states = n.num_inputs() - 1 - count;
    if (count < 1 || states < 0) return n.Invalid("{} inputs to scan", count);
    if (body->output_size() < states)
      return n.Invalid("its body has {} outputs", body->output_size());
    return BatchedScan(n, *body, static_cast<int>(states)).Run();
  }
  if (count < 1 || count > n.num_inputs()) return n.Invalid("{} inputs to scan", count);
  const int states = n.num_inputs() - static_cast<int>(count);
  if (body->output_size() < states)
    return n.Invalid("its body has {} outputs", body->output_size());
  const int results = body->output_size() - states;
  std::vector<Tensor> values;
  for (int i = 0; i < states; ++i) values.push_back(n.input(i));
  const std::vector<Scanned> scanned = ReadScanned(n, states, count);
  const Shape axes = PerTensor(n, "scan_output_axes", results);
  const Shape backwards = PerTensor(n, "scan_output_directions", results);
  if (n.failed()) return;
  Iterations iterations(n, *body, std::move(values), results);
  const int64_t steps = scanned[0].x.dim(scanned[0].axis);
  for (int64_t i = 0; i < steps && !n.failed(); ++i) {
    std::vector<Tensor> inputs = iterations.values();
    for (const Scanned& s : scanned)
      inputs.push_back(Row(n, s.x, s.axis, s.is_backwards ? steps - 1 - i : i));
    iterations.Run(std::move(inputs), 0);
  }
  if (!n.failed()) iterations.SetOutputs(axes, backwards);
}

}  // namespace

std::vector<Rule> ControlRules() { return {{"If", If}, {"Loop", Loop}, {"Scan", Scan}}; }

}  // namespace kiln::frontend
