// Names that a schedule printed as primitives gives to stages and loops. Identifiers of a
// Python-like text.
#pragma once

#include <string>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// "conv", "data_shared"; a second operator of one name gets "_1" and so on.
std::string StageVar(const State& state, int stage);
// "conv_i_0": the stage's variable and the loop's name.
std::string LoopVar(const State& state, int stage, int loop);
// LoopVar of loops first..first+count-1, separated by ", ".
std::string LoopVars(const State& state, int stage, int first, int count);
// "conv_i, conv_j = s[conv].axes" for a stage with fresh loops; "" when it has none.
std::string DeclareLoops(const State& state, int stage);

}  // namespace kiln::schedule
