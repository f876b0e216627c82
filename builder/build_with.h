// A build by given code generators (build.h is by all that there are).
#pragma once

#include "base/status.h"
#include "builder/build.h"
#include "compiler/codegen/backend.h"

namespace kiln::builder {

// As Build, for targets of these kinds alone.
StatusOr<BuildOutcome> BuildWith(codegen::Backends backends, const v1::BuildRequest& request);

}  // namespace kiln::builder
