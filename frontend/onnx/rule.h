// Translation of an ONNX operator into operators of the graph: one rule for all its versions.
//
// The families are files under rules/. A new operator is a function in such a file, and a row of
// the family's table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/node_context.h"

namespace kiln::frontend {

struct Rule {
  std::string op;
  // Sets the outputs, or fails.
  std::function<void(NodeContext&)> translate;
  // "" for ONNX itself.
  std::string domain = {};
};

// Each family file defines one of these; the registry joins them.
std::vector<Rule> ElementwiseRules();
std::vector<Rule> ConstantRules();
std::vector<Rule> ConvolutionRules();
std::vector<Rule> PoolRules();
std::vector<Rule> ProductRules();
std::vector<Rule> EinsumRules();
std::vector<Rule> ReductionRules();
std::vector<Rule> NormalizationRules();
std::vector<Rule> SoftmaxRules();
std::vector<Rule> LossRules();
std::vector<Rule> ShapeRules();
std::vector<Rule> MovementRules();
std::vector<Rule> PadRules();
std::vector<Rule> IndexingRules();
std::vector<Rule> SelectionRules();
std::vector<Rule> ResizeRules();
std::vector<Rule> GridRules();
std::vector<Rule> RecurrentRules();
std::vector<Rule> QuantizationRules();
std::vector<Rule> AttentionRules();
std::vector<Rule> SignalRules();
std::vector<Rule> ControlRules();

// Returns the rule of an operator, or null. Any thread may call it.
const Rule* FindRule(std::string_view domain, std::string_view op);

}  // namespace kiln::frontend
