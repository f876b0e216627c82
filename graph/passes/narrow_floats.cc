#include "graph/passes/narrow_floats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/scalar.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/fold_constants.h"
#include "graph/passes/fold_scales.h"
#include "graph/passes/row_norms.h"
#include "graph/passes/simplify.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

constexpr std::array kWide = {"reduce_sum", "reduce_prod", "reduce_mean", "cumsum",
                              "cumprod",    "power",       "square",      "exp",
                              "log",        "sinh",        "cosh",        "tan"};
constexpr std::array kOfPositions = {"sin", "cos"};

bool IsOneOf(const Node& node, const auto& names) {
  return std::ranges::find(names, node.op->name) != names.end();
}

bool IsLight(OpPattern pattern) {
  return pattern == OpPattern::kElementwise || pattern == OpPattern::kBroadcast ||
         pattern == OpPattern::kInjective;
}

// Returns whether a finite element is beyond the largest one of the type.
bool IsBeyond(const Constant& constant, double largest) {
  if (const std::optional<RandomElements>& random = constant.random())
    return std::max(std::abs(random->low), std::abs(random->high)) > largest;
  for (int64_t i = 0, n = constant.type().num_elements(); i < n; ++i) {
    const double magnitude = std::abs(constant.At(i));
    if (magnitude > largest && std::isfinite(magnitude)) return true;
  }
  return false;
}

ConstantPtr Rounded(const ConstantPtr& constant, ir::Type type) {
  return Constant::Deferred({type, constant->type().shape}, [constant, type] {
    ir::NDArray rounded(type, constant->type().shape);
    for (int64_t i = 0; i < rounded.num_elements(); ++i) rounded.SetDouble(i, constant->At(i));
    return rounded;
  });
}

class Narrowing {
 public:
  Narrowing(const Graph& graph, ir::Type type)
      : graph_(graph),
        type_(type),
        largest_(ir::LargestFinite(type)),
        is_wide_(static_cast<size_t>(graph.num_nodes())),
        values_(graph.values().size()) {}

