// Loads the outputs that a reference computed, to compare those of a program with them.
#pragma once

#include "base/file/fd.h"
#include "base/status.h"
#include "runner/checked_program.h"
#include "runner/child.pb.h"

namespace kiln::runner {

// Sets the expected outputs of the program for both contents of its inputs: the elements of its
// samples, or whole buffers, from the cache or else from the file `outputs` (reference_outputs.h).
// Internal if the file is needed and is not as it must be.
Status LoadExpected(const Bench& bench, const wire::TrialRun& trial, const UniqueFd& outputs,
                    CheckedProgram& checked);

}  // namespace kiln::runner
