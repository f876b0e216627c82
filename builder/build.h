// One build, from text to artifact, in the calling process: parse, replay, lower, generate,
// compile.
//
// A compiler that crashes takes the calling process with it, so services call this in a child
// (child.h). One call at a time per process. Cost: 10 ms to seconds, almost all of it LLVM's.
#pragma once

#include "base/status.h"
#include "proto/builder.pb.h"

namespace kiln::builder {

struct BuildOutcome {
  v1::BuildReply reply;
  // True if the same request gives the same reply whenever it is built, so that the reply may be
  // kept. False for crashes, time-outs and refusals of the system.
  bool repeatable = true;
};

// Builds the request's program. A candidate that fails is an OK outcome whose reply has an error
// kind:
//   INSTANTIATION_ERROR   the steps do not parse, replay or lower
//   COMPILE_HOST_ERROR    the code generator or the linker refused
// A request with `source_only` is not compiled: the reply has the source, and the artifact no
// binary. Hand-written kernels have no such reply.
// A status is the requester's fault:
//   InvalidArgument   the DAG, the target, the fault or `source_only` is not valid
//   Unimplemented     no code generator for this target here
// FAULT_COMPILER_CRASH aborts this process and FAULT_COMPILER_HANG never returns. The request's
// limits are ignored here, because the caller applies them from outside.
StatusOr<BuildOutcome> Build(const v1::BuildRequest& request);

}  // namespace kiln::builder
