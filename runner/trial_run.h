// Runs a trial: measures a program and checks what it computes.
//
// A trial fills the inputs, loads the artifact, poisons outputs and workspaces, runs the program
// once, checks, and times. Then it puts other values into the inputs, poisons again, runs and
// checks. (If the program takes a tenth of a second, other values and poison come before the
// timing, and the check after it.) A check requires that nothing was written outside of any
// argument, that the inputs are unchanged, and that the outputs are within the tolerance.
//
// A program that keeps its answers is fast when it is timed, but not on other values. If calls on
// new values take far longer than the timed calls, the time of those calls is the program's cost.
#pragma once

#include <functional>

#include "base/file/fd.h"
#include "runner/checked_program.h"
#include "runner/child.pb.h"
#include "runner/on_phase.h"

namespace kiln::runner {

// `outputs` has the reference's outputs, as RunReference wrote them. `is_wanted` says whether
// another trial waits for the device; null: always. Failures of the program are in the result; a
// fault may end the process instead (device.h).
v1::TrialResult RunTrial(const Bench& bench, const wire::TrialRun& trial, UniqueFd outputs,
                         const std::function<bool()>& is_wanted, const OnPhase& on_phase);

}  // namespace kiln::runner
