// Specializes hand-written kernels for a build: a text with its source and values for its
// parameters become the code to compile.
#pragma once

#include "base/status.h"
#include "compiler/codegen/backend.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/specialization.h"
#include "compiler/target/target.h"
#include "proto/builder.pb.h"

namespace kiln::builder {

// Returns whether the request is for a kernel that a person wrote, and not for loops. That is so if
// it has a kernel with values, or asks for the reference kernel of a kernel that has one.
// InvalidArgument: the kernel's text is not valid, or there are values without a kernel.
StatusOr<bool> IsHandwritten(const v1::BuildRequest& request);

// Specializes a request for which IsHandwritten is true. Errors are the candidate's: values that
// the kernel does not have, or a launch that makes no sense with them or that the device refuses.
StatusOr<handwritten::Specialization> SpecializeRequest(const v1::BuildRequest& request,
                                                        const dag::Dag& dag,
                                                        const target::HardwareParams& hardware);

}  // namespace kiln::builder
