// The values that a text's params are given (docs/text-form.md).
//
// Pure functions.
#pragma once

#include <span>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "compiler/ir/lexer.h"

namespace kiln::dag {

// All params of the text have values, and all values are of params of it; what is missing is said at
// once. `tokens` stand at the beginning of the text.
Status CheckParams(const ir::TokenStream& tokens, std::span<const ParamValue> params);

}  // namespace kiln::dag
