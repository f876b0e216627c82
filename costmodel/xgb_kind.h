// The learned model with boosted trees (xgb_model.h) in the table of names, and its parameters by
// name.
#pragma once

#include "costmodel/cost_model_kind.h"

namespace kiln::costmodel {

extern const CostModelKind kXgb;

}  // namespace kiln::costmodel