  StatusOr<NarrowedNetwork> Run() {
    FindConstants();
    FindWide();
    for (ValueId id : graph_.inputs()) {
      KILN_ASSIGN_OR_RETURN(of(id).wide, builder_.Input(graph_.value(id).name, TypeOf(id)));
    }
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      KILN_RETURN_IF_ERROR(is_wide_[static_cast<size_t>(i)] ? AddWide(i) : AddNarrow(i));
    }
    for (ValueId id : graph_.outputs()) {
      KILN_ASSIGN_OR_RETURN(const ValueId output, Wide(id));
      builder_.Output(output);
    }
    KILN_ASSIGN_OR_RETURN(result_.graph, builder_.Build());
    return std::move(result_);
  }

 private:
  // The values of the new graph that stand for an old one; kAbsent: there is none yet.
  struct Now {
    ValueId wide = kAbsent, narrow = kAbsent;
    // Whether the value, or a constant that it was made of by wide nodes, may be beyond the range.
    bool is_beyond = false;
  };

  Now& of(ValueId id) { return values_[static_cast<size_t>(id)]; }
  const TensorType& TypeOf(ValueId id) const { return graph_.value(id).type; }
  bool IsFloat32(ValueId id) const { return id != kAbsent && TypeOf(id).type == ir::kFloat32; }
  bool MakesFloat32(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return IsFloat32(id); });
  }
  bool ReadsFloat32(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId id) { return IsFloat32(id); });
  }

  void FindConstants() {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Value& value = graph_.values()[i];
      values_[i].is_beyond = value.constant != nullptr && value.type.type == ir::kFloat32 &&
                             IsBeyond(*value.constant, largest_);
    }
  }

  // Marks the nodes that stay float32, and those that make none.
  void FindWide() {
    std::vector<bool> of_positions(values_.size());
    for (int i = graph_.num_nodes() - 1; i >= 0; --i) {
      const Node& node = graph_.node(i);
      const bool is_of_positions =
          IsOneOf(node, kOfPositions) || std::ranges::any_of(node.outputs, [&](ValueId id) {
            return of_positions[static_cast<size_t>(id)];
          });
      if (!is_of_positions) continue;
      is_wide_[static_cast<size_t>(i)] = true;
      for (ValueId id : node.inputs) {
        if (id != kAbsent) of_positions[static_cast<size_t>(id)] = true;
      }
    }
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      const Node& node = graph_.node(i);
      if (!is_wide_[static_cast<size_t>(i)]) is_wide_[static_cast<size_t>(i)] = IsWide(node);
      if (!is_wide_[static_cast<size_t>(i)]) continue;
      const bool is_beyond = IsLight(node.op->pattern) && ReadsBeyond(node);
      for (ValueId id : node.outputs) of(id).is_beyond |= is_beyond && IsFloat32(id);
    }
  }

  bool ReadsBeyond(const Node& node) {
    return std::ranges::any_of(node.inputs,
                               [&](ValueId id) { return id != kAbsent && of(id).is_beyond; });
  }

  // The nodes before it are known.
  bool IsWide(const Node& node) {
    if (!MakesFloat32(node) && !IsComparison(node)) return true;
    if (!ReadsFloat32(node)) return true;
    if (IsOneOf(node, kWide) || IsSquare(node) || node.attributes.contains("to")) return true;
    const bool reads_constant_beyond = std::ranges::any_of(node.inputs, [&](ValueId id) {
      return IsFloat32(id) && graph_.value(id).constant != nullptr && of(id).is_beyond;
    });
    if (reads_constant_beyond) return true;
    if (IsLight(node.op->pattern) && ReadsWideAlone(node)) return true;
    return !HasNarrowForm(node);
  }

  static bool IsSquare(const Node& node) {
    return node.op->name == "mul" && node.inputs[0] == node.inputs[1];
  }

  // A comparison of a narrow value is narrow: the value needs no conversion.
  bool IsComparison(const Node& node) const {
    return IsLight(node.op->pattern) && !node.attributes.contains("to") &&
           std::ranges::all_of(node.outputs,
                               [&](ValueId id) { return TypeOf(id).type == ir::kBool; });
  }

  bool ReadsWideAlone(const Node& node) const {
    bool reads_wide = false;
    for (ValueId id : node.inputs) {
      if (!IsFloat32(id) || graph_.value(id).constant != nullptr) continue;
      const int32_t producer = graph_.value(id).producer;
      if (producer < 0 || !is_wide_[static_cast<size_t>(producer)]) return false;
      reads_wide = true;
    }
    return reads_wide;
  }

  bool HasNarrowForm(const Node& node) const {
    std::vector<std::optional<TensorType>> inputs;
    for (ValueId id : node.inputs) {
      inputs.emplace_back();
      if (id == kAbsent) continue;
      inputs.back() = TypeOf(id);
      if (IsFloat32(id)) inputs.back()->type = type_;
    }
    const auto types = InferTypes(*node.op, node.attributes, inputs);
    if (!types.ok() || types->size() != node.outputs.size()) return false;
    for (size_t i = 0; i < types->size(); ++i) {
      TensorType expected = TypeOf(node.outputs[i]);
      if (expected.type == ir::kFloat32) expected.type = type_;
      if ((*types)[i] != expected) return false;
    }
    return true;
  }

  StatusOr<ValueId> Wide(ValueId id) {
    Now& now = of(id);
    if (now.wide != kAbsent) return now.wide;
    const Value& value = graph_.value(id);
    if (value.constant != nullptr) return now.wide = builder_.Add(value.name, value.constant);
    KILN_ASSIGN_OR_RETURN(now.wide,
                          builder_.AddOne("cast", {now.narrow}, {{"to", std::string("float32")}},
                                          graph_.is_output(id) ? value.name : ""));
    return now.wide;
  }

  StatusOr<ValueId> Narrow(ValueId id) {
    Now& now = of(id);
    if (now.narrow != kAbsent) return now.narrow;
    const Value& value = graph_.value(id);
    if (value.constant != nullptr)
      return now.narrow = builder_.Add(graph_.is_output(id) ? "" : value.name,
                                       Rounded(value.constant, type_));
    ValueId limited = now.wide;
    if (now.is_beyond) {
      KILN_ASSIGN_OR_RETURN(
          limited, builder_.AddOne("clip", {now.wide}, {{"min", -largest_}, {"max", largest_}}));
    }
    KILN_ASSIGN_OR_RETURN(
        now.narrow, builder_.AddOne("cast", {limited}, {{"to", std::string(ir::TypeName(type_))}}));
    return now.narrow;
  }

  Status AddWide(int i) {
    const Node& node = graph_.node(i);
    if (MakesFloat32(node)) ++result_.wide[node.op->name];
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(kAbsent);
      if (id == kAbsent) continue;
      KILN_ASSIGN_OR_RETURN(inputs.back(), Wide(id));
    }
    KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                          builder_.Copy(graph_, node, std::move(inputs)));
    for (size_t k = 0; k < made.size(); ++k) of(node.outputs[k]).wide = made[k];
    return OkStatus();
  }

  Status AddNarrow(int i) {
    const Node& node = graph_.node(i);
    ++result_.narrow;
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(kAbsent);
      if (id == kAbsent) continue;
      KILN_ASSIGN_OR_RETURN(inputs.back(), IsFloat32(id) ? Narrow(id) : Wide(id));
    }
    std::vector<std::string> names;
    for (ValueId id : node.outputs)
      names.push_back(graph_.is_output(id) && IsFloat32(id) ? "" : graph_.value(id).name);
    KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                          builder_.Add(node.op->name, std::move(inputs), node.attributes,
                                       {.names = std::move(names), .origin = node.origin}));
    for (size_t k = 0; k < made.size(); ++k)
      (IsFloat32(node.outputs[k]) ? of(node.outputs[k]).narrow : of(node.outputs[k]).wide) =
          made[k];
    return OkStatus();
  }

  const Graph& graph_;
  const ir::Type type_;
  const double largest_;
  std::vector<bool> is_wide_;  // by node
  std::vector<Now> values_;
  GraphBuilder builder_;
  NarrowedNetwork result_;
};

}  // namespace

StatusOr<NarrowedNetwork> NarrowFloats(const Graph& network, ir::Type type) {
  if (type != ir::kFloat16 && type != ir::kBFloat16) {
    return InvalidArgument("a network of float32 as {}, expected float16 or bfloat16",
                           ir::TypeName(type));
  }
  Graph graph = network;
  for (const auto pass : {WithoutDeadCode, FoldConstants, Simplify, RowNorms, FoldBatchNorm,
                          FoldConstants, FoldScales, FoldConstants}) {
    KILN_ASSIGN_OR_RETURN(graph, pass(graph));
  }
  return Narrowing(graph, type).Run();
}

}  // namespace kiln::graph
