// Compiles a hand-written kernel that is ready for its values (handwritten/specialization.h) to the
// form that a device loads: a cubin by NVRTC, or a shared object of proto/cpu_abi.h by a C compiler
// of this machine.
//
// The source is a user's, and a compiler may do anything with it, so services call this in a child
// process. A C compiler is a process of its own in the caller's process group, under the caller's
// limits. Cost: that of the compiler, 0.05 to some seconds.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/codegen/backend.h"
#include "compiler/codegen/compiled.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/specialization.h"

namespace kiln::codegen {

// Returns the kind of target that runs kernels of this language. The kind null also accepts them,
// and runs nothing.
const target::TargetKind& KindOfLanguage(handwritten::Language language);

// `backend` and the resolved `target` must be of one kind. The arguments are those of the
// computation's unscheduled program, so that the two can be compared.
//
//   InvalidArgument      the compiler refuses the source: its first messages; or the source has no
//                        such function, or the target is of another kind than the language
//   FailedPrecondition   the compiled kernel needs more than the device has
//   Unimplemented        no compiler for the language is found here: what to install
StatusOr<Compiled> CompileHandwritten(const handwritten::Specialization& kernel,
                                      const dag::DagPtr& dag, const Backend& backend,
                                      const target::Target& target,
                                      const target::HardwareParams& hardware, CompileTimes& times);

// Returns the whole input of the C compiler: the source, and behind it the function that a runner
// calls. That function hands the blocks of the grid to the runner's threads.
std::string CSourceOf(const handwritten::Specialization& kernel, const Compiled& interface);

}  // namespace kiln::codegen
