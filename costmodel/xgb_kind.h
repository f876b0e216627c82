// The model that learns with boosted trees (xgb_model.h), by name, and its parameters by theirs.
#pragma once

#include "costmodel/cost_model_kind.h"

namespace kiln::costmodel {

extern const CostModelKind kXgb;

}  // namespace kiln::costmodel
