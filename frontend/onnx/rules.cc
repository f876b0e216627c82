#include <map>

#include "frontend/onnx/rules/families.h"

namespace kiln::frontend {
namespace {

using Rules = std::map<std::pair<std::string, std::string>, Rule>;

Rules CollectRules() {
  Rules rules;
  for (auto* family :
       {ElementwiseRules, ConstantRules,  ConvolutionRules,   PoolRules,         ProductRules,
        EinsumRules,      ReductionRules, NormalizationRules, SoftmaxRules,      LossRules,
        ShapeRules,       MovementRules,  PadRules,           IndexingRules,     SelectionRules,
        ResizeRules,      GridRules,      RecurrentRules,     QuantizationRules, AttentionRules,
        SignalRules,      ControlRules,   StateRules,         SampleRules,       DeterminantRules,
        NgramRules,       BoxRules}) {
    for (Rule& rule : family()) {
      const auto key = std::pair(rule.domain, rule.op);
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
