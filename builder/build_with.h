// A build by given code generators (build.h uses all code generators of this program).
#pragma once

#include "base/status.h"
#include "builder/build.h"
#include "compiler/codegen/backend.h"

namespace kiln::builder {

// Builds like Build, for targets of these kinds alone.
StatusOr<BuildOutcome> BuildWith(codegen::Backends backends, const v1::BuildRequest& request);

}  // namespace kiln::builder
