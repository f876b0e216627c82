// How an operator of ONNX is written with those of the graph: one rule for all its versions.
//
// The families are files under rules/; a new operator is a function there and a row of the family's
// table.
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
  std::function<void(NodeContext&)> translate;  // sets the outputs, or fails
  std::string domain = {};                      // of ONNX itself: ""
};

// One call per family file; the registry puts them together.
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

// The rule of an operator, or null. Any thread.
const Rule* FindRule(std::string_view domain, std::string_view op);

}  // namespace kiln::frontend
