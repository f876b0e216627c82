#include "graph/passes/row_norms.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

// A normalisation whose last node is `node`.
struct Norm {
  int node = -1;
  ValueId x = kAbsent, scale = kAbsent, bias = kAbsent;
  int64_t axis = 0;  // the first one that is averaged
  double epsilon = 0;
  bool is_centred = false;
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  // Returns the normalisation whose quotient the node is, with its scale and bias.
  std::optional<Norm> At(int i) const {
    std::optional<Norm> norm = Quotient(graph_.node(i));
    if (!norm) return std::nullopt;
    norm->node = i;
    TakeBehind("mul", norm->scale, *norm);
    if (norm->is_centred && norm->scale != kAbsent) TakeBehind("add", norm->bias, *norm);
    return norm;
  }

 private:
  const std::vector<int64_t>& shape(ValueId id) const { return graph_.value(id).type.shape; }

  // Returns the node of that operator which makes the value; null: another one does.
  const Node* MadeBy(ValueId id, std::string_view op) const {
    const int32_t producer = id == kAbsent ? -1 : graph_.value(id).producer;
    if (producer < 0 || graph_.node(producer).op->name != op) return nullptr;
    return &graph_.node(producer);
  }

  std::optional<double> NumberOf(ValueId id) const {
    const ConstantPtr& constant = graph_.value(id).constant;
    if (constant == nullptr || constant->type().num_elements() != 1) return std::nullopt;
    return constant->At(0);
  }

  // Returns v of the factor that stands beside x in x / sqrt(v), x * reciprocal(sqrt(v)) and
  // x * rsqrt(v). kAbsent: it is none of these.
  ValueId UnderRoot(ValueId factor, bool divides) const {
    if (divides) {
      const Node* root = MadeBy(factor, "sqrt");
      return root == nullptr ? kAbsent : root->inputs[0];
    }
    if (const Node* inverse = MadeBy(factor, "rsqrt")) return inverse->inputs[0];
    if (const Node* inverse = MadeBy(factor, "reciprocal"))
      return UnderRoot(inverse->inputs[0], /*divides=*/true);
    const Node* quotient = MadeBy(factor, "div");
    if (quotient == nullptr || NumberOf(quotient->inputs[0]) != 1) return kAbsent;
    return UnderRoot(quotient->inputs[1], /*divides=*/true);
  }

  std::optional<Norm> Quotient(const Node& node) const {
    const bool divides = node.op->name == "div";
    if (!divides && node.op->name != "mul") return std::nullopt;
    for (const int side : {0, 1}) {
      if (divides && side == 1) break;
      const ValueId x = node.inputs[static_cast<size_t>(side)];
      const ValueId sum = UnderRoot(node.inputs[static_cast<size_t>(1 - side)], divides);
      if (sum == kAbsent || shape(x) != shape(node.outputs[0])) continue;
      if (std::optional<Norm> norm = OfMeanAndEpsilon(x, sum)) return norm;
    }
    return std::nullopt;
  }

  // `sum` is m(x^2) + epsilon.
  std::optional<Norm> OfMeanAndEpsilon(ValueId x, ValueId sum) const {
    const Node* add = MadeBy(sum, "add");
    if (add == nullptr) return std::nullopt;
    for (const int side : {0, 1}) {
      const std::optional<double> epsilon = NumberOf(add->inputs[static_cast<size_t>(side)]);
      const Node* mean = MadeBy(add->inputs[static_cast<size_t>(1 - side)], "reduce_mean");
      if (!epsilon || *epsilon < 0 || mean == nullptr || !IsSquareOf(mean->inputs[0], x)) continue;
      const std::optional<int64_t> axis = LastAxes(*mean);
      if (!axis) continue;
      Norm norm{.x = x, .axis = *axis, .epsilon = *epsilon};
      Centre(norm);
      return norm;
    }
    return std::nullopt;
  }

