// Builds of hand-written kernels: a text with its source, and values for its parameters, to what is
// compiled.
#pragma once

#include "base/status.h"
#include "compiler/codegen/backend.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/specialization.h"
#include "compiler/target/target.h"
#include "proto/builder.pb.h"

namespace kiln::builder {

// Is it for a kernel that a person wrote, and not for loops: one with values, or the reference
// kernel of one that has such a reference. InvalidArgument: the kernel's text is none, or there are
// values for a kernel that is not there.
StatusOr<bool> IsHandwritten(const v1::BuildRequest& request);

// Of a request that is. Errors are the candidate's: values that are not this kernel's, a launch
// that has no meaning with them or that such a device refuses.
StatusOr<handwritten::Specialization> SpecializeRequest(const v1::BuildRequest& request,
                                                        const dag::Dag& dag,
                                                        const target::HardwareParams& hardware);

}  // namespace kiln::builder
