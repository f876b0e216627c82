// Families of rules beside those of rule.h, one call per file.
#pragma once

#include <vector>

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

std::vector<Rule> StateRules();        // states.cc
std::vector<Rule> SampleRules();       // samples.cc
std::vector<Rule> DeterminantRules();  // determinants.cc
std::vector<Rule> NgramRules();        // ngrams.cc
std::vector<Rule> BoxRules();          // boxes.cc

}  // namespace kiln::frontend
