#include <algorithm>
#include <map>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Of ONNX's own domain.
constexpr std::string_view kKeepNarrow[] = {
    "Compress",        "Concat",   "DepthToSpace", "Expand",  "Flatten", "Gather",
    "GatherElements",  "GatherND", "Identity",     "MaxPool", "Pad",     "Reshape",
    "ReverseSequence", "Slice",    "SpaceToDepth", "Split",   "Squeeze", "Tile",
    "Transpose",       "Unsqueeze"};
constexpr std::string_view kTakeNarrow[] = {
    "Cast",          "CastLike",    "ConvInteger",   "DequantizeLinear", "DynamicQuantizeLinear",
    "MatMulInteger", "QLinearConv", "QLinearMatMul", "QuantizeLinear",   "Shape",
    "Size"};

NarrowInputs NarrowInputsOf(const Rule& rule) {
  if (!rule.domain.empty()) return NarrowInputs::kRefuses;
  const auto is_in = [&](const auto& list) {
    return std::ranges::find(list, std::string_view(rule.op)) != std::end(list);
  };
  if (is_in(kKeepNarrow)) return NarrowInputs::kKeeps;
  return is_in(kTakeNarrow) ? NarrowInputs::kTakes : NarrowInputs::kRefuses;
}

using Rules = std::map<std::pair<std::string, std::string>, Rule>;

Rules CollectRules() {
  Rules rules;
  for (auto* family :
       {ElementwiseRules, ConstantRules,  ConvolutionRules,   PoolRules,         ProductRules,
        EinsumRules,      ReductionRules, NormalizationRules, SoftmaxRules,      LossRules,
        ShapeRules,       MovementRules,  PadRules,           IndexingRules,     SelectionRules,
        ResizeRules,      GridRules,      RecurrentRules,     QuantizationRules, AttentionRules,
        SignalRules,      ControlRules}) {
    for (Rule& rule : family()) {
      const auto key = std::pair(rule.domain, rule.op);
      rule.narrow = NarrowInputsOf(rule);
      const bool is_new = rules.emplace(key, std::move(rule)).second;
      KILN_CHECK(is_new, "two rules for {}", key.second);
    }
  }
  return rules;
}

const Rules& AllRules() {
  static const Rules rules = CollectRules();
  return rules;
}

}  // namespace

const Rule* FindRule(std::string_view domain, std::string_view op) {
  const auto it = AllRules().find(std::pair(std::string(domain), std::string(op)));
  return it == AllRules().end() ? nullptr : &it->second;
}

}  // namespace kiln::frontend
