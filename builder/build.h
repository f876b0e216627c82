// One build, from text to artifact, in the calling process: parse, replay, lower, generate,
// compile.
//
// Whatever the compiler does to its process it does to the caller's: services call this in a child
// (child.h). One call at a time per process. Cost: 10 ms to seconds, almost all of it LLVM's.
#pragma once

#include "base/status.h"
#include "proto/builder.pb.h"

namespace kiln::builder {

struct BuildOutcome {
  v1::BuildReply reply;
  // The same request gives the same reply whenever it is built: it may be kept. Not so for crashes,
  // time-outs and what the system refused.
  bool repeatable = true;
};

// A candidate that fails is an OK outcome whose reply has an error kind:
//   INSTANTIATION_ERROR   the steps do not parse, replay or lower
//   COMPILE_HOST_ERROR    the code generator or the linker refused
// A status is the requester's fault:
//   InvalidArgument   the DAG, the target or the fault is none
//   Unimplemented     no code generator for this target here
// FAULT_COMPILER_CRASH aborts this process and FAULT_COMPILER_HANG never returns. Of the request's
// limits nothing is looked at: they are set from outside.
StatusOr<BuildOutcome> Build(const v1::BuildRequest& request);

}  // namespace kiln::builder
