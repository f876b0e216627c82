// Families of rules beside those of rule.h. Each is defined in a file of its own.
#pragma once

#include <vector>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

// Defined in states.cc.
std::vector<Rule> StateRules();
// Defined in samples.cc.
std::vector<Rule> SampleRules();
// Defined in determinants.cc.
std::vector<Rule> DeterminantRules();
// Defined in ngrams.cc.
std::vector<Rule> NgramRules();
// Defined in boxes.cc.
std::vector<Rule> BoxRules();

}  // namespace kiln::frontend
