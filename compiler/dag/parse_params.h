// The values that are given to a text's params (docs/text-form.md).
//
// Pure functions.
#pragma once

#include <span>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "compiler/ir/lexer.h"

namespace kiln::dag {

// Checks that all params of the text have values and that all values are for params of it. The
// error names all missing values at once. `tokens` stand at the beginning of the text.
Status CheckParams(const ir::TokenStream& tokens, std::span<const ParamValue> params);

}  // namespace kiln::dag
