#include "graph/passes/merge_products.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

// x W, or x W + b with a number for each column.
struct Projection {
  int product = 0;
  // -1: there is no add.
  int add = -1;
  ValueId bias = kAbsent;
  ValueId result = kAbsent;
};

// Products are merged if all of this is equal: the input, whether the weights are transposed,
// whether there is a bias, and the types.
using Kind = std::tuple<ValueId, int64_t, bool, ir::TypeCode, int>;

bool IsMove(const Node& node) {
  static constexpr std::array kMoves = {"reshape", "transpose", "slice"};
  return std::ranges::find(kMoves, node.op->name) != kMoves.end();
}

class ProductMerging {
 public:
  explicit ProductMerging(const Graph& graph) : graph_(graph), r_(graph) {}

  StatusOr<Graph> Run() {
    FindGroups();
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (const auto group = group_of_first_.find(i); group != group_of_first_.end()) {
        KILN_RETURN_IF_ERROR(Merge(*group->second));
      } else if (!is_merged_[static_cast<size_t>(i)]) {
        KILN_RETURN_IF_ERROR(r_.Copy(i));
      }
    }
    return r_.Finish();
  }

 private:
  const TensorType& type(ValueId id) const { return graph_.value(id).type; }

  void FindGroups() {
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      const std::optional<Projection> projection = AsProjection(i);
      if (projection) groups_[KindOf(*projection)].push_back(*projection);
    }
    is_merged_.resize(static_cast<size_t>(graph_.num_nodes()));
    for (const auto& [kind, group] : groups_) {
      if (group.size() < 2) continue;
      group_of_first_[group[0].product] = &group;
      for (const Projection& projection : group) {
        is_merged_[static_cast<size_t>(projection.product)] = true;
        if (projection.add >= 0) is_merged_[static_cast<size_t>(projection.add)] = true;
      }
    }
  }

  std::optional<Projection> AsProjection(int i) const {
    const Node& node = graph_.node(i);
    if (node.op->name != "matmul" || graph_.value(node.inputs[0]).constant != nullptr ||
        graph_.value(node.inputs[1]).constant == nullptr || type(node.inputs[1]).rank() != 2)
      return std::nullopt;
    Projection projection{.product = i, .result = node.outputs[0]};
    AddBias(projection);
    const std::vector<int32_t>& readers = graph_.readers(projection.result);
    const bool is_moved =
        !readers.empty() && !graph_.is_output(projection.result) &&
        std::ranges::all_of(readers, [&](int reader) { return IsMove(graph_.node(reader)); });
    return is_moved ? std::optional(projection) : std::nullopt;
  }

  // Finds the add of a bias that alone reads the product.
  void AddBias(Projection& projection) const {
    const ValueId made = projection.result;
    if (graph_.is_output(made) || graph_.readers(made).size() != 1) return;
    const int reader = graph_.readers(made)[0];
    const Node& add = graph_.node(reader);
    if (add.op->name != "add" || add.inputs[0] == add.inputs[1]) return;
    const ValueId bias = add.inputs[add.inputs[0] == made ? 1 : 0];
    if (graph_.value(bias).constant == nullptr || type(add.outputs[0]) != type(made)) return;
    const int last = type(made).rank() - 1;
    const auto vector = ChannelVectorOf(type(bias), type(made).rank());
    if (!vector || vector->axis != last ||
        type(bias).num_elements() != type(made).shape[static_cast<size_t>(last)])
      return;
    projection = {projection.product, reader, bias, add.outputs[0]};
  }

  Kind KindOf(const Projection& projection) const {
    const Node& node = graph_.node(projection.product);
    const ir::Type weights = type(node.inputs[1]).type;
    return {node.inputs[0], IntOf(node, "transpose_b"), projection.add >= 0, weights.code,
            weights.bits};
  }

  int64_t ColumnsOf(const Projection& projection) const {
    return type(projection.result).shape.back();
  }

  Status Merge(const std::vector<Projection>& group) {
    GraphBuilder& b = r_.builder();
    const Node& first = graph_.node(group[0].product);
    std::vector<ValueId> weights;
    for (const Projection& projection : group)
      weights.push_back(r_.at(graph_.node(projection.product).inputs[1]));
    const int64_t axis = IntOf(first, "transpose_b") != 0 ? 0 : 1;
    KILN_ASSIGN_OR_RETURN(const ValueId all_weights,
                          b.AddOne("concat", std::move(weights), {{"axis", axis}}));
    KILN_ASSIGN_OR_RETURN(ValueId whole, b.AddOne("matmul", {r_.at(first.inputs[0]), all_weights},
                                                  first.attributes, {}, first.origin));
    if (group[0].add >= 0) {
      KILN_ASSIGN_OR_RETURN(const ValueId bias, AllBiases(group));
      KILN_ASSIGN_OR_RETURN(whole, b.AddOne("add", {whole, bias}));
    }
    return TakeParts(group, whole);
  }

  StatusOr<ValueId> AllBiases(const std::vector<Projection>& group) {
    std::vector<ValueId> biases;
    for (const Projection& projection : group) {
      KILN_ASSIGN_OR_RETURN(
          const ValueId vector,
          r_.builder().AddOne("reshape", {r_.at(projection.bias)},
                              {{"shape", std::vector<int64_t>{ColumnsOf(projection)}}}));
      biases.push_back(vector);
    }
    return r_.builder().AddOne("concat", std::move(biases), {{"axis", int64_t{0}}});
  }

  Status TakeParts(const std::vector<Projection>& group, ValueId whole) {
    std::vector<int64_t> begin(type(group[0].result).shape.size(), 0);
    for (const Projection& projection : group) {
      const Value& part = graph_.value(projection.result);
      KILN_ASSIGN_OR_RETURN(
          const ValueId slice,
          r_.builder().AddOne("slice", {whole}, {{"begin", begin}, {"extents", part.type.shape}},
                              part.name));
      r_.Map(projection.result, slice);
      begin.back() += ColumnsOf(projection);
    }
    return OkStatus();
  }

  const Graph& graph_;
  Rewriter r_;
  std::map<Kind, std::vector<Projection>> groups_;
  // Groups by their first products.
  std::map<int, const std::vector<Projection>*> group_of_first_;
  // Indexed by node.
  std::vector<bool> is_merged_;
};

}  // namespace

StatusOr<Graph> MergeProducts(const Graph& graph) { return ProductMerging(graph).Run(); }

}  // namespace kiln::graph
