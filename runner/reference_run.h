// Runs a reference: the program whose outputs those of the candidates are compared with.
#pragma once

#include <string>

#include "base/file/fd.h"
#include "base/status.h"
#include "runner/checked_program.h"
#include "runner/child.pb.h"
#include "runner/on_phase.h"

namespace kiln::runner {

struct ReferenceResult {
  // Time of the last run on the first content.
  double cost_s = 0;
  // Reason why the outputs prove little (unchecked.h); empty: they prove enough.
  std::string unchecked;
};

// Runs the reference twice on differently poisoned outputs, which must agree. Then runs it once on
// the other content of the inputs, and writes the outputs for both contents to the file `outputs`
// (reference_outputs.h). The second run is left out if the first took 0.05 s or more.
StatusOr<ReferenceResult> RunReference(const Bench& bench, const wire::ReferenceRun& reference,
                                       const UniqueFd& outputs, const OnPhase& on_phase);

}  // namespace kiln::runner
