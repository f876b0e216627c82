// Attributes in the text form of a computation (docs/text-form.md).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/lexer.h"

namespace kiln::dag {

// Parses one attribute of an operator, from its @ on, into `attrs`. Does not check that the
// operator has the axes or inputs that it names.
Status ParseAttribute(ir::TokenStream& tokens, Attrs& attrs);

// Parses (LOW, HIGH) of a @range, and (LOW, HIGH, RUN) unless `run` is null.
Status ParseRange(ir::TokenStream& tokens, double& low, double& high, int64_t* run = nullptr);

}  // namespace kiln::dag
