// Attributes in the text form of a computation (docs/text-form.md).
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/lexer.h"

namespace kiln::dag {

// One attribute of an operator, from its @ on, into `attrs`. Whether the operator has what it names
// is not known here.
Status ParseAttribute(ir::TokenStream& tokens, Attrs& attrs);

// (LOW, HIGH) of a @range.
Status ParseRange(ir::TokenStream& tokens, double& low, double& high);

}  // namespace kiln::dag
