// Every value of the old graph has one or two stand-ins in the new one: one with its axes
// unchanged, one with the channels last. A node makes one of them; the other one is a transpose,
// made when it is first needed.
#include "graph/passes/channels_last.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

constexpr std::array kProducts = {"conv", "depthwise_conv", "conv_transpose"};
constexpr std::array kPools = {"max_pool",        "avg_pool",      "global_avg_pool",
                               "global_max_pool", "instance_norm", "group_norm"};

template <size_t n>
bool IsOneOf(const Node& node, const std::array<const char*, n>& names) {
  return std::ranges::find(names, node.op->name) != names.end();
}

// Returns the axes of a tensor whose second axis goes to the end.
std::vector<int64_t> ToLast(int rank) {
  std::vector<int64_t> order = {0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}
// Returns the axes that undo ToLast.
std::vector<int64_t> FromLast(int rank) {
  std::vector<int64_t> order = {0, rank - 1};
  for (int d = 1; d < rank - 1; ++d) order.push_back(d);
  return order;
}
// Returns the new position of an axis.
int64_t MovedAxis(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}
// Returns the axes of [CO, CI, K...] or [C, M, K...] that put the kernel first.
std::vector<int64_t> KernelFirst(int rank) {
  std::vector<int64_t> order;
  for (int d = 2; d < rank; ++d) order.push_back(d);
  return order;
}

class Conversion {
 public:
  explicit Conversion(const Graph& graph) : graph_(graph), r_(graph) {}

  StatusOr<Graph> Run() {
    for (int i = 0; i < graph_.num_nodes(); ++i) KILN_RETURN_IF_ERROR(Visit(i));
    for (ValueId id : graph_.outputs()) KILN_RETURN_IF_ERROR(InOriginalLayout(id).status());
    return r_.Finish();
  }

 private:
  int RankOf(ValueId id) const { return graph_.value(id).type.rank(); }

  Status Visit(int i) {
    const Node& node = graph_.node(i);
    if (IsOneOf(node, kProducts) && IntOf(node, "channels_last") == 0) return Product(node);
    if (IsOneOf(node, kPools) && IntOf(node, "channels_last") == 0) return Pool(node);
    if (FollowsItsInputs(node)) return Elementwise(node);
    if (const auto moved = MovedAttributes(node)) return Moved(node, *moved);
    for (ValueId id : node.inputs) {
      if (id != kAbsent) KILN_RETURN_IF_ERROR(InOriginalLayout(id).status());
    }
    return r_.Copy(i);
  }

  // Returns whether the node is elementwise over images of which at least one exists with the
  // channels last. All inputs must have the result's rank, or one element.
  bool FollowsItsInputs(const Node& node) const {
    if (node.op->pattern > OpPattern::kBroadcast || node.op->name == "batch_norm" ||
        node.op->is_view)
      return false;
    const int rank = RankOf(node.outputs[0]);
    bool any = false;
    for (ValueId id : node.inputs) {
      if (id == kAbsent) continue;
      any |= last_.contains(id);
      if (RankOf(id) != rank && graph_.value(id).type.num_elements() != 1 &&
          graph_.value(id).constant == nullptr)
        return false;
    }
    return any && rank >= 3;
  }

  // Returns the attributes of a node of one image with the channels last, if that is possible.
  std::optional<Attributes> MovedAttributes(const Node& node) const {
    const int rank = RankOf(node.outputs[0]);
    const bool any = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return id != kAbsent && last_.contains(id); });
    if (!any || rank < 3) return std::nullopt;
    Attributes attributes = node.attributes;
    const auto move_lists = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) {
        auto& list = std::get<std::vector<int64_t>>(attributes.at(name));
        if (static_cast<int>(list.size()) != rank) continue;
        std::vector<int64_t> moved;
        for (int64_t axis : ToLast(rank)) moved.push_back(list[static_cast<size_t>(axis)]);
        list = std::move(moved);
      }
    };
    if (node.op->name == "pad") {
      move_lists({"before", "after"});
    } else if (node.op->name == "slice") {
      move_lists({"begin", "extents", "strides"});
    } else if (node.op->name == "concat" || node.op->name == "batch_norm") {
      attributes["axis"] = MovedAxis(IntOf(node, "axis"), rank);
    } else if (node.op->name.starts_with("reduce_") && IntOf(node, "keep_dims") != 0) {
      auto& axes = std::get<std::vector<int64_t>>(attributes.at("axes"));
      for (int64_t& axis : axes) axis = MovedAxis(axis, rank);
    } else {
      return std::nullopt;
    }
    return attributes;
  }

  StatusOr<ValueId> Transposed(ValueId x, std::vector<int64_t> order) {
    const std::string name = r_.builder().value(x).name;
    return r_.builder().AddOne("transpose", {x}, {{"axes", std::move(order)}}, name);
  }

  StatusOr<ValueId> InOriginalLayout(ValueId id) {
    if (!last_.contains(id) || as_it_was_.contains(id)) return r_.at(id);
    KILN_ASSIGN_OR_RETURN(const ValueId now, Transposed(last_.at(id), FromLast(RankOf(id))));
    as_it_was_[id] = now;
    r_.Map(id, now);
    return now;
  }

  StatusOr<ValueId> Last(ValueId id) {
    if (const auto found = last_.find(id); found != last_.end()) return found->second;
    KILN_ASSIGN_OR_RETURN(const ValueId now, Transposed(r_.at(id), ToLast(RankOf(id))));
    as_it_was_[id] = r_.at(id);
    last_[id] = now;
    return now;
  }

  // Returns an operand of an elementwise node whose result has this rank.
  StatusOr<ValueId> LastOperand(ValueId id, int rank) {
    if (graph_.value(id).type.num_elements() == 1 && !last_.contains(id)) return r_.at(id);
    if (RankOf(id) == rank) return Last(id);
    std::vector<int64_t> shape(static_cast<size_t>(rank - RankOf(id)), 1);
    const std::vector<int64_t>& own = graph_.value(id).type.shape;
    shape.insert(shape.end(), own.begin(), own.end());
    KILN_ASSIGN_OR_RETURN(const ValueId wide,
                          r_.builder().AddOne("reshape", {r_.at(id)}, {{"shape", shape}}));
    return Transposed(wide, ToLast(rank));
  }

  Status Finish(const Node& node, std::vector<ValueId> inputs, Attributes attributes) {
    GraphBuilder::NodeLabels labels{.names = {}, .origin = node.origin};
    for (ValueId id : node.outputs) labels.names.push_back(graph_.value(id).name);
    KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          r_.builder().Add(node.op->name, std::move(inputs), std::move(attributes),
                                           std::move(labels)));
    for (size_t k = 0; k < outputs.size(); ++k) last_[node.outputs[k]] = outputs[k];
    return OkStatus();
  }

  Status Product(const Node& node) {
    const int rank = RankOf(node.inputs[0]);
    KILN_ASSIGN_OR_RETURN(const ValueId data, Last(node.inputs[0]));
    KILN_ASSIGN_OR_RETURN(const ValueId old_weights, InOriginalLayout(node.inputs[1]));
    std::vector<int64_t> order = KernelFirst(rank);
    // [CO, CI] becomes [CI, CO].
    const bool swaps = node.op->name == "conv";
    order.push_back(swaps ? 1 : 0);
    order.push_back(swaps ? 0 : 1);
    KILN_ASSIGN_OR_RETURN(const ValueId weights, Transposed(old_weights, std::move(order)));
    Attributes attributes = node.attributes;
    attributes["channels_last"] = int64_t{1};
    return Finish(node, {data, weights}, std::move(attributes));
  }

  Status Pool(const Node& node) {
    std::vector<ValueId> inputs = {kAbsent};
    KILN_ASSIGN_OR_RETURN(inputs[0], Last(node.inputs[0]));
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const ValueId vector, InOriginalLayout(node.inputs[i]));
      inputs.push_back(vector);
    }
    Attributes attributes = node.attributes;
    attributes["channels_last"] = int64_t{1};
    return Finish(node, std::move(inputs), std::move(attributes));
  }

  Status Elementwise(const Node& node) {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(kAbsent);
      if (id == kAbsent) continue;
      KILN_ASSIGN_OR_RETURN(inputs.back(), LastOperand(id, RankOf(node.outputs[0])));
    }
    return Finish(node, std::move(inputs), node.attributes);
  }

  // All inputs are images, apart from the vectors of a batch_norm.
  Status Moved(const Node& node, Attributes attributes) {
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_vector = node.op->name == "batch_norm" && i > 0;
      KILN_ASSIGN_OR_RETURN(const ValueId input,
                            is_vector ? InOriginalLayout(node.inputs[i]) : Last(node.inputs[i]));
      inputs.push_back(input);
    }
    return Finish(node, std::move(inputs), std::move(attributes));
  }

  const Graph& graph_;
  Rewriter r_;
  // Stand-ins with the channels last.
  std::map<ValueId, ValueId> last_;
  // Stand-ins with unchanged axes, for values that are in `last_` too.
  std::map<ValueId, ValueId> as_it_was_;
};

}  // namespace

StatusOr<Graph> ChannelsLast(const Graph& graph) {
  KILN_ASSIGN_OR_RETURN(const Graph converted, Conversion(graph).Run());
  return WithoutDeadCode(converted);
}

}  // namespace kiln::graph