  bool IsSquareOf(ValueId square, ValueId x) const {
    if (const Node* whole = MadeBy(square, "square")) return whole->inputs[0] == x;
    if (const Node* product = MadeBy(square, "mul"))
      return product->inputs[0] == x && product->inputs[1] == x;
    const Node* power = MadeBy(square, "power");
    return power != nullptr && power->inputs[0] == x && NumberOf(power->inputs[1]) == 2;
  }

  // Returns the first axis of an average over all axes from it on, which stay with extent 1.
  std::optional<int64_t> LastAxes(const Node& mean) const {
    if (std::get<int64_t>(mean.attributes.at("keep_dims")) == 0) return std::nullopt;
    const auto rank = static_cast<int64_t>(shape(mean.inputs[0]).size());
    std::vector<int64_t> axes = std::get<std::vector<int64_t>>(mean.attributes.at("axes"));
    for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
    std::ranges::sort(axes);
    const int64_t first = axes.empty() ? 0 : axes[0];
    for (size_t k = 0; k < axes.size(); ++k) {
      if (axes[k] != first + static_cast<int64_t>(k)) return std::nullopt;
    }
    const bool reach_the_end = axes.empty() || axes.back() == rank - 1;
    return reach_the_end && rank > 0 ? std::optional(first) : std::nullopt;
  }

  // Looks whether x is y - m(y); then the norm is of y.
  void Centre(Norm& norm) const {
    const Node* difference = MadeBy(norm.x, "sub");
    if (difference == nullptr) return;
    const Node* mean = MadeBy(difference->inputs[1], "reduce_mean");
    const ValueId y = difference->inputs[0];
    if (mean == nullptr || mean->inputs[0] != y || LastAxes(*mean) != norm.axis) return;
    norm.x = y;
    norm.is_centred = true;
  }

  // Takes the node behind the norm that multiplies by, or adds, a constant over the last axes.
  void TakeBehind(std::string_view op, ValueId& constant, Norm& norm) const {
    const ValueId result = graph_.node(norm.node).outputs[0];
    if (graph_.is_output(result) || graph_.readers(result).size() != 1) return;
    const int reader = graph_.readers(result)[0];
    const Node& node = graph_.node(reader);
    if (node.op->name != op) return;
    const ValueId other = node.inputs[0] == result ? node.inputs[1] : node.inputs[0];
    if (graph_.value(other).constant == nullptr) return;
    const std::span<const int64_t> inner = std::span(shape(norm.x)).subspan(norm.axis);
    if (shape(other).size() > inner.size()) return;
    for (size_t k = 1; k <= shape(other).size(); ++k) {
      const int64_t extent = shape(other)[shape(other).size() - k];
      if (extent != 1 && extent != inner[inner.size() - k]) return;
    }
    constant = other;
    norm.node = reader;
  }

  const Graph& graph_;
};

}  // namespace

StatusOr<Graph> RowNorms(const Graph& graph) {
  std::vector<std::optional<Norm>> norms(static_cast<size_t>(graph.num_nodes()));
  const Finder finder(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (const std::optional<Norm> norm = finder.At(i))
      norms[static_cast<size_t>(norm->node)] = norm;
  }
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const std::optional<Norm>& norm = norms[static_cast<size_t>(i)];
    if (!norm) {
      KILN_RETURN_IF_ERROR(r.Copy(i));
      continue;
    }
    std::vector<ValueId> inputs = {norm->x};
    if (norm->scale != kAbsent) inputs.push_back(norm->scale);
    if (norm->bias != kAbsent) inputs.push_back(norm->bias);
    const Node& last = graph.node(i);
    KILN_ASSIGN_OR_RETURN(
        const ValueId made,
        r.builder().AddOne(norm->is_centred ? "layer_norm" : "rms_norm", r.AllAt(inputs),
                           {{"axis", norm->axis}, {"epsilon", norm->epsilon}},
                           graph.value(last.outputs[0]).name, last.origin));
    r.Map(last.outputs[0], made);
  }
  KILN_ASSIGN_OR_RETURN(const Graph done, r.Finish());
  return WithoutDeadCode(done);
}

}  // namespace kiln::graph
