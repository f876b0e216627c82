// Counts sequences of a few numbers wherever they occur in rows of numbers.
#include <algorithm>
#include <map>

#include "base/numbers/integers.h"
#include "frontend/onnx/evaluate_known.h"
#include "frontend/onnx/rules/families.h"

namespace kiln::frontend {
namespace {

// The sequences of one length, one after the other, and the output that counts each.
struct Grams {
  int64_t length = 1;
  Shape items = {};
  Shape outputs = {};

  int64_t count() const { return std::ssize(outputs); }
};

// Reads the sequences of all lengths. Attributes give the start of each length in a pool.
std::vector<Grams> ReadGrams(NodeContext& n) {
  const Shape pool = n.Ints("pool_int64s"), starts = n.Ints("ngram_counts"),
              outputs = n.Ints("ngram_indexes");
  std::vector<Grams> all;
  size_t next = 0;
  for (size_t i = 0; i < starts.size() && !n.failed(); ++i) {
    const int64_t begin = starts[i];
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : std::ssize(pool);
    Grams grams{.length = static_cast<int64_t>(i) + 1};
    if (begin < 0 || begin > end || end > std::ssize(pool) || (end - begin) % grams.length != 0) {
      n.Invalid("sequences of {} in the elements from {} to {} of {}", grams.length, begin, end,
                pool.size());
      break;
    }
    grams.items.assign(pool.begin() + begin, pool.begin() + end);
    for (int64_t k = 0; k < (end - begin) / grams.length; ++k, ++next) {
      const int64_t output = next < outputs.size() ? outputs[next] : -1;
      if (output < 0 || output > kMaxKnownElements)
        n.Invalid("{} ngram_indexes, and sequence {} is at {}", outputs.size(), next, output);
      grams.outputs.push_back(output);
    }
    all.push_back(std::move(grams));
  }
  return all;
}

// Returns [rows, sequences]: how often each sequence occurs in a row, with its items `step` apart.
Tensor Counted(NodeContext& n, const Tensor& x, const Grams& grams, int64_t step) {
  const int64_t places = x.dim(1) - (grams.length - 1) * step;
  Tensor found;
  for (int64_t j = 0; j < grams.length; ++j) {
    Shape items;
    for (int64_t k = 0; k < grams.count(); ++k)
      items.push_back(grams.items[static_cast<size_t>(k * grams.length + j)]);
    const Tensor column = n.Reshape(n.SliceAxis(x, 1, j * step, places), {x.dim(0), places, 1});
    const Tensor is_it = n.Emit("equal", {column, n.Constant({1, 1, grams.count()}, items)});
    found = found.exists() ? n.Emit("logical_and", {found, is_it}) : is_it;
  }
  return n.Reduce("reduce_sum", n.Cast(found, ir::kFloat32), {1}, false);
}

// Returns [sequences, outputs]: 1 for the output that counts the sequence.
Tensor Placement(NodeContext& n, const Grams& grams, int64_t outputs) {
  std::vector<double> ones(static_cast<size_t>(grams.count() * outputs), 0);
  for (int64_t k = 0; k < grams.count(); ++k)
    ones[static_cast<size_t>(k * outputs + grams.outputs[static_cast<size_t>(k)])] = 1;
  return n.Constant(ir::kFloat32, {grams.count(), outputs}, ones);
}

// Returns the counts, or whether there are any, or either of them times a weight, by mode.
Tensor Weighted(NodeContext& n, const Tensor& counts, const std::string& mode, int64_t outputs) {
  if (mode == "TF") return counts;
  const Tensor zero = n.Scalar(ir::kFloat32, 0), one = n.Scalar(ir::kFloat32, 1);
  const Tensor y = mode == "TFIDF" ? counts : n.Where(n.Emit("greater", {counts, zero}), one, zero);
  const std::vector<double> weights = n.Floats("weights");
  if (weights.empty()) return y;
  if (std::ssize(weights) != outputs)
    n.Invalid("{} weights of {} outputs", weights.size(), outputs);
  return n.Mul(y, n.Constant(ir::kFloat32, {std::ssize(weights)}, weights));
}

// Returns [rows, outputs]. Sequences of one item have no steps.
Tensor CountAll(NodeContext& n, const Tensor& x, const std::vector<Grams>& all, int64_t outputs) {
  const int64_t least = n.Count("min_gram_length", 1, 1), most = n.Count("max_gram_length", 1, 1);
  const int64_t skips = n.Count("max_skip_count", 0);
  Tensor sum = n.BroadcastTo(n.Scalar(ir::kFloat32, 0), {x.dim(0), outputs});
  for (const Grams& grams : all) {
    if (n.failed() || grams.length < least || grams.length > most || grams.count() == 0) continue;
    if (MultiplyCounts(grams.count(), outputs) > kMaxKnownElements)
      n.Unsupported("{} sequences for {} outputs", grams.count(), outputs);
    const Tensor placement = Placement(n, grams, outputs);
    const int64_t last_step = grams.length == 1 ? 1 : skips + 1;
    for (int64_t step = 1; step <= last_step && !n.failed(); ++step) {
      if (x.dim(1) <= MultiplyCounts(grams.length - 1, step)) break;
      sum = n.Add(sum, n.Emit("matmul", {Counted(n, x, grams, step), placement}));
    }
  }
  return sum;
}

void TfIdf(NodeContext& n) {
  n.RequireRank(0, 0, 2);
  if (n.has("pool_strings")) n.Unsupported("its sequences are of strings, and Kiln has numbers");
  const std::string mode = n.Text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    n.Invalid("attribute mode is '{}', expected TF, IDF or TFIDF", mode);
  const std::vector<Grams> all = ReadGrams(n);
  if (n.failed()) return;
  int64_t outputs = 0;
  for (const Grams& grams : all)
    for (int64_t output : grams.outputs) outputs = std::max(outputs, output + 1);
  if (outputs == 0) return n.Invalid("it counts nothing");
  const Tensor& input = n.input(0);
  const Tensor x = n.Cast(n.Reshape(input, {input.rank() < 2 ? 1 : input.dim(0),
                                            input.rank() == 0 ? 1 : input.shape().back()}),
                          ir::kInt64);
  const Tensor y = Weighted(n, CountAll(n, x, all, outputs), mode, outputs);
  n.SetOutput(input.rank() < 2 ? n.Reshape(y, {outputs}) : y);
}

}  // namespace

std::vector<Rule> NgramRules() { return {{"TfIdfVectorizer", TfIdf}}; }

}  // namespace kiln::frontend
